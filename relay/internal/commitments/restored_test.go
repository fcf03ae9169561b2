package commitments_test

import (
	"testing"

	"github.com/relaypool/relaypool/relay/internal/commitments"
)

// replaceable is a store that can be replaced by another.
type replaceable struct{ commitments.Store }

// After a failover or a restored backup, the database may lack leaves that this process has read.
// They are read again, and none is removed.
func TestRestoredDatabaseIsReadAgain(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	earlier := newStore(t, h)
	h.block(1, h.transact())
	must(t, newFollower(t, h, earlier).Sync(t.Context(), 0))

	db := &replaceable{newStore(t, h)}
	f := newFollower(t, h, db)
	h.block(2, h.transact(), h.transact())
	h.block(3, h.transact())
	must(t, f.Sync(t.Context(), 0))
	wantServed(t, f, 1, 2, 3, 4)

	db.Store = earlier
	must(t, f.Sync(t.Context(), 0))
	wantServed(t, f, 1, 2, 3, 4)
	pos, err := earlier.Position(t.Context())
	must(t, err)
	if pos.Generation != 0 || pos.Leaves != 8 {
		t.Errorf("the position is %+v, want 8 leaves in generation 0, without a rewind", pos)
	}
}

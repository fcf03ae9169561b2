package commitments_test

import (
	"testing"

	"github.com/relaypool/relaypool/relay/internal/commitments"
)

// exchanged is a database that can be replaced by another.
type exchanged struct{ commitments.Store }

// A failover, or a restored backup, may have lost leaves that this process knows. They are
// read again, and none is removed.
func TestADatabaseThatWasPutBackIsGoneOnWithFromThere(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	earlier := newStore(t, h)
	h.block(1, h.transact())
	must(t, newFollower(t, h, earlier).Sync(t.Context()))

	db := &exchanged{newStore(t, h)}
	f := newFollower(t, h, db)
	h.block(2, h.transact(), h.transact())
	h.block(3, h.transact())
	must(t, f.Sync(t.Context()))
	wantServed(t, f, 1, 2, 3, 4)

	db.Store = earlier
	must(t, f.Sync(t.Context()))
	wantServed(t, f, 1, 2, 3, 4)
	pos, err := earlier.Position(t.Context())
	must(t, err)
	if pos.Generation != 0 || pos.Leaves != 8 {
		t.Errorf("the position is %+v, want 8 leaves of which none was ever taken back", pos)
	}
}

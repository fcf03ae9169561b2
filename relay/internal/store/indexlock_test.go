package store

import (
	"testing"

	"github.com/gagliardetto/solana-go"
)

func TestIndexLockIsHeldByOnePodAndNeverWaitedForLong(t *testing.T) {
	t.Parallel()
	s := open(t)
	held := func() (n int) {
		t.Helper()
		err := s.Pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted
			AND (classid::int8 << 32 | objid::int8) = hashtextextended(current_schema() || 'relaypool index ' || encode($1::bytea, 'hex'), 0)`, solana.PublicKey{1}.Bytes()).Scan(&n)
		ok(t, err)
		return n
	}
	index := s.Commitments(solana.PublicKey{1})
	unlock := index.Lock(t.Context())
	if n := held(); n != 1 {
		t.Fatalf("%d locks are held, want 1", n)
	}
	index.Lock(t.Context())() // returns although the first holder does not unlock
	if n := held(); n != 1 {
		t.Errorf("%d locks are held after another pod's try, want the first one", n)
	}
	unlock()
	if n := held(); n != 0 {
		t.Errorf("%d locks are held after unlocking, want none", n)
	}
}

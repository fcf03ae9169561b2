package store

import (
	"log/slog"
	"sync"
	"testing"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/pgtest"
)

// Statements of a busy relay, batched and not, run on the connections that are there. A connection
// that was idle between two bursts is used again.
func TestCallsShareConnections(t *testing.T) {
	t.Parallel()
	const most, callers, bursts = 3, 32, 10
	pool, err := Open(t.Context(), pgtest.URL(t), TLSFiles{}, most)
	ok(t, err)
	t.Cleanup(pool.Close)
	ok(t, Migrate(t.Context(), pool, slog.New(slog.DiscardHandler)))
	s, err := New(pool)
	ok(t, err)
	accepted := accept(t, s, withdrawal(1, 2), nil)
	leaves := s.Commitments(solana.PublicKey{1})
	for range bursts {
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				if _, err := s.Get(t.Context(), accepted.ID); err != nil {
					t.Error(err)
				}
				if _, err := leaves.Position(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	if got := pool.Stat().NewConnsCount(); got > most {
		t.Errorf("%d calls opened %d connections, want at most %d", 2*callers*bursts, got, most)
	}
}

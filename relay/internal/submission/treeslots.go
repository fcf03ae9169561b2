package submission

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/gagliardetto/solana-go"
)

const (
	// slotReportTimeout bounds one word to the fleet about a slot, and slotReportRetry is the
	// pause before it is said again.
	slotReportTimeout = time.Second
	slotReportRetry   = 50 * time.Millisecond
)

// TreeSlots tells the fleet of the newest slot at which the pool's tree changed: a
// process whose node is behind then knows that it is.
type TreeSlots struct {
	store   Store
	pool    solana.PublicKey
	log     *slog.Logger
	highest atomic.Uint64
	changed chan struct{}
}

func newTreeSlots(store Store, pool solana.PublicKey, log *slog.Logger) *TreeSlots {
	return &TreeSlots{store: store, pool: pool, log: log, changed: make(chan struct{}, 1)}
}

// Observe is told the slot of every new state of the tree that is read.
func (t *TreeSlots) Observe(slot uint64) {
	t.highest.Store(slot)
	t.signal()
}

// landed tells of a slot in which a transaction of the pool landed: the tree changed
// there, even if no node that is read has come so far. Without that word a process
// whose nodes are all behind would call roots stale that are too new.
func (t *TreeSlots) landed(slot uint64) {
	for {
		seen := t.highest.Load()
		if slot <= seen {
			return
		}
		if t.highest.CompareAndSwap(seen, slot) {
			t.signal()
			return
		}
	}
}

func (t *TreeSlots) signal() {
	select {
	case t.changed <- struct{}{}:
	default: // one is enough
	}
}

// run tells the fleet until ctx ends.
func (t *TreeSlots) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.changed:
		}
		call, cancel := context.WithTimeout(ctx, slotReportTimeout)
		if err := t.store.RecordTreeSlot(call, t.pool, t.highest.Load()); err != nil && ctx.Err() == nil {
			t.log.DebugContext(ctx, "sharing the highest observed slot failed; retrying", "error", err)
			// A database that is back serves processes that start, too: they must not
			// judge roots before they can know what this one has seen.
			time.AfterFunc(slotReportRetry, t.signal)
		}
		cancel()
	}
}

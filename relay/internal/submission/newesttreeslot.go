package submission

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/gagliardetto/solana-go"
)

const (
	// treeSlotTimeout bounds one report of a slot to the other relays, and treeSlotRetry
	// is the pause before it is repeated.
	treeSlotTimeout = time.Second
	treeSlotRetry   = 50 * time.Millisecond
)

// TreeSlots reports to the other relays the newest slot at which the pool's tree changed,
// so that a process whose node is behind can notice that.
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

// Observe is called with the slot of every new state of the tree.
func (t *TreeSlots) Observe(slot uint64) {
	t.highest.Store(slot)
	t.signal()
}

// landed reports a slot in which a transaction of the pool landed: the tree changed there,
// even if no node that is read has reached it yet. Without the report, a process whose
// nodes are all behind would call roots stale that are too new.
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

// run reports to the other relays until ctx ends.
func (t *TreeSlots) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.changed:
		}
		call, cancel := context.WithTimeout(ctx, treeSlotTimeout)
		if err := t.store.RecordTreeSlot(call, t.pool, t.highest.Load()); err != nil && ctx.Err() == nil {
			t.log.DebugContext(ctx, "sharing the highest observed slot failed; retrying", "error", err)
			// When a database is back, it also serves processes that start. They must not
			// refuse roots before they can know what this one has observed.
			time.AfterFunc(treeSlotRetry, t.signal)
		}
		cancel()
	}
}

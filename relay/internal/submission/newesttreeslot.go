package submission

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/gagliardetto/solana-go"
)

const (
	// treeSlotTimeout bounds one report of a slot to the other relays. treeSlotRetry is the
	// pause before a failed report is repeated.
	treeSlotTimeout = time.Second
	treeSlotRetry   = 50 * time.Millisecond
)

// TreeSlots reports to the other relays the newest slot at which the pool's tree changed, so
// that a process can notice that its node is behind.
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

// landed reports a slot in which a transaction of the pool landed. The tree changed in that slot,
// even if the nodes that this process reads have not reached it yet. Without the report, a process
// whose nodes are all behind would reject roots newer than its tree as stale.
func (t *TreeSlots) landed(slot uint64) {
	for {
		highest := t.highest.Load()
		if slot <= highest {
			return
		}
		if t.highest.CompareAndSwap(highest, slot) {
			t.signal()
			return
		}
	}
}

func (t *TreeSlots) signal() {
	select {
	case t.changed <- struct{}{}:
	default: // one pending signal is enough
	}
}

// run reports to the other relays until ctx ends.
func (t *TreeSlots) run(ctx context.Context) {
	var recorded uint64
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.changed:
		}
		slot := t.highest.Load()
		if slot == recorded { // the tree and a landing show the same slot
			continue
		}
		call, cancel := context.WithTimeout(ctx, treeSlotTimeout)
		err := t.store.RecordTreeSlot(call, t.pool, slot)
		if err == nil {
			recorded = slot
		} else if ctx.Err() == nil {
			t.log.DebugContext(ctx, "sharing the highest observed slot failed; retrying", "error", err)
			// The retry comes soon: once the database is back, another process may read the
			// highest slot before this process has reported a newer one, and would then refuse
			// new roots.
			time.AfterFunc(treeSlotRetry, t.signal)
		}
		cancel()
	}
}

// BehindNewestTreeSlot reports whether a node whose answer is of the given slot has not reached the
// newest slot at which any relay observed a change of the pool's tree. While a node is behind, no
// root that it lacks counts as stale. The newest slot is returned too.
func BehindNewestTreeSlot(ctx context.Context, store Store, pool solana.PublicKey, slot uint64) (behind bool, newest uint64, err error) {
	newest, err = store.HighestTreeSlot(ctx, pool)
	return slot < newest, newest, err
}

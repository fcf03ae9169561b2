package submission

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/relaypool/relaypool/relay/internal/ledger"
)

const (
	// statusBatch is how many signatures one call may ask for (Solana).
	statusBatch = 256
	// finalityEvery is how many polls pass between looks at a submission that
	// is confirmed and waits only to be finalized.
	finalityEvery = 4
	// lostPolls is how many looks in a row must miss a confirmed signature
	// before its fork counts as dead: a lagging endpoint misses some.
	lostPolls = 5
	// trackerWorkers bounds the outcomes that are written at once.
	trackerWorkers = 64
)

// tracker knows the submissions whose lease this process holds. It renews the
// leases, those of running steps too, and follows what may be on the chain: it
// asks for signatures once a slot and sends the same bytes again.
type tracker struct {
	e *Engine

	mu      sync.Mutex
	entries map[uuid.UUID]*entry

	// steps runs what the answers call for, beside the polling.
	steps errgroup.Group
}

// entry is one submission under one lease. Its fields belong to the step that
// is running or else to the tracker's loop, but for busy and followed, which mu guards.
type entry struct {
	c *Claimed
	// busy says that a step of it is running; followed that there is something to look for.
	busy, followed bool
	// sends counts the sends since it is watched; next is when the next is due.
	sends int
	next  time.Time
	// settle is when attempts that nobody has seen may be judged again.
	settle time.Time
	// missed counts the looks in a row that did not find a confirmed signature.
	missed int
}

func newTracker(e *Engine) *tracker {
	t := &tracker{e: e, entries: map[uuid.UUID]*entry{}}
	t.steps.SetLimit(trackerWorkers)
	return t
}

// hold keeps a lease that was just taken, for the step that begins.
func (t *tracker) hold(c *Claimed) *entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &entry{c: c, busy: true}
	t.entries[c.ID] = w
	return w
}

// follow looks for the submission on the chain from now on; one that is
// followed already keeps its schedule.
func (t *tracker) follow(w *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !w.followed {
		w.followed, w.next = true, t.e.Now().Add(rebroadcastAfter(0))
	}
}

// drop lets go of a lease. This process may hold a later one of the same
// submission by now, which stays.
func (t *tracker) drop(w *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remove(w)
}

func (t *tracker) remove(w *entry) {
	if t.entries[w.c.ID] == w {
		delete(t.entries, w.c.ID)
	}
}

// size is how many submissions are followed.
func (t *tracker) size() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.entries {
		if w.followed {
			n++
		}
	}
	return n
}

// idle lists the entries of which no step is running.
func (t *tracker) idle() []*entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]*entry, 0, len(t.entries))
	for _, w := range t.entries {
		if !w.busy {
			out = append(out, w)
		}
	}
	return out
}

// begin marks an entry busy; false when it is gone or another step has it.
func (t *tracker) begin(w *entry) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.entries[w.c.ID] != w || w.busy {
		return false
	}
	w.busy = true
	return true
}

// end marks the end of a step. One that panicked has left nothing to follow.
func (t *tracker) end(w *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w.busy = false
	if !w.followed {
		t.remove(w)
	}
}

// rebroadcastAfter is the pause before the n-th send after the first: every
// 500 ms for 2 s, and every 2 s after.
func rebroadcastAfter(n int) time.Duration {
	if n < 4 {
		return 500 * time.Millisecond
	}
	return 2 * time.Second
}

// run polls until ctx ends.
func (t *tracker) run(ctx context.Context) {
	tick := time.NewTicker(t.e.Timing.Poll)
	defer tick.Stop()
	defer func() { _ = t.steps.Wait() }() // the steps log their own errors
	for round := 0; ; round++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		t.poll(ctx, round)
	}
}

// keepLeases renews them until ctx ends.
func (t *tracker) keepLeases(ctx context.Context) {
	tick := time.NewTicker(t.e.Timing.Lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		t.renew(ctx)
	}
}

// renew keeps the leases, and drops the submissions whose lease another worker has.
func (t *tracker) renew(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, t.e.Timing.Lease/3)
	defer cancel()
	t.mu.Lock()
	leases := make([]Lease, 0, len(t.entries))
	for _, w := range t.entries {
		leases = append(leases, w.c.Lease())
	}
	t.mu.Unlock()
	if len(leases) == 0 {
		return
	}
	kept, err := t.e.Store.Renew(ctx, leases, t.e.Timing.Lease)
	if err != nil {
		// The leases may lapse; writes under them then change nothing, and that drops the entries.
		t.e.Log.WarnContext(ctx, "Could not renew leases", "leases", len(leases), "error", err)
		return
	}
	held := make(map[Lease]bool, len(kept))
	for _, l := range kept {
		held[l] = true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range leases {
		if w := t.entries[l.ID]; w != nil && w.c.Lease() == l && !held[l] {
			delete(t.entries, l.ID)
		}
	}
}

// poll asks for the signatures of all entries that are due a look.
func (t *tracker) poll(ctx context.Context, round int) {
	var batch []*entry
	var sigs []solana.Signature
	flush := func() {
		if len(sigs) > 0 {
			t.look(ctx, batch, sigs)
		}
		batch, sigs = nil, nil
	}
	for _, w := range t.idle() {
		if w.c.State == Completed && round%finalityEvery != 0 {
			continue
		}
		ask := w.signatures()
		if len(sigs)+len(ask) > statusBatch {
			flush()
		}
		batch, sigs = append(batch, w), append(sigs, ask...)
	}
	flush()
}

// signatures are what to ask for: the landed one, or all that can still land.
func (w *entry) signatures() []solana.Signature {
	if w.c.State == Completed {
		return []solana.Signature{*w.c.Signature}
	}
	return signaturesOf(w.c.Live)
}

// look asks for one batch and acts on each entry's share of the answer.
func (t *tracker) look(ctx context.Context, batch []*entry, sigs []solana.Signature) {
	statuses, _, err := t.e.Chain.Statuses(ctx, sigs, false)
	if err != nil {
		// Unknown is neither failure nor success: the next poll asks again.
		t.e.Log.WarnContext(ctx, "Could not read signature statuses", "signatures", len(sigs), "error", err)
		return
	}
	for _, w := range batch {
		n := len(w.signatures())
		mine := statuses[:n]
		statuses = statuses[n:]
		act := t.decide(w, mine)
		if act == nil || !t.begin(w) {
			continue
		}
		t.steps.Go(func() error {
			defer t.end(w)
			ctx, cancel := t.e.unhurried(ctx)
			defer cancel()
			act(ctx)
			return nil
		})
	}
}

// decide picks what an answer calls for; nil when there is nothing to do yet.
func (t *tracker) decide(w *entry, statuses []*ledger.Status) func(context.Context) {
	var known, settled bool
	for _, st := range statuses {
		known = known || st != nil
		settled = settled || st != nil && ((st.Err == nil && st.Confirmation.AtLeast(ledger.Confirmed)) || st.Confirmation.AtLeast(ledger.Finalized))
	}
	if w.c.State == Completed {
		return t.decideCompleted(w, statuses[0])
	}
	switch {
	case settled, !known && t.aged(w):
		w.settle = t.e.Now().Add(settleEvery)
		return func(ctx context.Context) { t.stepOn(ctx, w) }
	case !known && !w.c.refused && !t.e.Now().Before(w.next):
		return func(ctx context.Context) { t.rebroadcast(ctx, w) }
	default:
		return nil
	}
}

// decideCompleted follows a confirmed submission to finality, or back when its fork dies.
func (t *tracker) decideCompleted(w *entry, st *ledger.Status) func(context.Context) {
	switch {
	case st != nil && st.Err == nil && st.Confirmation.AtLeast(ledger.Finalized):
		return func(ctx context.Context) { t.finish(ctx, w, t.e.finalize(ctx, w.c, st)) }
	case st != nil && st.Err == nil:
		w.missed = 0
		return nil
	}
	if w.missed++; w.missed < lostPolls {
		return nil
	}
	return func(ctx context.Context) { t.reopen(ctx, w) }
}

// settleAge is how old the newest attempt must be before the tracker asks
// whether it is dead: a blockhash lives for about a minute.
const settleAge = 30 * time.Second

// settleEvery is how often it then asks.
const settleEvery = 2 * time.Second

// aged reports whether it is time to settle attempts that nobody has seen.
func (t *tracker) aged(w *entry) bool {
	newest := w.c.Live[len(w.c.Live)-1].CreatedAt
	return t.e.Now().Sub(newest) > settleAge && !t.e.Now().Before(w.settle)
}

// rebroadcast sends every live attempt again, byte for byte and without preflight.
func (t *tracker) rebroadcast(ctx context.Context, w *entry) {
	w.sends++
	w.next = t.e.Now().Add(rebroadcastAfter(w.sends))
	for i := range w.c.Live {
		if ctx.Err() != nil {
			return
		}
		t.e.Observer.Attempt("rebroadcast")
		if err := t.e.put(ctx, &w.c.Live[i], false); err != nil {
			t.e.Log.DebugContext(ctx, "Sent an attempt again, to no answer", "request_id", w.c.ID, "error", err)
		}
	}
}

// finish drops an entry that has ended, or whose lease is lost; another error
// leaves it for the next poll.
func (t *tracker) finish(ctx context.Context, w *entry, err error) {
	if err != nil && !errors.Is(err, ErrLeaseLost) {
		t.e.Log.WarnContext(ctx, "Could not write an outcome, asking again", "request_id", w.c.ID, "error", err)
		return
	}
	t.drop(w)
}

// reopen takes a submission whose fork died back to processing. It looks with
// history search first: the recent cache alone forgets. Absence says nothing
// where history itself no longer reaches back to the slot.
func (t *tracker) reopen(ctx context.Context, w *entry) {
	w.missed = 0
	first, err := t.e.Chain.FirstAvailableBlock(ctx)
	var statuses []*ledger.Status
	if err == nil {
		statuses, _, err = t.e.Chain.Statuses(ctx, w.signatures(), true)
	}
	if err != nil {
		t.e.Log.WarnContext(ctx, "Could not look a confirmed signature up", "request_id", w.c.ID, "error", err)
		return
	}
	switch st := statuses[0]; {
	case st == nil && first > w.c.Slot:
		return
	case st != nil && st.Err == nil:
		if st.Confirmation.AtLeast(ledger.Finalized) {
			t.finish(ctx, w, t.e.finalize(ctx, w.c, st))
		}
		return
	}
	if err := t.e.Store.Reopen(ctx, w.c.Lease()); err != nil {
		t.finish(ctx, w, err)
		return
	}
	t.e.Observer.Attempt("reopened")
	t.e.Log.WarnContext(ctx, "Took a confirmed submission back: its fork died", "request_id", w.c.ID)
	w.c.State, w.c.Signature, w.c.RolledBack = Processing, nil, true
	t.stepOn(ctx, w)
}

// stepOn takes an entry one step further under the lease that is held.
func (t *tracker) stepOn(ctx context.Context, w *entry) {
	if err := t.e.step(ctx, w); err != nil {
		t.e.Log.WarnContext(ctx, "Left a submission until its lease lapses", "request_id", w.c.ID, "error", err)
	}
}

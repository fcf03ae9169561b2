package submission

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/relaypool/relaypool/relay/internal/ledger"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// statusBatch is how many signatures one call may ask for (Solana).
	statusBatch = 256
	// finalityEvery is how many polls pass between looks at submissions that
	// are confirmed and wait only to be finalized.
	finalityEvery = 4
	// lostPolls is how many looks in a row must miss a confirmed signature
	// before its fork counts as dead: a lagging endpoint misses some.
	lostPolls = 5
	// settleAge is how old the newest attempt must be before the tracker asks
	// whether it is dead: a blockhash lives for about a minute.
	settleAge = 30 * time.Second
	// settleEvery is how often it then asks.
	settleEvery = 2 * time.Second
	// sendWorkers bounds the rebroadcasts under way at once; what finds no worker
	// waits for the next poll, so that sends which hang stop no look.
	sendWorkers = 64
)

// tracker knows the submissions whose lease this process holds, and follows
// what may be on the chain: one loop asks for all signatures at once, at most
// once a slot, and sends the same bytes again.
type tracker struct {
	e *Engine
	// nudged brings the next poll forward.
	nudged chan struct{}

	mu      sync.Mutex
	entries map[uuid.UUID]*entry
	landing map[uuid.UUID]*watched

	// sends repeats transactions, and settling judges old ones, beside the polling.
	sends    errgroup.Group
	settling sync.Mutex
	// noting is held while the database is told of doubts; placeless counts entries
	// that gave their places back for one.
	noting    sync.Mutex
	placeless int
}

// entry is one submission in flight, under one lease. Its fields belong to
// whoever has it by its phase; mu guards phase.
type entry struct {
	c     *Claimed
	phase phase
	// sends counts the sends since it is followed; next is when the next is due.
	sends int
	next  time.Time
	// settle is when attempts that nobody has seen may be judged again.
	settle time.Time
	// freed says that its place was given back while it is followed.
	freed bool
	// doubted is since when an outcome of it is the word of one endpoint alone; noted
	// says that the database knows.
	doubted          time.Time
	noted, placeless bool
	// look is what the tracker has just found in all history, for the step that follows.
	look *ledger.Look
}

// phase says who has an entry.
type phase int

const (
	// working: a step of it is running.
	working phase = iota
	// following: the tracker asks for its signatures.
	following
	// recording: it landed, and the recorder writes that.
	recording
)

// watched is a submission that landed and is not yet final: what is left of an
// entry, small, because thousands are watched.
type watched struct {
	lease       Lease
	kind        shieldpool.Kind
	sign        string
	signature   solana.Signature
	slot        uint64
	created     time.Time
	commitments [][32]byte
	leaves      []uint64
	// phase is how a settlement ended, and returned what payers got back with it.
	phase    Phase
	returned uint64
	// missed counts the looks in a row that did not find the signature. busy says
	// that its end, or its way back, is being written; mu guards both.
	missed int
	busy   bool
}

func newTracker(e *Engine) *tracker {
	t := &tracker{e: e, nudged: make(chan struct{}, 1), entries: map[uuid.UUID]*entry{}, landing: map[uuid.UUID]*watched{}}
	t.sends.SetLimit(sendWorkers)
	return t
}

// hold keeps a submission whose lease and place were just taken, for the step that
// begins. twice says that a step runs already under the very same lease, which a
// failover of the database lost and handed out again.
func (t *tracker) hold(c *Claimed) (w *entry, twice bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.since = t.e.Now()
	w = &entry{c: c, phase: working}
	if old := t.entries[c.ID]; old != nil { // an earlier lease of the same row, lost unnoticed
		twice = old.phase == working && old.c.Lease() == c.Lease()
		t.displace(old)
	}
	t.entries[c.ID] = w
	return w, twice
}

// follow looks for the submission on the chain from now on; one that was
// followed before keeps its schedule.
func (t *tracker) follow(w *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.phase != working {
		return
	}
	w.phase = following
	if w.c.since.After(w.doubted) { // signed anew: the doubt was of another attempt
		w.doubted, w.noted = time.Time{}, false
	}
	if w.c.Kind == KindSettlement && !w.freed {
		// One that only has to die takes a minute: others' refunds must not wait for its place.
		w.freed = true
		t.e.settlements.give()
		ring(t.e.settling)
	}
	if w.next.IsZero() {
		w.next = t.e.Now().Add(rebroadcastAfter(0))
	}
}

// record hands an entry to the recorder.
func (t *tracker) record(w *entry, o Outcome) {
	t.mu.Lock()
	w.phase = recording
	t.mu.Unlock()
	t.e.deaf.heard()
	if w.c.Kind != KindSettlement {
		t.e.landedAt(o.Slot)
	}
	t.e.recorder.land(w, o)
}

// end is called when a step has ended. One that neither let go of its entry nor
// handed it on has panicked past its recovery: nothing holds it any more. One
// whose entry was displaced meanwhile settles what it reserved.
func (t *tracker) end(w *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.entries[w.c.ID] != w:
		t.settle(w)
	case w.phase == working:
		t.remove(w)
	}
}

// displace makes room for a later lease of the same row. What a step that is
// still running has reserved is its own until it ends.
func (t *tracker) displace(w *entry) {
	delete(t.entries, w.c.ID)
	t.free(w)
	if w.placeless {
		t.placeless--
		w.placeless = false
	}
	if w.phase != working {
		t.settle(w)
	}
}

// free gives the entry's place back, unless it has been.
func (t *tracker) free(w *entry) {
	if !w.freed {
		w.freed = true
		t.e.placesOf(w.c).give()
	}
}

// settle gives the payers' reservations back.
func (t *tracker) settle(w *entry) {
	t.e.settlePayers(w.c, func(solana.Signature) bool { return true })
}

// drop lets go of a submission in flight. This process may hold a later lease of the same
// submission by now, which stays.
func (t *tracker) drop(w *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remove(w)
}

// remove gives the place and the payers' reservations back; the caller holds mu.
func (t *tracker) remove(w *entry) {
	if t.entries[w.c.ID] != w {
		return
	}
	delete(t.entries, w.c.ID)
	t.free(w)
	if w.placeless {
		t.placeless--
		w.placeless = false
	}
	t.settle(w)
	if t.e.more.Load() {
		t.e.Nudge()
	}
}

// landed goes on watching a submission whose landing is written.
func (t *tracker) landed(w *entry, o *Outcome) {
	c := w.c
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.entries[c.ID] != w {
		return
	}
	t.remove(w)
	t.landing[c.ID] = watch(c, o)
}

// watch keeps what the end of a watch needs. Only an attempt that is known to
// carry the row's proof teaches which sign the program takes.
func watch(c *Claimed, o *Outcome) *watched {
	sign := ""
	for _, a := range slices.Concat(c.Live, c.Dead) {
		if a.Signature == o.Signature && a.Purpose == PurposeTransact {
			sign = c.ProofSign
		}
	}
	return &watched{
		lease: c.Lease(), kind: c.Kind, sign: sign, signature: o.Signature, slot: o.Slot,
		created: c.CreatedAt, commitments: commitmentsOf(c.Submission), phase: o.Phase, returned: returned(c, o),
	}
}

// watch takes up submissions that another process saw landing.
func (t *tracker) watch(c *Claimed) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := &Outcome{Signature: *c.Signature, Slot: c.Slot}
	if c.Kind == KindSettlement {
		o.Phase = c.Swap.Phase
	}
	t.landing[c.ID] = watch(c, o)
}

// forget ends a watch.
func (t *tracker) forget(w *watched) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.landing[w.lease.ID] == w {
		delete(t.landing, w.lease.ID)
	}
}

// watching is how many landed submissions are watched.
func (t *tracker) watching() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.landing)
}

// leases are all that this process believes to hold.
func (t *tracker) leases() map[Lease]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make(map[Lease]bool, len(t.entries)+len(t.landing))
	for _, w := range t.entries {
		out[w.c.Lease()] = true
	}
	for _, w := range t.landing {
		out[w.lease] = true
	}
	return out
}

// lose drops what was held under leases that are no longer this process's. A
// step that is running finds out by itself.
func (t *tracker) lose(l Lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.entries[l.ID]; w != nil && w.c.Lease() == l && w.phase == following {
		t.remove(w)
	}
	if w := t.landing[l.ID]; w != nil && w.lease == l && !w.busy {
		delete(t.landing, l.ID)
	}
}

// followed lists the entries whose signatures are asked for.
func (t *tracker) followed() []*entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]*entry, 0, len(t.entries))
	for _, w := range t.entries {
		if w.phase == following {
			out = append(out, w)
		}
	}
	return out
}

// unsettled lists the watches that are asked for.
func (t *tracker) unsettled() []*watched {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]*watched, 0, len(t.landing))
	for _, w := range t.landing {
		if !w.busy {
			out = append(out, w)
		}
	}
	return out
}

func (t *tracker) follows(w *entry) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.entries[w.c.ID] == w && w.phase == following
}

// begin gives an entry to a step; false when it is gone or somebody else's.
func (t *tracker) begin(w *entry) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.entries[w.c.ID] != w || w.phase != following {
		return false
	}
	w.phase = working
	return true
}

// rebroadcastAfter is the pause before the n-th send after the first: every
// 500 ms for 2 s, and every 2 s after.
func rebroadcastAfter(n int) time.Duration {
	if n < 4 {
		return 500 * time.Millisecond
	}
	return 2 * time.Second
}

// run polls until ctx ends, once a slot. A notification brings the poll
// forward, and the one after it is then left to the next notification for a
// little longer, so that polls fall in step with the slots instead of doubling.
func (t *tracker) run(ctx context.Context) {
	defer func() { _ = t.sends.Wait() }() // the sends log their own errors
	slot := t.e.Timing.Poll
	timer := time.NewTimer(slot)
	defer timer.Stop()
	for round := 0; ; round++ {
		least := time.Now().Add(slot / 4)
		var nudged bool
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-t.nudged:
			nudged = true
			if !pause(ctx, time.Until(least)) {
				return
			}
		}
		t.poll(ctx, round, nudged)
		if nudged {
			timer.Reset(slot + slot/4)
		} else {
			timer.Reset(slot)
		}
	}
}

// pause waits; false when ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

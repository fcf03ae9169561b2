package txmgr

import (
	"context"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
)

// statusBatch is the largest number of signatures in one call (Solana).
const statusBatch = 256

// pollBatch has the jobs whose statuses one call asks for, and their signatures in the same order.
type pollBatch struct {
	inFlight   []*entry
	landed     []*landedEntry
	signatures []solana.Signature
}

const (
	// finalityEvery is the number of polls of jobs in flight for each poll of landed jobs too. Landed jobs
	// are polled less often, because they only wait to be finalized.
	finalityEvery = 4
	// finalityMargin is how many slots after the one that is final by now a landed job is polled: two endpoints
	// then report that it is final.
	finalityMargin = 4
	// longestFinality is how many slots a job at most waits to be final. One with a later slot has a wrong one.
	longestFinality = 512
)

// run polls every Timing.Poll, and earlier when a notification arrives, until ctx ends.
func (t *tracker) run(ctx context.Context) {
	defer func() { _ = t.sends.Wait() }() // the sends log their own errors
	timer := time.NewTimer(t.m.Timing.Poll)
	defer timer.Stop()
	for {
		notified, ok := t.awaitPoll(ctx, timer.C)
		if !ok {
			return
		}
		t.poll(ctx, notified)
		timer.Reset(t.pollInterval(notified))
	}
}

// poll asks for the statuses of the jobs in flight and, in every finalityEvery-th poll, of landed jobs that may be
// final by now. It acts on the statuses.
func (t *tracker) poll(ctx context.Context, notified bool) {
	inFlight, landed := t.startPoll()
	var b pollBatch
	var signatures int
	flush := func() {
		signatures += len(b.signatures)
		t.ask(ctx, &b)
		b = pollBatch{}
	}
	for _, w := range inFlight {
		if len(b.signatures)+len(w.j.Live) > statusBatch {
			flush()
		}
		b.inFlight, b.signatures = append(b.inFlight, w), append(b.signatures, signaturesOf(w.j.Live)...)
	}
	flush() // what is in flight does not wait until endpoints agree about what landed
	for _, w := range landed {
		if len(b.signatures) == statusBatch {
			flush()
		}
		b.landed, b.signatures = append(b.landed, w), append(b.signatures, w.Signature)
	}
	flush()
	if signatures > 0 {
		t.m.Observer.Poll(signatures, notified)
	}
	t.resolveOld(ctx, inFlight)
	t.recordUnverified(ctx, inFlight)
}

// statuses asks for the statuses of the signatures. It returns nil when no endpoint answers. The
// outcomes are then unknown, and the next poll asks again.
func (t *tracker) statuses(ctx context.Context, sigs []solana.Signature) []*onchain.Status {
	statuses, _, err := t.m.Chain.Statuses(ctx, sigs)
	if err != nil {
		if ctx.Err() == nil {
			t.m.Log.DebugContext(ctx, "reading signature statuses failed", "signatures", len(sigs), "error", err)
		}
		return nil
	}
	return statuses
}

// ask asks for the statuses of one batch, and acts on them.
func (t *tracker) ask(ctx context.Context, b *pollBatch) {
	if len(b.signatures) == 0 {
		return
	}
	statuses := t.statuses(ctx, b.signatures)
	answered := statuses != nil
	if !answered {
		// Without an answer no attempt is known to be on the chain, so the attempts are sent again
		// when their rebroadcasts are due.
		statuses = make([]*onchain.Status, len(b.signatures))
	}
	for _, w := range b.inFlight {
		n := len(w.j.Live)
		t.applyStatuses(ctx, w, statuses[:n])
		statuses = statuses[n:]
	}
	if answered {
		t.applyLandedStatuses(ctx, b.landed, statuses)
	}
}

// applyStatuses acts on the recent statuses of one job's attempts.
func (t *tracker) applyStatuses(ctx context.Context, w *entry, statuses []*onchain.Status) {
	onChain := false
	for i, st := range statuses {
		switch {
		case st == nil:
			continue
		case st.Unverified: // the status may be false, so it does not prevent the rebroadcast
			t.markUnverified(w.j)
			continue
		case st.Err == nil && st.Confirmation.AtLeast(onchain.Confirmed):
			if a := &w.j.Live[i]; t.setWorking(w) {
				t.recordLanding(w, Landing{Signature: a.Signature, Slot: st.Slot, Purpose: a.Purpose})
			}
			return
		case st.Confirmation.AtLeast(onchain.Finalized):
			t.runNextStep(ctx, w) // the failure is final: the step finds out why
			return
		}
		// A processed transaction is confirmed within moments. If it is not, the endpoint may be
		// wrong, and the transaction is sent again.
		onChain = onChain || st.Confirmation.AtLeast(onchain.Confirmed) || t.m.Now().Before(w.rebroadcastAt.Add(processedTimeout))
	}
	if !onChain && !t.m.Now().Before(w.rebroadcastAt) {
		t.rebroadcast(ctx, w)
	}
}

// runNextStep starts a goroutine that runs the entry's next step.
func (t *tracker) runNextStep(ctx context.Context, w *entry) {
	if !t.setWorking(w) {
		return
	}
	t.m.steps.Go(func() {
		ctx, cancel := t.m.stepContext(ctx)
		defer cancel()
		t.m.step(ctx, w)
	})
}

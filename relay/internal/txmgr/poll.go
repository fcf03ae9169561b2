package txmgr

import (
	"context"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
)

// statusBatch is the largest number of signatures in one call (Solana).
const statusBatch = 256

const (
	// finalityEvery is the number of polls of jobs in flight for each poll of landed jobs. Landed jobs
	// are polled less often, because they only wait to be finalized.
	finalityEvery = 4
	// finalityMargin is how many slots a landed job waits after it may be final, so that two endpoints
	// report it as final.
	finalityMargin = 4
	// longestFinality is more slots than a block takes to become final. A job that landed later than that
	// has a wrong slot.
	longestFinality = 512
)

// run polls every Timing.Poll, and earlier when a notification arrives, until ctx ends.
func (t *tracker) run(ctx context.Context) {
	defer func() { _ = t.sends.Wait() }() // the sends log their own errors
	timer := time.NewTimer(t.m.Timing.Poll)
	defer timer.Stop()
	for round := 0; ; round++ {
		notified, ok := t.awaitPoll(ctx, timer.C)
		if !ok {
			return
		}
		t.poll(ctx, round, notified)
		timer.Reset(t.pollInterval(notified))
	}
}

// poll asks for the statuses of jobs in flight, and in every finalityEvery-th round also for those
// of landed jobs that may be final by now. It acts on the statuses.
func (t *tracker) poll(ctx context.Context, round int, notified bool) {
	inFlight := t.tracked()
	signatures := t.pollInFlight(ctx, inFlight)
	if round%finalityEvery == 0 {
		signatures += t.pollLanded(ctx)
	}
	if signatures > 0 {
		t.m.Observer.Poll(signatures, notified)
	}
	t.resolveOld(ctx, inFlight)
	t.recordUnverified(ctx, inFlight)
}

// pollInFlight asks for the statuses of the attempts of jobs in flight. It returns the number of
// their signatures.
func (t *tracker) pollInFlight(ctx context.Context, inFlight []*entry) (asked int) {
	var batch []*entry
	var sigs []solana.Signature
	flush := func() {
		if len(sigs) > 0 {
			asked += len(sigs)
			t.pollBatch(ctx, batch, sigs)
		}
		batch, sigs = nil, nil
	}
	for _, w := range inFlight {
		jobSigs := signaturesOf(w.j.Live)
		if len(sigs)+len(jobSigs) > statusBatch {
			flush()
		}
		batch, sigs = append(batch, w), append(sigs, jobSigs...)
	}
	flush()
	return asked
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

func (t *tracker) pollBatch(ctx context.Context, batch []*entry, sigs []solana.Signature) {
	statuses := t.statuses(ctx, sigs)
	if statuses == nil {
		// Without an answer no attempt is known to be on the chain, so the attempts are sent again
		// when their rebroadcasts are due.
		statuses = make([]*onchain.Status, len(sigs))
	}
	for _, w := range batch {
		n := len(w.j.Live)
		t.applyStatuses(ctx, w, statuses[:n])
		statuses = statuses[n:]
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

// pollLanded asks for the statuses of jobs that are confirmed, and that may be final by now.
func (t *tracker) pollLanded(ctx context.Context) (asked int) {
	all := t.perhapsFinal()
	for len(all) > 0 && ctx.Err() == nil {
		n := min(len(all), statusBatch)
		batch := all[:n]
		all = all[n:]
		sigs := make([]solana.Signature, n)
		for i, w := range batch {
			sigs[i] = w.Signature
		}
		asked += n
		if statuses := t.statuses(ctx, sigs); statuses != nil {
			t.applyLandedStatuses(ctx, batch, statuses)
		}
	}
	return asked
}

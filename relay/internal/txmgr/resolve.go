package txmgr

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Resolve searches all history for the live attempts, unless the tracker just did, and
// marks the dead ones as dead.
func (m *Manager) Resolve(ctx context.Context, j *Job) (*Resolution, error) {
	result := j.searchResult
	j.searchResult = nil
	if len(j.Live) == 0 {
		return &Resolution{}, nil
	}
	if result == nil {
		found, err := m.Chain.Search(ctx, signaturesOf(j.Live))
		if err != nil {
			return nil, Unreachable(j, err)
		}
		result = &found
	}
	if slices.ContainsFunc(result.Statuses, func(s *onchain.Status) bool { return s != nil && s.Unverified }) {
		m.tracker.markUnverified(j)
	}
	return m.applyFates(ctx, j, result)
}

// applyFates applies the fates of the live attempts, as one search shows them.
func (m *Manager) applyFates(ctx context.Context, j *Job, result *onchain.SearchResult) (*Resolution, error) {
	r := &Resolution{MinContextSlot: result.FinalizedSlot}
	var dead []DeadAttempt
	for i := range j.Live {
		a, st := &j.Live[i], result.Statuses[i]
		fate := fateOf(a, st, result)
		r.Fates = append(r.Fates, fate)
		switch fate {
		case onchain.Landed:
			r.Landing = &Landing{Signature: a.Signature, Slot: st.Slot, Purpose: a.Purpose}
		case onchain.FailedOnChain:
			r.Failure = &Failure{Err: st.Err, Class: m.Class(a.Purpose, a.Format(), st.Err)}
			dead = append(dead, DeadAttempt{Signature: a.Signature, Paid: a.Fee})
			m.Observer.Attempt("failed_on_chain")
			m.reportFailure(j, a, r.Failure.Class, st.Err)
		case onchain.Expired:
			dead = append(dead, DeadAttempt{Signature: a.Signature})
			m.Observer.Attempt("expired")
		case onchain.MayLand, onchain.Forgotten:
		}
	}
	return r, m.markDead(ctx, j, dead)
}

func fateOf(a *Attempt, st *onchain.Status, l *onchain.SearchResult) onchain.Fate {
	return l.Fate(st, a.BlockhashSlot, a.LastValidBlockHeight, a.CreatedAt)
}

// reportFailure reports to the payers and the learned limits what a failure shows about them.
func (m *Manager) reportFailure(j *Job, a *Attempt, class shieldpool.Class, cause *shieldpool.TransactionError) {
	switch class {
	case shieldpool.ClassFeePayerEmpty:
		m.Payers.MarkRefused(a.FeePayer, cause)
	case shieldpool.ClassRaiseCompute:
		switch {
		case cause.Kind == shieldpool.MaxLoadedDataExceeded:
			m.compute.loadedData.raise(shapeOf(j.Kind, a.Purpose))
		case a.Purpose != PurposeExecute:
			m.compute.units.raise(shapeOf(j.Kind, a.Purpose))
		}
	default:
	}
}

// errUnconfirmed reports that an attempt succeeded in a block that is not yet confirmed.
// Only confirmation shows which transaction landed.
var errUnconfirmed = errors.New("an attempt is on the chain, not yet confirmed")

// FindLanding searches all history for attempts, including dead ones; nil when none of them
// landed.
func (m *Manager) FindLanding(ctx context.Context, j *Job, attempts []Attempt) (*Landing, error) {
	for batch := range slices.Chunk(attempts, statusBatch) {
		result, err := m.Chain.Search(ctx, signaturesOf(batch))
		if err != nil {
			return nil, Unreachable(j, err)
		}
		for i, st := range result.Statuses {
			switch {
			case st == nil || st.Err != nil && !st.Unverified:
			case st.Unverified:
				return nil, Unreachable(j, &onchain.Unavailable{Method: "getSignatureStatuses", Kind: onchain.KindUnverified, Detail: "no second endpoint confirms the status of an attempt"})
			case st.Confirmation.AtLeast(onchain.Confirmed):
				return &Landing{Signature: batch[i].Signature, Slot: st.Slot, Purpose: batch[i].Purpose}, nil
			default:
				return nil, errUnconfirmed
			}
		}
	}
	return nil, nil //nolint:nilnil // nil means that none landed, as documented
}

// MarkDead marks the live attempts as dead. They cannot land: they only count as live while
// no history reaches back to them.
func (m *Manager) MarkDead(ctx context.Context, j *Job) error {
	dead := make([]DeadAttempt, len(j.Live))
	for i := range j.Live {
		dead[i] = DeadAttempt{Signature: j.Live[i].Signature}
	}
	return m.markDead(ctx, j, dead)
}

// markDead marks attempts as dead, in the database and in the job, and releases their
// payers' reservations.
func (m *Manager) markDead(ctx context.Context, j *Job, dead []DeadAttempt) error {
	if len(dead) == 0 {
		return nil
	}
	if err := m.Store.MarkAttemptsDead(ctx, j.Lease, dead); err != nil {
		return err
	}
	isDead, paid := map[solana.Signature]bool{}, map[solana.Signature]uint64{}
	for _, d := range dead {
		isDead[d.Signature], paid[d.Signature] = true, d.Paid
	}
	var live []Attempt
	for _, a := range j.Live {
		if isDead[a.Signature] {
			a.Paid = paid[a.Signature]
			j.Dead = append(j.Dead, a)
		} else {
			live = append(live, a)
		}
	}
	j.Live = live
	m.releaseReservations(j, func(s solana.Signature) bool { return isDead[s] })
	return nil
}

func signaturesOf(attempts []Attempt) []solana.Signature {
	out := make([]solana.Signature, len(attempts))
	for i := range attempts {
		out[i] = attempts[i].Signature
	}
	return out
}

const (
	// resolveInterval is the interval of the searches whether old attempts are dead.
	resolveInterval = 2 * time.Second
)

// resolveOld resolves attempts that are old enough to be dead, many in one search. One
// search runs at a time, concurrently with the polling.
func (t *tracker) resolveOld(ctx context.Context, inFlight []*entry) {
	if !t.resolving.TryLock() {
		return
	}
	var batch []*entry
	var sigs []solana.Signature
	for _, w := range inFlight {
		// The attempts may be read here only while the entry is tracked.
		if !t.isTracked(w) || len(sigs)+len(w.j.Live) > statusBatch || !t.isOld(w) || !t.startStep(w) {
			continue
		}
		w.resolveAt = t.m.Now().Add(resolveInterval)
		batch, sigs = append(batch, w), append(sigs, signaturesOf(w.j.Live)...)
	}
	if len(batch) == 0 {
		t.resolving.Unlock()
		return
	}
	t.m.steps.Go(func() {
		defer t.resolving.Unlock()
		ctx, cancel := t.m.stepContext(ctx)
		defer cancel()
		result, err := t.m.Chain.Search(ctx, sigs)
		if err != nil {
			t.m.Log.InfoContext(ctx, "searching old attempts failed", "signatures", len(sigs), "error", err)
		}
		for _, w := range batch {
			n := len(w.j.Live)
			if err != nil {
				t.track(w)
				continue
			}
			mine := result
			mine.Statuses, result.Statuses = result.Statuses[:n], result.Statuses[n:]
			w.j.searchResult = &mine
			t.m.steps.Go(func() {
				ctx, cancel := t.m.stepContext(ctx)
				defer cancel()
				t.m.step(ctx, w)
			})
		}
	})
}

// isOld reports whether the attempts have to be searched in all history.
func (t *tracker) isOld(w *entry) bool {
	if len(w.j.Live) == 0 {
		return false
	}
	now, newest := t.m.Now(), w.j.Live[len(w.j.Live)-1].CreatedAt
	t.mu.Lock()
	defer t.mu.Unlock()
	// When a second endpoint answers again, the recent statuses may no longer have the
	// transaction that the first one reported.
	doubted := !w.unverifiedSince.IsZero() && now.Sub(w.unverifiedSince) >= unverifiedAfter
	return (doubted || now.Sub(newest) > onchain.BlockhashLife(t.m.SlotDuration())) && !now.Before(w.resolveAt)
}

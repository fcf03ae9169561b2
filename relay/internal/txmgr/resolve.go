package txmgr

import (
	"context"
	"slices"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Resolve searches all history for the job's live attempts, and marks those as dead that can no
// longer succeed. If the tracker has just searched for the attempts, Resolve uses that result
// instead of a new search.
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

// applyFates determines the fate of each live attempt from one search. It marks an attempt as dead
// if the attempt failed on the chain or has expired.
func (m *Manager) applyFates(ctx context.Context, j *Job, result *onchain.SearchResult) (*Resolution, error) {
	r := &Resolution{MinContextSlot: result.FinalizedSlot}
	var dead []DeadAttempt
	var expiredOn []string // lanes
	for i := range j.Live {
		a, st := &j.Live[i], result.Statuses[i]
		fate := fateOf(a, st, result)
		r.Fates = append(r.Fates, fate)
		switch fate {
		case onchain.Landed:
			r.Landing = &Landing{Signature: a.Signature, Slot: st.Slot, Purpose: a.Purpose}
		case onchain.FailedOnChain:
			r.Failure = &Failure{Err: st.Err, Class: m.classOf(a, st.Err)}
			dead = append(dead, DeadAttempt{Signature: a.Signature, Paid: a.Fee})
			m.Observer.Attempt("failed_on_chain")
			m.reportFailure(j, a, r.Failure.Class, st.Err)
		case onchain.Expired:
			dead = append(dead, DeadAttempt{Signature: a.Signature})
			m.Observer.Attempt("expired")
			if !a.Rejected {
				expiredOn = append(expiredOn, a.Lane)
			}
		case onchain.MayLand:
			r.Seen = r.Seen || st != nil
		case onchain.Forgotten:
		}
	}
	if err := m.markDead(ctx, j, dead); err != nil {
		return r, err
	}
	for _, lane := range expiredOn { // only now, because the step is repeated if the write fails
		m.Observer.LaneExpired(lane)
		m.results.observe(lane, false)
	}
	return r, nil
}

func fateOf(a *Attempt, st *onchain.Status, l *onchain.SearchResult) onchain.Fate {
	return l.Fate(st, a.BlockhashSlot, a.LastValidBlockHeight, a.CreatedAt)
}

// reportFailure marks a payer that lacks lamports as refused, and raises a limit that was too low.
// It does not raise the compute unit limit of swaps' executions, because each of them gets its
// limit from its own simulation.
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

func signaturesOf(attempts []Attempt) []solana.Signature {
	out := make([]solana.Signature, len(attempts))
	for i := range attempts {
		out[i] = attempts[i].Signature
	}
	return out
}

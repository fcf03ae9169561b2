package httpapi

import (
	"encoding/hex"
	"fmt"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// addSwap adds the fields of the swap's second leg.
func (a *api) addSwap(data *openapi.SubmissionStatus, s *submission.Submission) error {
	ids, err := a.swapIdentifiers(s)
	if err != nil {
		return err
	}
	progress := progressOf(s)
	data.SwapStatePda, data.Nullifier = ids.SwapStatePda, ids.Nullifier
	data.SwapPhase, data.SwapTimeoutSlot, data.SwapWaits = progress.SwapPhase, progress.SwapTimeoutSlot, progress.SwapWaits
	data.SwapSignature, data.RefundSignature = progress.SwapSignature, progress.RefundSignature
	if s.State != submission.Completed {
		return nil
	}
	data.Status, data.CompletedAt = statusOf(s), nil
	data.Finalized = s.Finalized && swapEnded(s) && s.Swap.Finalized
	if isRefunded(s) {
		ref := swapRefunded()
		code := string(ref.Code)
		data.Error, data.ErrorCode = &ref.Message, &code
	}
	if swapEnded(s) && s.Swap.EndedAt != nil {
		at := s.Swap.EndedAt.UTC()
		data.CompletedAt = &at
	}
	return nil
}

// swapRefunded is the refusal in the answer for a refunded swap.
func swapRefunded() *refusal.Refusal {
	return refusal.New(refusal.SwapRefunded,
		"the swap found no execution at the user's minimum or above before its timeout, so its lamports were returned to the recipient's wallet: to try again, deposit them anew, and choose a lower minimum if the price has moved")
}

// The second leg counts only while the first is completed. When a fork is abandoned, the first
// leg is processing again, and the stored second leg belongs to the abandoned fork.

func swapEnded(s *submission.Submission) bool {
	return s.State == submission.Completed && s.Swap != nil && (s.Swap.Phase == submission.PhaseExecuted || s.Swap.Phase == submission.PhaseRefunded)
}

func isRefunded(s *submission.Submission) bool {
	return swapEnded(s) && s.Swap.Phase == submission.PhaseRefunded
}

// statusOf is the public status of a submission. A swap's status covers both legs.
func statusOf(s *submission.Submission) openapi.JobStatus {
	switch {
	case s.Kind != shieldpool.KindSwap || s.State != submission.Completed:
		return openapi.JobStatus(s.State)
	case isRefunded(s):
		return openapi.JobStatusFailed
	case swapEnded(s):
		return openapi.JobStatusCompleted
	default:
		return openapi.JobStatusProcessing
	}
}

// progressOf is the progress of a swap's second leg, as far as it is known.
func progressOf(s *submission.Submission) (p openapi.SwapProgress) {
	if s.State != submission.Completed {
		return p
	}
	phase := openapi.SwapPhaseFunded
	if s.Swap == nil {
		p.SwapPhase = &phase
		return p
	}
	phase = openapi.SwapPhase(s.Swap.Phase)
	p.SwapPhase = &phase
	if s.Swap.TimeoutSlot > 0 {
		slot := int64(s.Swap.TimeoutSlot) //nolint:gosec // slots stay far below 2^63
		p.SwapTimeoutSlot = &slot
	}
	if !swapEnded(s) {
		if s.Swap.HeldBy != "" {
			p.SwapWaits = &s.Swap.HeldBy
		}
		return p
	}
	if s.Swap.Signature == nil {
		return p
	}
	text := s.Swap.Signature.String()
	if isRefunded(s) {
		p.RefundSignature = &text
	} else {
		p.SwapSignature = &text
	}
	return p
}

// swapIdentifiers derives the identifiers of a swap: its first nullifier and its state account.
// The account is left out when the swap belongs to a pool that is not this relay's.
func (a *api) swapIdentifiers(s *submission.Submission) (ids openapi.SwapFields, err error) {
	if s.Call == nil || s.Call.Inputs == nil {
		return ids, nil
	}
	nullifier := s.Call.Inputs.Nullifiers[0]
	text := hex.EncodeToString(nullifier[:])
	ids.Nullifier = &text
	pool := a.pools[s.Call.Inputs.MintAddress]
	if pool == nil || !pool.Address.Equals(s.Pool) {
		return ids, nil
	}
	state, _, err := pool.SwapState(nullifier)
	if err != nil {
		return ids, fmt.Errorf("derive swap_state address: %w", err)
	}
	address := state.String()
	ids.SwapStatePda = &address
	return ids, nil
}

// poolsOf returns the pools of a profile, by the field element of their mint.
func poolsOf(p *shieldpool.Profile) (map[[32]byte]*shieldpool.Pool, error) {
	pools := make(map[[32]byte]*shieldpool.Pool, len(p.Mints))
	for _, m := range p.Mints {
		pool, err := p.Pool(m)
		if err != nil {
			return nil, err
		}
		pools[m.Field] = pool
	}
	return pools, nil
}

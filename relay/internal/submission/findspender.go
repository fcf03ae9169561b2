package submission

import (
	"context"
	"errors"
	"slices"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// readNotes reads the nullifiers' accounts on a node that has reached minContextSlot. If an account
// exists, its nullifier is spent, and readNotes finds the spender.
func (h *Handler) readNotes(ctx context.Context, j *txmgr.Job, p *progress) error {
	inspection, err := h.State.Inspect(ctx, FromJob(j).Call.Inputs, FromJob(j).Call.Recipient, p.minContextSlot)
	if err != nil {
		return txmgr.Refused(j, err)
	}
	p.minContextSlot = max(p.minContextSlot, inspection.Slot)
	index := slices.Index(inspection.Spent[:], true)
	if index < 0 {
		p.notes = notesUnspent
		return nil
	}
	p.spent = index
	return h.findSpender(ctx, j, p)
}

// findSpender finds who spent the notes: an attempt, which may count as dead; a transaction of
// this submission that the database lost; or somebody else.
func (h *Handler) findSpender(ctx context.Context, j *txmgr.Job, p *progress) error {
	own, err := h.Manager.FindLanding(ctx, j, j.Attempts())
	if err != nil || own != nil {
		p.notes, p.landing = notesSpentByUs, own
		return err
	}
	creation, err := h.State.FindCreation(ctx, FromJob(j).Call.Inputs.Nullifiers[p.spent])
	switch {
	case err != nil:
		return txmgr.Unreachable(j, err)
	case creation == nil:
		p.notes = notesSpenderUnknown
	case h.isOwnTransaction(j, creation):
		p.notes, p.landing = notesSpentByUs, &txmgr.Landing{Signature: creation.Signature, Slot: creation.Slot, Purpose: txmgr.PurposeTransact}
		h.Observer.Attempt("adopted")
		h.Log.WarnContext(ctx, "landing of this relay found on the chain; the database did not know it", "request_id", j.ID, "slot", creation.Slot)
	case creation.Confirmation.AtLeast(onchain.Finalized):
		p.notes = notesSpentByOther
	default:
		p.notes = notesSpentNotFinal
	}
	return nil
}

// isOwnTransaction reports whether a transaction belongs to this submission: a payer of the relay
// paid it, and it has the submission's content. A swap that a stranger started with the same call
// also counts, because the lamports of that swap wait for a second leg.
func (h *Handler) isOwnTransaction(j *txmgr.Job, creation *onchain.Creation) bool {
	ownPayer := j.Kind == shieldpool.KindSwap || h.Payers.Owns(creation.FeePayer) ||
		slices.ContainsFunc(j.Attempts(), func(a txmgr.Attempt) bool { return a.FeePayer == creation.FeePayer })
	return ownPayer && creation.Call != nil && ContentHash(creation.Call) == ContentHash(FromJob(j).Call)
}

// errSpentNotFinal reports that another transaction spent the notes, but is not finalized.
var errSpentNotFinal = errors.New("the notes are spent by another transaction that is not yet final")

// NullifierSpent returns the refusal of a call whose i-th nullifier is spent on the chain.
func NullifierSpent(i int) *refusal.Refusal {
	return refusal.New(refusal.NullifierSpent, "nullifier %d is already spent on the chain: its note is gone; choose another note", i).With("nullifier_index", i)
}

package submission

import (
	"context"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// draft returns the draft of the client's call, or a deferral when the call is too long for every
// format that this relay sends now.
func (h *Handler) draft(s *Submission) (*txmgr.Draft, error) {
	format, err := h.format(s.Call)
	if err != nil {
		return nil, err
	}
	d := &txmgr.Draft{Purpose: txmgr.PurposeTransact, Format: format, Creates: s.Call.NewAccounts(), Build: func(payer solana.PublicKey, compute shieldpool.Compute, hash solana.Hash) (*solana.Transaction, error) {
		return h.Pool.Transaction(payer, s.Call, compute, hash, h.Table)
	}}
	if s.Kind == shieldpool.KindSwap {
		d.SecondLeg = &shieldpool.NewAccounts{TokenAccounts: 1} // the execution may create the recipient's token account
	}
	return d, nil
}

// Prepare prepares the first transaction of a submission that is about to be accepted; see
// txmgr.Manager.Prepare.
func (h *Handler) Prepare(ctx context.Context, s *Submission) *txmgr.Prepared {
	own := *s // the caller goes on to write s
	j := own.Job()
	return h.Manager.Prepare(ctx, j, func(ctx context.Context) (*txmgr.Draft, uint64, error) {
		p := new(progress)
		if err := h.readRoot(ctx, j, p); err != nil {
			return nil, 0, err
		}
		if p.root != rootInHistory {
			return nil, 0, errRootNotSeen
		}
		draft, err := h.draftNow(j, p)
		return draft, p.minContextSlot, err
	})
}

// draftNow returns the draft of a job's call, urgent or not by the tree that was just read.
func (h *Handler) draftNow(j *txmgr.Job, p *progress) (*txmgr.Draft, error) {
	draft, err := h.draft(FromJob(j))
	if err == nil {
		draft.Urgent = rootLeavesSoon(p.tree, FromJob(j).Call.Inputs.Root)
	}
	return draft, err
}

// withoutNotes returns a copy of the submission without its notes. The copy fits every format. It
// is for a simulation that only checks the root, because neither the proof nor the program checks
// the notes.
func (s *Submission) withoutNotes() *Submission {
	short, call := *s, *s.Call
	call.Notes, short.Call = nil, &call
	return &short
}

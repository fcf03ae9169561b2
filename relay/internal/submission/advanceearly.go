package submission

import (
	"context"
	"errors"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

// isEarlyAttemptDue reports whether another attempt may be signed although earlier ones may land:
// their nullifiers let only one of them succeed, and the search for them found none. After failures on
// the chain there is no early attempt, because it would probably fail for its fee too.
func (h *Handler) isEarlyAttemptDue(j *txmgr.Job, r *txmgr.Resolution) bool {
	if !r.MayLand() || !h.Manager.EarlyAttemptDue(j) {
		return false
	}
	in := FromJob(j).Call.Inputs
	_, paid := retryAt(j.Dead)
	if paid == 0 && !r.Seen && (in.HasNullifier(0) || in.HasNullifier(1)) {
		return true
	}
	h.Manager.PostponeEarlyAttempt(j)
	return false
}

// advanceEarly makes an early attempt if the facts allow it. Otherwise, and if a fact cannot be read,
// the earlier attempts are tracked as before.
func (h *Handler) advanceEarly(ctx context.Context, j *txmgr.Job, p *progress) (txmgr.Next, error) {
	for {
		var err error
		switch decide(&p.facts) {
		case stepLand, stepAdopt:
			return txmgr.Next{Landing: p.landing}, nil
		case stepReadNotes:
			err = h.readNotes(ctx, j, p)
		case stepReadRoot:
			err = h.readRoot(ctx, j, p)
		case stepSign:
			err = h.launch(ctx, j, p)
			switch {
			case err != nil && !errors.Is(err, txmgr.ErrNoEarlyAttempt): // the attempt may be recorded
				return txmgr.Next{}, err
			case err == nil && p.class == "":
				return txmgr.Next{Track: true}, nil
			}
		default:
			h.Manager.PostponeEarlyAttempt(j)
			return txmgr.Next{Track: true}, h.Manager.Undecided(j)
		}
		if err != nil {
			h.Log.DebugContext(ctx, "no early attempt", "request_id", j.ID, "error", err)
			h.Manager.PostponeEarlyAttempt(j)
			return txmgr.Next{Track: true}, h.Manager.Undecided(j)
		}
	}
}

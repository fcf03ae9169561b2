package submission

import (
	"context"
	"errors"
	"slices"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/ledger"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// settlement is what became of a submission's live attempts.
type settlement int

const (
	// unsettled: no attempt can land any more, and none has.
	unsettled settlement = iota
	// alive: an attempt can still land, or has landed and is watched.
	alive
	// failedForGood: the submission has failed.
	failedForGood
)

// verdict is what one look at the chain says about one attempt.
type verdict int

const (
	mayLand verdict = iota
	landed
	failedOnChain
	expired
)

// horizon is how far the finalized chain has come, read before the statuses
// that are judged by it: a transaction that lands after its blockhash's last
// height does not exist, so one still unknown then is dead.
type horizon struct {
	finalizedHeight uint64
	// firstAvailable is the first slot whose history the endpoint can search.
	firstAvailable uint64
}

// judge is the one place that decides whether an attempt is dead. Failure on
// the chain counts once it is finalized, because the same bytes can succeed on
// another fork. Absence counts only from an endpoint whose history reaches back
// to the attempt.
func judge(a *Attempt, st *ledger.Status, h horizon) verdict {
	switch {
	case st != nil && st.Err == nil && st.Confirmation.AtLeast(ledger.Confirmed):
		return landed
	case st != nil && st.Err != nil && st.Confirmation.AtLeast(ledger.Finalized):
		return failedOnChain
	case st == nil && h.finalizedHeight > a.LastValidBlockHeight && h.firstAvailable <= a.BlockhashSlot:
		return expired
	default:
		return mayLand
	}
}

// settle finds out what became of the live attempts, before anything new is
// signed. An attempt of ours that landed makes the submission's outcome.
func (e *Engine) settle(ctx context.Context, c *Claimed) (settlement, error) {
	h, err := e.horizon(ctx)
	if err != nil {
		return unsettled, err
	}
	statuses, _, err := e.Chain.Statuses(ctx, signaturesOf(c.Live), true)
	if err != nil {
		return unsettled, err
	}
	var dead []solana.Signature
	var onChain *shieldpool.TransactionError
	for i := range c.Live {
		switch judge(&c.Live[i], statuses[i], h) {
		case landed:
			return alive, e.land(ctx, c, c.Live[i].Signature, statuses[i])
		case failedOnChain:
			onChain = statuses[i].Err
			dead = append(dead, c.Live[i].Signature)
		case expired:
			e.Observer.Attempt("expired")
			dead = append(dead, c.Live[i].Signature)
		case mayLand:
		}
	}
	if err := e.bury(ctx, c, dead); err != nil {
		return unsettled, err
	}
	if len(c.Live) > 0 {
		return alive, nil
	}
	if onChain != nil {
		return e.afterFailure(ctx, c, onChain)
	}
	return unsettled, nil
}

func (e *Engine) horizon(ctx context.Context) (h horizon, err error) {
	if h.finalizedHeight, err = e.Chain.BlockHeight(ctx, ledger.Finalized); err != nil {
		return h, err
	}
	h.firstAvailable, err = e.Chain.FirstAvailableBlock(ctx)
	return h, err
}

// bury marks attempts as dead, in the database and in the claim.
func (e *Engine) bury(ctx context.Context, c *Claimed, dead []solana.Signature) error {
	if len(dead) == 0 {
		return nil
	}
	if err := e.Store.BuryAttempts(ctx, c.Lease(), dead); err != nil {
		return err
	}
	gone := map[solana.Signature]bool{}
	for _, s := range dead {
		gone[s] = true
	}
	var live []Attempt
	for _, a := range c.Live {
		if gone[a.Signature] {
			c.Dead = append(c.Dead, a)
		} else {
			live = append(live, a)
		}
	}
	c.Live = live
	return nil
}

// errUnconfirmed says that an attempt succeeded in a block that is not yet
// confirmed: whose landing a spent nullifier is shows only then.
var errUnconfirmed = errors.New("an attempt is on the chain, not yet confirmed")

// ownLanding looks every attempt ever made up, the dead ones too: a nullifier
// that is spent may have been spent by us.
func (e *Engine) ownLanding(ctx context.Context, c *Claimed) (*Attempt, *ledger.Status, error) {
	for some := range slices.Chunk(slices.Concat(c.Live, c.Dead), statusBatch) {
		statuses, _, err := e.Chain.Statuses(ctx, signaturesOf(some), true)
		if err != nil {
			return nil, nil, err
		}
		for i, st := range statuses {
			switch {
			case st == nil || st.Err != nil:
			case st.Confirmation.AtLeast(ledger.Confirmed):
				return &some[i], st, nil
			default:
				return nil, nil, errUnconfirmed
			}
		}
	}
	return nil, nil, nil
}

func signaturesOf(attempts []Attempt) []solana.Signature {
	out := make([]solana.Signature, len(attempts))
	for i := range attempts {
		out[i] = attempts[i].Signature
	}
	return out
}

package sweep

import (
	"context"
	"fmt"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
)

// resolveOpen tracks the payers' open sweeps, including those of other processes, until all
// have a final outcome. It sends a transaction's bytes again until the transaction is finalized
// on the chain, or can never land.
func (r *run) resolveOpen(ctx context.Context) error {
	for {
		open, newestSlot, err := r.session.OpenAttempts(ctx, r.payers(), append(r.payers(), r.to...))
		if err != nil {
			return fmt.Errorf("read sweeps: %w", err)
		}
		if r.minContextSlot = max(r.minContextSlot, newestSlot); len(open) == 0 {
			return nil
		}
		waitingFor, err := r.searchAttempts(ctx, open)
		if err != nil {
			return err
		}
		if waitingFor == "" {
			continue // all are resolved
		}
		if err := r.pause(ctx, waitingFor); err != nil {
			return err
		}
	}
}

// searchAttempts searches the chain once for open attempts, and resolves those whose
// outcome is final. It returns what the run waits for; "" when all are resolved.
func (r *run) searchAttempts(ctx context.Context, open []Attempt) (waitingFor string, err error) {
	signatures := make([]solana.Signature, len(open))
	for i := range open {
		signatures[i] = open[i].Signature
	}
	search, err := r.Chain.Search(ctx, signatures)
	if err != nil {
		// Without an answer no attempt is known to be on the chain, so attempts whose rebroadcast
		// is due are sent again.
		search = onchain.SearchResult{Statuses: make([]*onchain.Status, len(open))}
		waitingFor = fmt.Sprintf("the chain to report %d transactions (%v)", len(open), err)
	}
	for i := range open {
		waiting, err := r.resolve(ctx, &open[i], &search, search.Statuses[i])
		if err != nil {
			return "", err
		}
		if waiting != "" && waitingFor == "" {
			waitingFor = waiting
		}
	}
	return waitingFor, nil
}

// resolve acts on what a search found about one attempt. It returns what the run waits for; ""
// when the attempt is resolved.
func (r *run) resolve(ctx context.Context, a *Attempt, search *onchain.SearchResult, st *onchain.Status) (waitingFor string, err error) {
	switch fate := search.Fate(st, a.BlockhashSlot, a.LastValidBlockHeight, time.Time{}); {
	case fate == onchain.Landed && st.Confirmation.AtLeast(onchain.Finalized):
		r.result.Transactions++
		r.result.Lamports += a.Lamports()
		r.result.Fees += a.Fee
		return "", r.end(ctx, a, EndLanded, st.Slot)
	case fate == onchain.FailedOnChain:
		r.result.Failed++
		r.result.Fees += a.Fee
		return "", r.end(ctx, a, EndFailed, st.Slot)
	case fate == onchain.Expired:
		r.result.Expired++
		return "", r.end(ctx, a, EndExpired, 0)
	case fate == onchain.Forgotten:
		return fmt.Sprintf("an endpoint whose history reaches back to slot %d, where a transaction of %s was signed: configure one with the role archive", a.BlockhashSlot, a.FeePayer), nil
	case st != nil:
		return "transactions to be finalized", nil
	}
	if !r.refused[a.Signature] && r.Now().Sub(r.lastSent[a.Signature]) >= r.Rebroadcast {
		r.send(ctx, a, false)
	}
	return "transactions to land or expire", nil
}

func (r *run) end(ctx context.Context, a *Attempt, end End, slot uint64) error {
	if err := r.session.Resolve(ctx, a.Signature, end, slot); err != nil {
		return fmt.Errorf("resolve a sweep: %w", err)
	}
	r.minContextSlot = max(r.minContextSlot, slot)
	r.Log.InfoContext(ctx, "sweep transaction resolved", "payer", a.FeePayer, "signature", a.Signature, "end", end, "lamports", a.Lamports(), "slot", slot)
	return nil
}

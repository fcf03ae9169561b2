package chain

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/onchain"
)

// Search looks up at most 256 signatures in an endpoint's whole history, preferably an archive's.
// It also returns which blockhashes had expired before the search: the fields of
// onchain.SearchResult from FinalizedSlot to ExpiredBefore. They show whether a transaction with an
// unknown signature can still land. Search asks other endpoints the same, if there are any. A
// decisive status counts when two endpoints report it; a decisive status that only one reports is
// marked as unverified. A blockhash counts as expired when two endpoints agree on that; see also
// recordCorroboration. So one endpoint that lies, has lost its history or is ahead of the chain
// cannot make the relay conclude that a transaction landed, or that it did not.
func (e *Endpoints) Search(ctx context.Context, signatures []solana.Signature) (onchain.SearchResult, error) {
	q := historyQuery("getSignatureStatuses", outbound.Read, func(ctx context.Context, source askedEndpoint) (onchain.SearchResult, error) {
		return e.search(ctx, source, signatures)
	})
	q.slot, q.unconfirmed = func(r onchain.SearchResult) uint64 { return r.Slot }, true
	first, origin, err := askWithIndex(ctx, e, q)
	if err != nil {
		return first, err
	}
	results, reports := []onchain.SearchResult{first}, []endpointReport{{e.all[origin], first.Statuses, first.Slot, first.FinalizedHeight}}
	statuses, done, outvoted := combineReports(reports, true, e.maxLag)
	if done || !e.hasOther(origin) {
		return first, nil
	}
	askOthers(ctx, e, e.corroborationQuery(signatures), origin, func(ep *endpoint, further corroboration) bool {
		if !further.expiryUsable {
			further.FinalizedHeight = 0
		}
		results, reports = append(results, further.SearchResult), append(reports, endpointReport{ep, further.Statuses, further.Slot, further.FinalizedHeight})
		statuses, done, outvoted = combineReports(reports, true, e.maxLag)
		return done && further.expiryUsable && difference(further.FinalizedHeight, first.FinalizedHeight) <= e.maxLag
	})
	e.compareReports(reports)
	// Expiry is not taken from an endpoint that is outvoted or reports an impossible height.
	usable := results[:0]
	for k, result := range results {
		if !outvoted[k] && reports[k].height > 0 {
			usable = append(usable, result)
		}
	}
	if len(usable) == 0 {
		return onchain.SearchResult{Statuses: statuses}, nil
	}
	out := combineSearches(usable, e.heights.recordCorroboration(len(usable) > 1, e.now()))
	out.Statuses = statuses
	return out, nil
}

// combineSearches combines searches for the same signatures. It returns the first one, changed so
// that a blockhash counts as expired only if two searches agree on that. A single search shows no
// expiry, unless singleSuffices is set.
func combineSearches(searches []onchain.SearchResult, singleSuffices bool) onchain.SearchResult {
	out := searches[0]
	switch {
	case len(searches) > 1:
		slices.SortFunc(searches, func(a, b onchain.SearchResult) int { return cmp.Compare(b.ExpiredSlot, a.ExpiredSlot) })
		out.ExpiredSlot = searches[1].ExpiredSlot
		slices.SortFunc(searches, func(a, b onchain.SearchResult) int { return b.ExpiredBefore.Compare(a.ExpiredBefore) })
		out.ExpiredBefore = searches[1].ExpiredBefore
		slices.SortFunc(searches, func(a, b onchain.SearchResult) int { return cmp.Compare(b.FinalizedHeight, a.FinalizedHeight) })
		out.FinalizedSlot, out.FinalizedHeight = searches[1].FinalizedSlot, searches[1].FinalizedHeight
		out.Slot = max(out.Slot, out.FinalizedSlot)
	case !singleSuffices:
		out.ExpiredSlot, out.ExpiredBefore, out.FinalizedHeight = 0, time.Time{}, 0
	}
	return out
}

// corroboration is a further endpoint's answer about signatures. Its statuses count even when its
// slots and heights are wrong. What it shows about expired blockhashes counts only when
// expiryUsable is set.
type corroboration struct {
	onchain.SearchResult
	expiryUsable bool
}

// corroborationQuery returns the query that searches at a further endpoint.
func (e *Endpoints) corroborationQuery(signatures []solana.Signature) query[corroboration] {
	const method = "getSignatureStatuses"
	return query[corroboration]{method: method, urgency: outbound.Read, do: func(ctx context.Context, source askedEndpoint) (corroboration, error) {
		found, err := e.search(ctx, source, signatures)
		switch {
		case err == nil:
			possible := e.checkSlot(e.all[source.index], method, found.Slot, source.best, true) == nil
			return corroboration{found, possible}, nil
		case onchain.KindOf(err) != onchain.KindContradiction:
			return corroboration{}, err
		}
		statuses, slot, err := source.Statuses(ctx, signatures, true)
		return corroboration{SearchResult: onchain.SearchResult{Statuses: statuses, Slot: slot}}, err
	}}
}

// search searches at one endpoint.
func (e *Endpoints) search(ctx context.Context, source askedEndpoint, signatures []solana.Signature) (onchain.SearchResult, error) {
	final, err := tip(ctx, source, onchain.Finalized)
	if err == nil {
		err = e.checkBlock(source.index, final)
	}
	if err != nil {
		return onchain.SearchResult{}, err
	}
	first, err := source.FirstAvailable(ctx)
	if err != nil {
		return onchain.SearchResult{}, err
	}
	statuses, slot, err := source.Statuses(ctx, signatures, true)
	if err == nil {
		// One URL may stand for several nodes. The node that answers here may be behind the one
		// that reported the finalized block, and then does not know all transactions up to that
		// block.
		err = onchain.CheckSlot("getSignatureStatuses", slot, final.slot)
	}
	if err != nil {
		return onchain.SearchResult{}, err
	}
	found := onchain.SearchResult{Statuses: statuses, Slot: slot, FinalizedSlot: final.slot, FinalizedHeight: final.height, FirstAvailable: first}
	found.ExpiredSlot, found.ExpiredBefore = e.heights.recordFinalized(source.index, final, max(slot, source.best), e.now())
	return found, nil
}

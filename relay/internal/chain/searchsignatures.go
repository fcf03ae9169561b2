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

// Search looks up at most 256 signatures in an endpoint's whole history, preferably an
// archive's. It also returns the horizon, the point before which no further transaction can
// land: it shows whether an unknown signature proves anything. When the endpoint does not know a
// signature, or its answer is decisive, other endpoints are asked too, each for its statuses and
// its horizon. A decisive status needs two endpoints; otherwise it is unverified. The horizon
// reaches only as far as two endpoints agree. An endpoint that lies, has lost its history or is
// ahead of the chain must not make the relay conclude that a transaction landed, or that it did
// not.
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
	askOthers(ctx, e, e.corroborationQuery(signatures), origin, func(ep *endpoint, w corroboration) bool {
		if !w.horizonUsable {
			w.FinalizedHeight = 0
		}
		results, reports = append(results, w.SearchResult), append(reports, endpointReport{ep, w.Statuses, w.Slot, w.FinalizedHeight})
		statuses, done, outvoted = combineReports(reports, true, e.maxLag)
		return done && w.horizonUsable && difference(w.FinalizedHeight, first.FinalizedHeight) <= e.maxLag
	})
	e.compareReports(reports)
	// The horizon of an endpoint that is outvoted or reports an impossible height is not used.
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

// combineSearches returns the first of the searches for the same signatures, with the horizon
// that two of them agree on. With a single search, an unknown signature proves something only
// if singleSuffices is set.
func combineSearches(searches []onchain.SearchResult, singleSuffices bool) onchain.SearchResult {
	out := searches[0]
	switch {
	case len(searches) > 1:
		slices.SortFunc(searches, func(a, b onchain.SearchResult) int { return cmp.Compare(b.ExpiredSlot, a.ExpiredSlot) })
		out.ExpiredSlot = searches[1].ExpiredSlot
		slices.SortFunc(searches, func(a, b onchain.SearchResult) int { return b.ExpiredAt.Compare(a.ExpiredAt) })
		out.ExpiredAt = searches[1].ExpiredAt
		slices.SortFunc(searches, func(a, b onchain.SearchResult) int { return cmp.Compare(b.FinalizedHeight, a.FinalizedHeight) })
		out.FinalizedSlot, out.FinalizedHeight = searches[1].FinalizedSlot, searches[1].FinalizedHeight
		out.Slot = max(out.Slot, out.FinalizedSlot)
	case !singleSuffices:
		out.ExpiredSlot, out.ExpiredAt, out.FinalizedHeight = 0, time.Time{}, 0
	}
	return out
}

// corroboration is a further endpoint's answer about signatures. Its statuses count even when its
// slots and heights are wrong; its horizon counts only when horizonUsable is set.
type corroboration struct {
	onchain.SearchResult
	horizonUsable bool
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
		// One URL may stand for several nodes. A node that has not reached the horizon does
		// not know everything that landed before it.
		err = onchain.CheckSlot("getSignatureStatuses", slot, final.slot)
	}
	if err != nil {
		return onchain.SearchResult{}, err
	}
	found := onchain.SearchResult{Statuses: statuses, Slot: slot, FinalizedSlot: final.slot, FinalizedHeight: final.height, FirstAvailable: first}
	found.ExpiredSlot, found.ExpiredAt = e.heights.recordFinalized(source.index, final, max(slot, source.best), e.now())
	return found, nil
}

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

// Search looks up to 256 signatures up in an endpoint's whole history, an archive's first,
// and returns the horizon that shows whether an unknown signature proves anything. When the
// endpoint does not know a signature, or its answer is decisive, other endpoints are asked
// too, each for its statuses and its horizon. A decisive status needs two endpoints;
// otherwise it is unverified. The horizon is the point before which no further transaction
// can land, and reaches only as far as two endpoints agree. An endpoint that lies, has lost
// its history or is ahead of the chain must not make the relay conclude that a transaction
// landed, or that none did.
func (e *Endpoints) Search(ctx context.Context, signatures []solana.Signature) (onchain.Look, error) {
	q := past("getSignatureStatuses", outbound.Read, func(ctx context.Context, at askedEndpoint) (onchain.Look, error) {
		return e.search(ctx, at, signatures)
	})
	q.slot, q.unconfirmed = func(l onchain.Look) uint64 { return l.Slot }, true
	first, by, err := askWhom(ctx, e, q)
	if err != nil {
		return first, err
	}
	looks, words := []onchain.Look{first}, []endpointWord{{e.all[by], first.Statuses, first.Slot, first.FinalizedHeight}}
	statuses, done, outvoted := conclude(words, true, e.maxLag)
	if done || !e.another(by) {
		return first, nil
	}
	others(ctx, e, e.witnesses(signatures), by, func(ep *endpoint, w witness) bool {
		if !w.horizon {
			w.FinalizedHeight = 0
		}
		looks, words = append(looks, w.Look), append(words, endpointWord{ep, w.Statuses, w.Slot, w.FinalizedHeight})
		statuses, done, outvoted = conclude(words, true, e.maxLag)
		return done && w.horizon && apart(w.FinalizedHeight, first.FinalizedHeight) <= e.maxLag
	})
	e.compareWords(words)
	// The horizon of an endpoint that is outvoted or reports an impossible height is not used.
	useful := looks[:0]
	for k, look := range looks {
		if !outvoted[k] && words[k].height > 0 {
			useful = append(useful, look)
		}
	}
	if looks = useful; len(looks) == 0 {
		return onchain.Look{Statuses: statuses}, nil
	}
	out := together(looks, e.heights.seconded(len(looks) > 1, e.now()))
	out.Statuses = statuses
	return out, nil
}

// together returns the first of several looks at the same signatures, with the horizon that
// two of them agree on. With a single look, an unknown signature proves nothing unless
// enough is set.
func together(looks []onchain.Look, enough bool) onchain.Look {
	out := looks[0]
	switch {
	case len(looks) > 1:
		slices.SortFunc(looks, func(a, b onchain.Look) int { return cmp.Compare(b.ExpiredSlot, a.ExpiredSlot) })
		out.ExpiredSlot = looks[1].ExpiredSlot
		slices.SortFunc(looks, func(a, b onchain.Look) int { return b.ExpiredAt.Compare(a.ExpiredAt) })
		out.ExpiredAt = looks[1].ExpiredAt
		slices.SortFunc(looks, func(a, b onchain.Look) int { return cmp.Compare(b.FinalizedHeight, a.FinalizedHeight) })
		out.FinalizedSlot, out.FinalizedHeight = looks[1].FinalizedSlot, looks[1].FinalizedHeight
		out.Slot = max(out.Slot, out.FinalizedSlot)
	case !enough:
		out.ExpiredSlot, out.ExpiredAt, out.FinalizedHeight = 0, time.Time{}, 0
	}
	return out
}

// witness is a further endpoint's answer about signatures. Its statuses count even when its
// slots and heights are wrong; horizon reports that its horizon is usable too.
type witness struct {
	onchain.Look
	horizon bool
}

// witnesses returns the query that is Search at further endpoints.
func (e *Endpoints) witnesses(signatures []solana.Signature) query[witness] {
	const method = "getSignatureStatuses"
	return query[witness]{method: method, urgency: outbound.Read, do: func(ctx context.Context, at askedEndpoint) (witness, error) {
		look, err := e.search(ctx, at, signatures)
		switch {
		case err == nil:
			possible := e.reached(e.all[at.index], method, look.Slot, at.best, true) == nil
			return witness{look, possible}, nil
		case onchain.KindOf(err) != onchain.KindContradiction:
			return witness{}, err
		}
		statuses, slot, err := at.Statuses(ctx, signatures, true)
		return witness{Look: onchain.Look{Statuses: statuses, Slot: slot}}, err
	}}
}

// search is Search at one endpoint.
func (e *Endpoints) search(ctx context.Context, at askedEndpoint, signatures []solana.Signature) (onchain.Look, error) {
	final, err := tip(ctx, at, onchain.Finalized)
	if err == nil {
		err = e.plausible(at.index, final)
	}
	if err != nil {
		return onchain.Look{}, err
	}
	first, err := at.FirstAvailable(ctx)
	if err != nil {
		return onchain.Look{}, err
	}
	statuses, slot, err := at.Statuses(ctx, signatures, true)
	if err == nil {
		// One URL may stand for several nodes. A node that has not reached the horizon does
		// not know everything that landed before it.
		err = onchain.CheckSlot("getSignatureStatuses", slot, final.slot)
	}
	if err != nil {
		return onchain.Look{}, err
	}
	look := onchain.Look{Statuses: statuses, Slot: slot, FinalizedSlot: final.slot, FinalizedHeight: final.height, FirstAvailable: first}
	look.ExpiredSlot, look.ExpiredAt = e.heights.finalized(at.index, final, max(slot, at.best), e.now())
	return look, nil
}

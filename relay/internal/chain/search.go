package chain

import (
	"cmp"
	"context"
	"slices"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/judge"
	"github.com/relaypool/relaypool/relay/internal/ledger"
)

// Search looks up to 256 signatures up in all that an endpoint knows, an
// archive's history first, together with what tells whether its not knowing one
// means anything. When it does not know one, others are asked too, each for its
// statuses and its horizon: who knows a signature is believed, and that no further
// transaction can land before a block only as far as two endpoints say so. Whoever
// loses its history, or is ahead of the chain, must not make the relay think that
// nothing landed.
func (e *Endpoints) Search(ctx context.Context, signatures []solana.Signature) (ledger.Look, error) {
	last := -1
	q := past("getSignatureStatuses", judge.Read, func(ctx context.Context, at asked) (ledger.Look, error) {
		last = at.index
		return e.search(ctx, at, signatures)
	})
	first, err := ask(ctx, e, q)
	by := last
	if err != nil || !slices.Contains(first.Statuses, nil) || len(e.fit(q.roles...)) < 2 {
		return first, err
	}
	looks := []ledger.Look{first}
	for _, ep := range e.candidates(q.roles, q.method, q.urgency) {
		if ep.index == by {
			continue
		}
		permit, ok := ep.breaker.Try()
		if !ok {
			continue
		}
		// As if there were another to ask after it: nobody waits long for an opinion.
		look, err := attempt(ctx, e, ep, permit, q, 2)
		if err != nil {
			continue
		}
		if looks = append(looks, look); look.FinalizedHeight+e.maxLag >= first.FinalizedHeight {
			break
		}
	}
	enough := e.heights.seconded(len(looks) > 1, e.now())
	return together(looks, enough), nil
}

// together is what several looks at the same signatures say, the first one's
// unless the others know better. Of one alone, nothing follows from what it does
// not know, unless it is enough.
func together(looks []ledger.Look, enough bool) ledger.Look {
	out := looks[0]
	for _, l := range looks[1:] {
		for i, s := range l.Statuses {
			if out.Statuses[i] == nil {
				out.Statuses[i] = s
			}
		}
	}
	switch {
	case len(looks) > 1:
		slices.SortFunc(looks, func(a, b ledger.Look) int { return cmp.Compare(b.ExpiredSlot, a.ExpiredSlot) })
		out.ExpiredSlot = looks[1].ExpiredSlot
		slices.SortFunc(looks, func(a, b ledger.Look) int { return cmp.Compare(b.FinalizedHeight, a.FinalizedHeight) })
		out.FinalizedSlot, out.FinalizedHeight = looks[1].FinalizedSlot, looks[1].FinalizedHeight
		out.Slot = max(out.Slot, out.FinalizedSlot)
	case !enough:
		out.ExpiredSlot, out.FinalizedHeight = 0, 0
	}
	return out
}

// search is Search at one endpoint.
func (e *Endpoints) search(ctx context.Context, at asked, signatures []solana.Signature) (ledger.Look, error) {
	final, err := at.newest(ctx, ledger.Finalized)
	if err == nil {
		err = e.plausible(at.index, final)
	}
	if err != nil {
		return ledger.Look{}, err
	}
	first, err := at.firstAvailable(ctx)
	if err != nil {
		return ledger.Look{}, err
	}
	statuses, slot, err := at.Statuses(ctx, signatures, true)
	if err == nil {
		// Behind one URL may be several nodes: one that has not seen the horizon
		// does not know what landed before it.
		err = seen("getSignatureStatuses", slot, final.slot)
	}
	if err != nil {
		return ledger.Look{}, err
	}
	return ledger.Look{
		Statuses: statuses, Slot: slot, FinalizedSlot: final.slot, FinalizedHeight: final.height,
		ExpiredSlot: e.heights.finalized(at.index, final), FirstAvailable: first,
	}, nil
}

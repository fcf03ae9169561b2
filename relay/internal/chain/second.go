package chain

import (
	"context"
	"slices"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/judge"
	"github.com/relaypool/relaypool/relay/internal/ledger"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// An outcome does not rest on the word of one endpoint when several are
// configured: what one says is asked of another, and holds when both say so. With
// a single one to ask, its word is all there is.

const (
	// propagation is how many slots after its own a transaction that was confirmed is
	// known to every honest node; shortMemory is for how many all of them keep it.
	propagation = 16
	shortMemory = 150
)

// quiet is how long an endpoint that others contradict is not told of again in the log.
const quiet = 10 * time.Minute

// dispute notes that two endpoints contradict each other.
func (e *Endpoints) dispute(a, b *endpoint) {
	e.contradicted(a, b)
	e.contradicted(b, a)
}

// contradicted counts that the endpoint says what the other says otherwise, or,
// without another, that it tells of a slot or a height that nothing bears out.
func (e *Endpoints) contradicted(ep, by *endpoint) {
	now, name := e.now(), ""
	if by != nil {
		name = by.name
	}
	ep.mu.Lock()
	tell := ep.contradictedAt.IsZero() || now.Sub(ep.contradictedAt) > quiet
	ep.contradictions++
	ep.contradictedAt, ep.contradictedBy = now, name
	ep.mu.Unlock()
	e.observer.Contradicted(ep.name)
	switch {
	case !tell:
	case by == nil:
		e.log.Warn("RPC endpoint tells of slots or heights that nothing else bears out; these answers are not used", "endpoint", ep.name)
	default:
		e.log.Warn("RPC endpoints contradict each other; nothing is concluded from it", "endpoint", ep.name, "other", name)
	}
}

// another reports whether an endpoint other than by is configured that could be asked.
func (e *Endpoints) another(by int) bool {
	for _, ep := range e.all {
		if ep.index != by && (ep.has(RoleRead) || ep.has(RoleArchive)) && !ep.isForeign() {
			return true
		}
	}
	return false
}

// others asks the endpoints other than by, the best first, until one has said
// enough. None is waited for long.
func others[T any](ctx context.Context, e *Endpoints, q query[T], by int, enough func(*endpoint, T) bool) {
	for _, ep := range e.candidates([]Role{RoleRead, RoleArchive}, q.method, q.urgency) {
		if ep.index == by || ctx.Err() != nil {
			continue
		}
		permit, ok := ep.breaker.Try()
		if !ok {
			continue
		}
		if v, err := attempt(ctx, e, ep, permit, q, 2); err == nil && enough(ep, v) {
			return
		}
	}
}

// word is what one endpoint says of signatures, standing at a slot.
type word struct {
	by       *endpoint
	statuses []*ledger.Status
	slot     uint64
}

// conclude gives what follows from the words of endpoints, the first of which says
// most. What is Decisive has to be in two of them, else it is not verified; with
// absence, that a signature is not known, too. done says that no further word is
// needed, and outvoted that two do not know what the first says is over.
func conclude(words []word, absence bool) (statuses []*ledger.Status, done, outvoted bool) {
	statuses, done = make([]*ledger.Status, len(words[0].statuses)), true
	for i, first := range words[0].statuses {
		if !first.Decisive() && (first != nil || !absence) {
			statuses[i] = first
			continue
		}
		settled, unknown := false, 0
		statuses[i], settled, unknown = settle(first, words[1:], i)
		done = done && settled
		outvoted = outvoted || unknown > 1
	}
	return statuses, done, outvoted
}

// settle finds what two endpoints say of one signature. unknown counts those that do
// not know what the first says.
func settle(first *ledger.Status, others []word, i int) (status *ledger.Status, settled bool, unknown int) {
	claim := first // by the endpoint that says most
	for _, w := range others {
		second := w.statuses[i]
		switch {
		case second == nil && first == nil:
			return nil, true, 0
		case second == nil:
			unknown++
		case claim == nil && !second.Decisive():
			return second, true, 0
		case claim == nil:
			claim = second
		case sameEnd(claim, second):
			agreed := *claim
			agreed.Slot = min(claim.Slot, second.Slot)
			if !second.Confirmation.AtLeast(claim.Confirmation) {
				agreed.Confirmation = second.Confirmation
			}
			return &agreed, true, unknown
		}
	}
	if claim == nil {
		return nil, false, unknown
	}
	alone := *claim
	alone.Unverified = true
	return &alone, false, unknown
}

// bearOut asks other endpoints for the statuses that endpoint by gave and from
// which something follows, in one call for all.
func (e *Endpoints) bearOut(ctx context.Context, by int, signatures []solana.Signature, first slotted[[]*ledger.Status]) []*ledger.Status {
	words := []word{{e.all[by], first.value, first.slot}}
	statuses, done, _ := conclude(words, false)
	if done || !e.another(by) {
		return first.value
	}
	open := slices.DeleteFunc(indices(len(signatures)), func(i int) bool { return !first.value[i].Decisive() })
	wanted := make([]solana.Signature, len(open))
	for k, i := range open {
		wanted[k] = signatures[i]
	}
	others(ctx, e, query[slotted[[]*ledger.Status]]{
		// Its slot may be a lie: that it says the same counts.
		method: "getSignatureStatuses", urgency: judge.Read,
		do: func(ctx context.Context, at asked) (slotted[[]*ledger.Status], error) {
			return pair(at.Statuses(ctx, wanted, true))
		},
	}, by, func(ep *endpoint, said slotted[[]*ledger.Status]) bool {
		w := word{ep, make([]*ledger.Status, len(signatures)), said.slot}
		for k, i := range open {
			w.statuses[i] = said.value[k]
		}
		words = append(words, w)
		statuses, done, _ = conclude(words, false)
		return done
	})
	e.compareWords(words)
	return statuses
}

func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// compareWords notes which endpoints contradict the first.
func (e *Endpoints) compareWords(words []word) {
	for _, w := range words[1:] {
		for i, first := range words[0].statuses {
			if first.Decisive() && denies(first, w.statuses[i], w.slot) {
				e.dispute(words[0].by, w.by)
				break
			}
		}
	}
}

// sameEnd reports whether two statuses tell of the same success or failure.
func sameEnd(a, b *ledger.Status) bool { return sameError(a.Err, b.Err) }

func sameError(a, b *shieldpool.TransactionError) bool {
	return (a == nil) == (b == nil) && (a == nil || a.Error() == b.Error())
}

// denies reports whether an endpoint's word, of the slot at, says otherwise than
// another's, rather than that it has not come so far or forgets sooner.
func denies(first, second *ledger.Status, at uint64) bool {
	if second == nil {
		return at > first.Slot+propagation && at < first.Slot+shortMemory
	}
	return second.Confirmation.AtLeast(ledger.Confirmed) && (!sameEnd(first, second) || first.Slot != second.Slot)
}

// unverified is the error of an answer that no second endpoint gives, too.
func unverified(method string) error {
	return &ledger.Unavailable{
		Method: method, Kind: ledger.KindUnverified,
		Detail: "one endpoint says so and none of the others does: nothing is concluded before a second one says the same; GET /health names those that contradict each other or do not answer",
	}
}

// presence is what an endpoint says of an account of the pool's program.
type presence int

const (
	notTold presence = iota
	exists
	missing
)

// owns asks one endpoint whether the program owns the account.
func (e *Endpoints) owns(ctx context.Context, ep *endpoint, program, account solana.PublicKey) presence {
	found, _, err := ep.clients[judge.Read].Accounts(ctx, []solana.PublicKey{account}, ledger.Confirmed, 0)
	switch {
	case err != nil:
		return notTold
	case found[0] != nil && found[0].Owner.Equals(program):
		return exists
	default:
		return missing
	}
}

package chain

import (
	"context"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/onchain"
)

// A finding, such as a transaction's outcome, counts only when two endpoints report it. If no
// second read or archive endpoint serves the relay's chain, one report suffices.

// hasOther reports whether an endpoint other than the one with the index origin can be asked.
func (e *Endpoints) hasOther(origin int) bool {
	for _, ep := range e.all {
		if ep.index != origin && (ep.has(RoleRead) || ep.has(RoleArchive)) && !ep.isForeign() {
			return true
		}
	}
	return false
}

// askOthers asks the endpoints other than the one with the index origin, the best first, until
// enough returns true. Each call gets only a short time.
func askOthers[T any](ctx context.Context, e *Endpoints, q query[T], origin int, enough func(*endpoint, T) bool) {
	for _, ep := range e.candidates([]Role{RoleRead, RoleArchive}, q.method, q.urgency) {
		if ep.index == origin || ctx.Err() != nil {
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

// unverifiedError returns the error for an answer that no second endpoint confirms.
func unverifiedError(method string) error {
	return &onchain.Unavailable{
		Method: method, Kind: onchain.KindUnverified,
		Detail: "only one endpoint reports this: nothing is concluded before a second one confirms it; GET /health names endpoints that contradict each other or do not answer",
	}
}

// presence is one endpoint's report on whether an account of the pool's program exists.
type presence int

const (
	presenceUnknown presence = iota
	accountExists
	accountMissing
)

// accountPresence asks one endpoint whether the program owns the account.
func (e *Endpoints) accountPresence(ctx context.Context, ep *endpoint, program, account solana.PublicKey) presence {
	found, _, err := ep.clients[outbound.Read].Accounts(ctx, []solana.PublicKey{account}, onchain.Confirmed, 0)
	switch {
	case err != nil:
		return presenceUnknown
	case found[0] != nil && found[0].Owner.Equals(program):
		return accountExists
	default:
		return accountMissing
	}
}

// corroborate makes the query at other endpoints, because one endpoint's finding is not enough. The
// parameter first is the finding of the endpoint with the index origin. corroborate returns the
// finding that two endpoints report. reconcile returns true if two findings are the same, and then
// reduces its first argument to what both have in common. An endpoint that finds nothing still
// confirms the first finding if forgotten returns true for that endpoint: its accounts show that
// the transaction landed, although its history no longer contains the transaction.
func corroborate[T any](ctx context.Context, e *Endpoints, q query[*T], first *T, origin int, reconcile func(a, b *T) bool, forgotten func(*endpoint) bool) (*T, error) {
	found := []*T{first}
	var agreed *T
	askOthers(ctx, e, q, origin, func(ep *endpoint, second *T) bool {
		if second == nil {
			if forgotten(ep) {
				agreed = first
			}
			return agreed != nil
		}
		for _, f := range found {
			if reconcile(f, second) {
				agreed = f
				return true
			}
		}
		e.recordDispute(e.all[origin], ep)
		found = append(found, second)
		return false
	})
	if agreed == nil {
		return nil, unverifiedError(q.method)
	}
	return agreed, nil
}

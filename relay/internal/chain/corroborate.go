package chain

import (
	"bytes"
	"context"
	"slices"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// A finding, such as a transaction's outcome, counts only when two endpoints report it. If no
// second read or archive endpoint serves the relay's chain, one report suffices.

const (
	// propagationSlots is the number of slots after which every honest node knows a confirmed
	// transaction. statusCacheSlots is the number of slots for which every node keeps a
	// transaction's status.
	propagationSlots = 16
	statusCacheSlots = 150
)

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

// endpointReport is one endpoint's answer about signatures, and the slot of the answer. height is
// the height of the endpoint's finalized block; 0 when unknown. An unknown signature proves
// something only if the height is recent.
type endpointReport struct {
	endpoint *endpoint
	statuses []*onchain.Status
	slot     uint64
	height   uint64
}

// combineReports combines the answers of endpoints. A decisive status that only one answer reports
// is marked as unverified. If absence is set, the absence of a signature needs two answers too. The
// result done is true if no further answer is needed. The result outvoted marks each answer that
// reports a signature which two other answers do not know.
func combineReports(reports []endpointReport, absence bool, maxLag uint64) (statuses []*onchain.Status, done bool, outvoted []bool) {
	upToDate, reported := upToDateReports(reports, maxLag), make([]*onchain.Status, len(reports))
	statuses, done, outvoted = make([]*onchain.Status, len(reports[0].statuses)), true, make([]bool, len(reports))
	for i := range statuses {
		for k, r := range reports {
			reported[k] = r.statuses[i]
		}
		decided, unknownToTwo := false, false
		statuses[i], decided, unknownToTwo = combineStatuses(reported, upToDate, absence)
		done = done && decided
		for k := range reports {
			outvoted[k] = outvoted[k] || unknownToTwo && reported[k] != nil
		}
	}
	return statuses, done, outvoted
}

// upToDateReports marks the answers in which an unknown signature proves something: those whose
// height is at most maxLag below the second highest height.
func upToDateReports(reports []endpointReport, maxLag uint64) []bool {
	var first, second uint64
	for _, r := range reports {
		second = max(second, min(first, r.height))
		first = max(first, r.height)
	}
	out := make([]bool, len(reports))
	for k, r := range reports {
		out[k] = r.height > 0 && r.height+maxLag >= second
	}
	return out
}

// combineStatuses finds what two endpoints report of one signature. The parameter upToDate marks
// the answers in which an unknown signature counts. The result decided is true if no further answer
// is needed. The result outvoted is true if two endpoints do not know a signature that another one
// reports.
func combineStatuses(reported []*onchain.Status, upToDate []bool, absence bool) (status *onchain.Status, decided, outvoted bool) {
	var corroborated, mostDecisive *onchain.Status // what two report, and the most decisive single report
	missing := 0
	for k, a := range reported {
		if a == nil {
			if upToDate[k] {
				missing++
			}
			continue
		}
		if mostDecisive == nil || a.Decisive() && !mostDecisive.Decisive() {
			mostDecisive = a
		}
		for _, b := range reported[:k] {
			if b == nil || !sameOutcome(a, b) {
				continue
			}
			if common := commonStatus(a, b); corroborated == nil || !corroborated.Confirmation.AtLeast(common.Confirmation) {
				corroborated = common
			}
		}
	}
	switch {
	case mostDecisive == nil:
		return nil, !absence || missing > 1, false
	case corroborated != nil:
		someHigher := slices.ContainsFunc(reported, func(s *onchain.Status) bool { return s != nil && !corroborated.Confirmation.AtLeast(s.Confirmation) })
		return corroborated, !someHigher, false
	case absence && missing > 1:
		return nil, true, true
	case mostDecisive.Decisive():
		alone := *mostDecisive
		alone.Unverified = true
		return &alone, false, false
	default:
		return mostDecisive, !absence, false
	}
}

// commonStatus returns what two statuses with the same outcome have in common: the lower slot and
// the lower commitment level.
func commonStatus(a, b *onchain.Status) *onchain.Status {
	common := *a
	common.Slot = min(a.Slot, b.Slot)
	if !b.Confirmation.AtLeast(a.Confirmation) {
		common.Confirmation = b.Confirmation
	}
	return &common
}

// corroborateStatuses asks other endpoints about the decisive statuses that the endpoint with the
// index origin reported. It asks each endpoint about all of them in one call.
func (e *Endpoints) corroborateStatuses(ctx context.Context, origin int, signatures []solana.Signature, first slotted[[]*onchain.Status]) []*onchain.Status {
	reports := []endpointReport{{e.all[origin], first.value, first.slot, 0}}
	statuses, done, _ := combineReports(reports, false, e.maxLag)
	if done || !e.hasOther(origin) {
		return first.value
	}
	decisive := slices.DeleteFunc(indices(len(signatures)), func(i int) bool { return !first.value[i].Decisive() })
	wanted := make([]solana.Signature, len(decisive))
	for k, i := range decisive {
		wanted[k] = signatures[i]
	}
	askOthers(ctx, e, query[slotted[[]*onchain.Status]]{
		// The query does not check the slot: a status that equals the first one counts even
		// if the endpoint's slot is wrong.
		method: "getSignatureStatuses", urgency: outbound.Read,
		do: func(ctx context.Context, source askedEndpoint) (slotted[[]*onchain.Status], error) {
			return newSlotted(source.Statuses(ctx, wanted, true))
		},
	}, origin, func(ep *endpoint, answer slotted[[]*onchain.Status]) bool {
		report := endpointReport{ep, make([]*onchain.Status, len(signatures)), answer.slot, 0}
		for k, i := range decisive {
			report.statuses[i] = answer.value[k]
		}
		reports = append(reports, report)
		statuses, done, _ = combineReports(reports, false, e.maxLag)
		return done
	})
	e.compareReports(reports)
	return statuses
}

func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// sameOutcome reports whether two statuses report the same success or the same failure.
func sameOutcome(a, b *onchain.Status) bool { return sameError(a.Err, b.Err) }

func sameError(a, b *shieldpool.TransactionError) bool {
	return (a == nil) == (b == nil) && (a == nil || a.Error() == b.Error())
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

// CorroboratedAccount reads a finalized account, nil when it does not exist. If several endpoints
// can be asked, two of them have to report the same owner and the same data; until they do,
// CorroboratedAccount fails with the kind unverified.
func (e *Endpoints) CorroboratedAccount(ctx context.Context, key solana.PublicKey) (*onchain.Account, error) {
	q := query[*AccountAt]{
		method: "getMultipleAccounts", urgency: outbound.Read, roles: []Role{RoleRead}, unconfirmed: true,
		do: func(ctx context.Context, source askedEndpoint) (*AccountAt, error) {
			accounts, slot, err := source.Accounts(ctx, []solana.PublicKey{key}, onchain.Finalized, 0)
			if err != nil {
				return nil, err
			}
			return &AccountAt{accounts[0], slot}, nil
		},
		slot: func(a *AccountAt) uint64 { return a.Slot },
	}
	first, origin, err := askWithIndex(ctx, e, q)
	if err != nil {
		return nil, err
	}
	if e.hasOther(origin) {
		first, err = corroborate(ctx, e, q, first, origin, sameAccount, func(*endpoint) bool { return false })
		if err != nil {
			return nil, err
		}
	}
	return first.Account, nil
}

func sameAccount(a, b *AccountAt) bool {
	if a.Account == nil || b.Account == nil {
		return a.Account == b.Account
	}
	return a.Account.Owner.Equals(b.Account.Owner) && bytes.Equal(a.Account.Data, b.Account.Data)
}

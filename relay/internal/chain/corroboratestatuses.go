package chain

import (
	"context"
	"slices"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

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

// sameOutcome reports whether two statuses report the same success or the same failure.
func sameOutcome(a, b *onchain.Status) bool { return sameError(a.Err, b.Err) }

func sameError(a, b *shieldpool.TransactionError) bool {
	return (a == nil) == (b == nil) && (a == nil || a.Error() == b.Error())
}

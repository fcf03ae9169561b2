package chain

import (
	"fmt"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
)

const (
	// propagationSlots is the number of slots after which every honest node knows a confirmed
	// transaction. statusCacheSlots is the number of slots for which every node keeps a
	// transaction's status.
	propagationSlots = 16
	statusCacheSlots = 150
)

// A contradiction is logged only if the endpoint had none in the last contradictionLogInterval.
const contradictionLogInterval = 10 * time.Minute

// recordDispute records that two endpoints contradict each other.
func (e *Endpoints) recordDispute(a, b *endpoint) {
	e.recordContradiction(a, b)
	e.recordContradiction(b, a)
}

// recordContradiction counts an answer of ep that is contradicted. The parameter other is the
// endpoint that contradicts the answer; nil when ep reports a slot or a height that no other
// endpoint comes near.
func (e *Endpoints) recordContradiction(ep, other *endpoint) {
	now, name := e.now(), ""
	if other != nil {
		name = other.name
	}
	ep.mu.Lock()
	shouldLog := ep.contradictedAt.IsZero() || now.Sub(ep.contradictedAt) > contradictionLogInterval
	ep.contradictions++
	ep.contradictedAt, ep.contradictedBy = now, name
	ep.mu.Unlock()
	e.observer.EndpointContradicted(ep.name)
	switch {
	case !shouldLog:
	case other == nil:
		e.log.Warn("rpc endpoint reports slots or heights that no other endpoint confirms; its answers are not used", "endpoint", ep.name)
	default:
		e.log.Warn("rpc endpoints contradict each other; their answers are not used", "endpoint", ep.name, "other", name)
	}
}

// compareReports records which endpoints contradict the first report.
func (e *Endpoints) compareReports(reports []endpointReport) {
	for _, other := range reports[1:] {
		for i, first := range reports[0].statuses {
			if first.Decisive() && contradicts(first, other.statuses[i], other.slot) {
				e.recordDispute(reports[0].endpoint, other.endpoint)
				break
			}
		}
	}
}

// contradicts reports whether the second status, read at secondSlot, contradicts the first. The
// second endpoint does not contradict the first if it is only behind, or keeps statuses for a
// shorter time.
func contradicts(first, second *onchain.Status, secondSlot uint64) bool {
	if second == nil {
		return secondSlot > first.Slot+propagationSlots && secondSlot < first.Slot+statusCacheSlots
	}
	return second.Confirmation.AtLeast(onchain.Confirmed) && (!sameOutcome(first, second) || first.Slot != second.Slot)
}

// contradiction is the error for a block height that is impossible.
func contradiction(method, format string, args ...any) error {
	return &onchain.Unavailable{Method: method, Kind: onchain.KindContradiction, Detail: fmt.Sprintf(format, args...)}
}

// recordRefusedHeight counts a height that is not used, unless recordHeightDispute has counted it.
func (e *Endpoints) recordRefusedHeight(i, contradictedBy int) {
	if contradictedBy < 0 {
		e.recordContradiction(e.all[i], nil)
	}
}

// recordHeightDispute records that the heights of the endpoints i and contradictedBy contradict
// each other. The contradiction counts against both endpoints, because it is unknown which one is
// wrong. contradictedBy is -1 for none.
func (e *Endpoints) recordHeightDispute(i, contradictedBy int) {
	if contradictedBy < 0 {
		return
	}
	for _, ep := range []*endpoint{e.all[i], e.all[contradictedBy]} {
		ep.mu.Lock()
		ep.lastError, ep.errorAt = onchain.KindContradiction, e.now()
		ep.mu.Unlock()
	}
	e.recordDispute(e.all[i], e.all[contradictedBy])
}

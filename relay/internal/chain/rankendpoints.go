package chain

import (
	"cmp"
	"slices"

	"github.com/relaypool/relaypool/relay/internal/outbound"
)

// candidates returns the endpoints that can answer, the best first: ordered by role, by remaining
// budget, by lag, by the cost of the method at the endpoint, and by the configured order.
func (e *Endpoints) candidates(roles []Role, method string, urgency outbound.Urgency) []*endpoint {
	now := e.now()
	type candidate struct {
		*endpoint
		role, exhausted, lagging, rank int
	}
	var ranked []candidate
	for _, ep := range e.all {
		role := slices.IndexFunc(roles, ep.has)
		if role < 0 || ep.isForeign() {
			continue
		}
		p := candidate{endpoint: ep, role: role, rank: ep.meter.Rank(method, now)}
		if !ep.budget.HasRoom(urgency) {
			p.exhausted = 1
		}
		if lag, at := e.slots.Lag(ep.index); lag > e.maxLag && now.Sub(at) < 2*e.probe {
			p.lagging = 1
		}
		ranked = append(ranked, p)
	}
	slices.SortStableFunc(ranked, func(a, b candidate) int {
		return cmp.Or(a.role-b.role, a.exhausted-b.exhausted, a.lagging-b.lagging, a.rank-b.rank)
	})
	out := make([]*endpoint, len(ranked))
	for i, p := range ranked {
		out[i] = p.endpoint
	}
	return out
}

func (ep *endpoint) has(role Role) bool { return slices.Contains(ep.roles, role) }

// withRole returns the endpoints that have one of the roles and serve the relay's chain.
func (e *Endpoints) withRole(roles ...Role) (out []*endpoint) {
	for _, ep := range e.all {
		if slices.ContainsFunc(roles, ep.has) && !ep.isForeign() {
			out = append(out, ep)
		}
	}
	return out
}

func (ep *endpoint) hasOnly(role Role) bool {
	return !slices.ContainsFunc(ep.roles, func(r Role) bool { return r != role })
}

// configuredWith returns the endpoints with the role, whatever chain they serve.
func (e *Endpoints) configuredWith(role Role) (out []*endpoint) {
	for _, ep := range e.all {
		if ep.has(role) {
			out = append(out, ep)
		}
	}
	return out
}

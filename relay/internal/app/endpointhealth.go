package app

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/onchain"
)

const (
	// maxLag is how many slots an endpoint may be behind the others. At 0.2 to 0.4 s a slot, that
	// is one to two minutes, more than a cache or load balancer can cause.
	maxLag = 300
	// contradictionShownFor is how long an endpoint counts as unhealthy after it has
	// contradicted others, or itself.
	contradictionShownFor = time.Minute
)

func (a *App) checkEndpoints(context.Context) error {
	return endpointsProblem(a.endpoints.Status(), time.Now())
}

// endpointsProblem names every unhealthy endpoint, and why.
func endpointsProblem(all []chain.EndpointStatus, now time.Time) error {
	var problems []string
	for _, e := range all {
		switch {
		case e.Foreign:
			problems = append(problems, e.Name+" serves another chain and is not used: correct its URL")
		case e.Breaker != outbound.Closed:
			problems = append(problems, fmt.Sprintf("%s keeps failing, so the relay sends it nothing but probes: its last error, %s ago, was %s", e.Name, age(now, e.LastErrorAt), e.LastError))
		case e.LastError == onchain.KindContradiction && now.Sub(e.LastErrorAt) < contradictionShownFor:
			problems = append(problems, e.Name+" contradicts other endpoints, or itself, on the chain's block height: compare its getEpochInfo with an explorer's, and remove the endpoint that is wrong")
		case e.Lag > maxLag:
			problems = append(problems, fmt.Sprintf("%s is %d slots behind the others", e.Name, e.Lag))
		}
		if contradiction := contradictionOf(&e, now); contradiction != "" {
			problems = append(problems, contradiction)
		}
	}
	return joinProblems(problems)
}

// contradictionOf describes the contradiction between an endpoint and others. Two endpoints that
// contradict each other are described once, under the name that sorts first.
func contradictionOf(e *chain.EndpointStatus, now time.Time) string {
	switch {
	case e.ContradictedAt.IsZero() || now.Sub(e.ContradictedAt) > contradictionShownFor || e.ContradictedBy != "" && e.ContradictedBy < e.Name:
		return ""
	case e.ContradictedBy == "":
		return fmt.Sprintf("%s reported a slot or a height that no other endpoint confirms, %s ago; such answers are not used: report it to its provider, or remove it", e.Name, age(now, e.ContradictedAt))
	default:
		return fmt.Sprintf("%s and %s contradict each other, the last time %s ago: one of them is wrong, and work that depends on their answers waits: compare with a third endpoint, and remove the one that is wrong",
			e.Name, e.ContradictedBy, age(now, e.ContradictedAt))
	}
}

// endpointsMessage returns the message of the health check "rpc" while all endpoints are healthy.
func endpointsMessage(all []chain.EndpointStatus) string {
	var readers []string
	for _, e := range all {
		if slices.Contains(e.Roles, chain.RoleRead) || slices.Contains(e.Roles, chain.RoleArchive) {
			readers = append(readers, e.Name)
		}
	}
	if len(readers) == 1 {
		return fmt.Sprintf("ok; landings, failures and finality rest on %s alone: add a second endpoint, of another provider, to confirm them", readers[0])
	}
	return "ok"
}

package chainwatch

import (
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/poolcheck"
)

// An endpoint that failed less than failureMaxAge ago is tried after the others.
const failureMaxAge = 10 * time.Minute

// endpointState is what is kept about one endpoint between checks.
type endpointState struct {
	// serverHash is the seeded hash of the URL from which genesis was read, and of the authorities
	// that were trusted.
	serverHash uint64
	genesis    solana.Hash
	genesisAt  time.Time
	failedAt   time.Time
}

// checker makes the checks of one RelayPool, one at a time.
type checker struct {
	dial    func(url, ca string, finalized bool) (poolcheck.Reader, error)
	now     func() time.Time
	timeout time.Duration
	seed    maphash.Seed
	// endpoints has an entry for each endpoint, by its name.
	endpoints map[string]*endpointState
	// slot and slotAt are the slot and the time of the last good answer.
	slot   uint64
	slotAt time.Time
}

// answer is the result of one check: a report, or why there is none.
type answer struct {
	report poolcheck.Report
	ok     bool
	cause  string
}

// check asks one endpoint after the other until one answers. If all answer and serve another
// chain, the report says so.
func (c *checker) check(ctx context.Context, q *Query) answer {
	target := q.Target
	target.Extra = q.Payers
	var failures []string
	var foreignFacts *poolcheck.Facts
	foreignCount := 0
	for _, e := range c.order(q.Endpoints) {
		facts, err := c.readEndpoint(ctx, &e, target, q.Finalized)
		if err == nil {
			c.slot, c.slotAt = facts.Slot, c.now()
			c.stateOf(e.Name).failedAt = time.Time{}
			return answer{report: poolcheck.Evaluate(facts), ok: true}
		}
		if ctx.Err() != nil {
			return answer{cause: "the operator is stopping"}
		}
		c.stateOf(e.Name).failedAt = c.now()
		failures = append(failures, "endpoint "+e.Name+": "+err.Error())
		if errors.Is(err, errForeign) {
			foreignFacts = &facts
			foreignCount++
		}
	}
	if foreignFacts != nil && foreignCount == len(q.Endpoints) {
		return answer{report: poolcheck.Evaluate(*foreignFacts), ok: true}
	}
	if len(failures) == 0 {
		return answer{cause: "no endpoint has the role Read"}
	}
	return answer{cause: "no RPC endpoint answers: " + strings.Join(failures, "; ")}
}

// order puts endpoints that failed recently after the others.
func (c *checker) order(all []Endpoint) []Endpoint {
	now := c.now()
	rank := func(e Endpoint) int {
		if state := c.endpoints[e.Name]; state != nil && !state.failedAt.IsZero() && now.Sub(state.failedAt) < failureMaxAge {
			return 1
		}
		return 0
	}
	ordered := slices.Clone(all)
	slices.SortStableFunc(ordered, func(a, b Endpoint) int { return rank(a) - rank(b) })
	return ordered
}

func (c *checker) stateOf(name string) *endpointState {
	if c.endpoints[name] == nil {
		c.endpoints[name] = new(endpointState)
	}
	return c.endpoints[name]
}

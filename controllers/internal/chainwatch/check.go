package chainwatch

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/poolcheck"
	"github.com/relaypool/relaypool/relay/rpc"
)

const (
	// genesisMaxAge is how long an endpoint's genesis hash is cached.
	genesisMaxAge = time.Hour
	// An endpoint that failed less than failureMaxAge ago is tried after the others.
	failureMaxAge = 10 * time.Minute
	// maxSlotsBehind is how many slots an answer may be behind the last good answer, because
	// two endpoints are never quite at the same slot. An answer that is further behind is
	// rejected while the last good answer is younger than slotMaxAge. Without this limit of
	// time, one wrong slot, far too high, would make all later answers count as behind.
	maxSlotsBehind = 150
	slotMaxAge     = 2 * time.Minute
)

// endpointState is what is kept about one endpoint between checks.
type endpointState struct {
	// urlHash is the seeded hash of the URL from which genesis was read.
	urlHash   uint64
	genesis   solana.Hash
	genesisAt time.Time
	failedAt  time.Time
}

// checker makes the checks of one RelayPool, one at a time.
type checker struct {
	dial    func(url string, finalized bool) (poolcheck.Reader, error)
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

var (
	errForeign = errors.New("serves another chain")
	errBehind  = errors.New("is far behind the slot that was read before, and is not used until it has caught up")
)

// readEndpoint reads one endpoint, within the timeout. If the error is errForeign, the facts
// contain the genesis hash of the endpoint's chain.
func (c *checker) readEndpoint(ctx context.Context, e *Endpoint, t poolcheck.Target, finalized bool) (poolcheck.Facts, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, rpc.ErrLimit)
	defer cancel()
	facts := poolcheck.Facts{Target: t}
	url, err := e.URL(ctx)
	if err != nil {
		return facts, err
	}
	r, err := c.dial(url, finalized)
	if err != nil {
		return facts, err
	}
	if facts.Genesis, err = c.genesis(ctx, e.Name, url, r); err != nil {
		return facts, err
	}
	if !t.Genesis.IsZero() && facts.Genesis != t.Genesis {
		facts.Read(ctx, r) // reads nothing from another chain, and records why
		return facts, fmt.Errorf("%w: its genesis hash is %s", errForeign, facts.Genesis)
	}
	facts.Read(ctx, r)
	if facts.AccountsErr != nil {
		return facts, facts.AccountsErr
	}
	if facts.Slot+maxSlotsBehind < c.slot && c.now().Sub(c.slotAt) < slotMaxAge {
		return facts, errBehind
	}
	return facts, nil
}

// genesis returns the genesis hash. It reads the hash once an hour, and when the URL has
// changed.
func (c *checker) genesis(ctx context.Context, name, url string, r poolcheck.Reader) (solana.Hash, error) {
	state, hash := c.stateOf(name), maphash.String(c.seed, url)
	if state.urlHash == hash && !state.genesisAt.IsZero() && c.now().Sub(state.genesisAt) < genesisMaxAge {
		return state.genesis, nil
	}
	genesis, err := r.GenesisHash(ctx)
	if err != nil {
		return solana.Hash{}, err
	}
	state.urlHash, state.genesis, state.genesisAt = hash, genesis, c.now()
	return genesis, nil
}

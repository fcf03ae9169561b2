package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/poolcheck"
	"github.com/relaypool/relaypool/relay/rpc"
)

// maxLag is the number of slots that an endpoint may be behind the best one. At 0.2 to 0.4 s
// a slot, that is one to two minutes, more than a cache or load balancer can cause.
const maxLag = 300

// probedEndpoint is one endpoint.
type probedEndpoint struct {
	Name  string          `json:"name"`
	State poolcheck.State `json:"state"`
	Roles []string        `json:"roles"`
	// Genesis is empty, and the numbers are omitted, if the endpoint did not return them.
	Genesis string  `json:"genesis,omitempty"`
	Version string  `json:"version,omitempty"`
	Slot    *uint64 `json:"slot,omitempty"`
	// Lag is the number of slots that the endpoint is behind the best one.
	Lag *uint64 `json:"lag,omitempty"`
	// History is the number of slots from the endpoint's first available block to its slot.
	History *uint64 `json:"history_slots,omitempty"`
	Found   string  `json:"found"`
	Remedy  string  `json:"remedy,omitempty"`

	hash solana.Hash
}

// readEndpoints reads all endpoints concurrently.
func (p *probe) readEndpoints(ctx context.Context) []probedEndpoint {
	out := make([]probedEndpoint, len(p.Endpoints))
	var wg sync.WaitGroup
	for i := range p.Endpoints {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, p.flags.Timeout)
			defer cancel()
			out[i] = readEndpoint(ctx, p.Endpoints[i], p.clients[i])
		})
	}
	wg.Wait()
	want := p.Genesis
	best := uint64(0)
	for i := range out {
		if want.IsZero() {
			want = out[i].hash // the first answer decides, as for relay serve
		}
		if out[i].Slot != nil && out[i].hash == want {
			best = max(best, *out[i].Slot)
		}
	}
	for i := range out {
		out[i].compare(want, best)
	}
	return out
}

// readEndpoint reads the facts about one endpoint. Facts that the endpoint does not serve
// are omitted.
func readEndpoint(ctx context.Context, e config.Endpoint, c *rpc.Client) probedEndpoint {
	out := probedEndpoint{Name: e.Name, Roles: e.Roles, State: poolcheck.OK}
	if e.IsLane() {
		out.State, out.Found = poolcheck.Unknown, "it is sent transactions with a tip, and is not asked anything"
		return out
	}
	hash, err := c.GenesisHash(ctx)
	var refused *onchain.RPCError
	switch {
	case errors.As(err, &refused) && slices.Equal(e.Roles, []string{config.RoleSubmit}):
		out.State, out.Found = poolcheck.Unknown, "it refuses to report its chain, like endpoints that only accept transactions"
		return out
	case err != nil:
		out.State, out.Found, out.Remedy = poolcheck.Failed, "it does not answer: "+err.Error(), "check its URL, the authority of its certificate, credentials and plan"
		return out
	}
	out.hash, out.Genesis = hash, hash.String()
	if out.Version, err = c.Version(ctx); err != nil {
		out.Version = ""
	}
	slot, err := c.Slot(ctx, onchain.Confirmed)
	if err != nil {
		out.State, out.Found, out.Remedy = poolcheck.Failed, "it does not report its slot: "+err.Error(), "check its plan"
		return out
	}
	out.Slot = &slot
	if first, err := c.FirstAvailable(ctx); err == nil {
		depth := slot - min(first, slot)
		out.History = &depth
	}
	out.Found = "it answers"
	return out
}

// compare compares an endpoint with the others.
func (e *probedEndpoint) compare(want solana.Hash, best uint64) {
	if e.Genesis != "" && e.hash != want {
		e.State, e.Found, e.Remedy = poolcheck.Failed, fmt.Sprintf("it serves another chain: genesis hash %s, expected %s", e.hash, want), "correct its URL, or --genesis-hash"
		return
	}
	if e.Slot == nil || e.State != poolcheck.OK {
		return
	}
	lag := best - min(*e.Slot, best)
	e.Lag = &lag
	if lag > maxLag {
		e.State, e.Found, e.Remedy = poolcheck.Failed, "it is far behind the others", "use another endpoint until it has caught up"
	}
}

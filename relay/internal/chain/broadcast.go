package chain

import (
	"context"
	"errors"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/rpc"
)

const methodSend = "sendTransaction"

// Send sends the same signed bytes to every healthy submit endpoint at once, or to all submit
// endpoints when none is healthy: a send is never withheld for lack of a healthy endpoint. For a
// first send, the endpoints simulate the transaction before they forward it, except the one that
// has just done so. In each endpoint's request budget, first sends have priority over rebroadcasts.
// An endpoint with an exhausted budget gets no rebroadcast. A node that has not reached
// minContextSlot refuses the transaction; 0 accepts any node.
//
// Send returns nil as soon as one endpoint has accepted the transaction. The transaction may still
// not land. If every endpoint that was asked refused the transaction, this send put nothing on the
// chain, and Send returns *onchain.SendError or *onchain.RPCError. In all other cases Send returns
// onchain.ErrUnavailable, and the transaction may land. The calls without an answer go on after
// Send has returned: neither the caller nor a shutdown cancels them.
func (e *Endpoints) Send(ctx context.Context, raw []byte, how onchain.Sending, minContextSlot uint64) error {
	targets := e.targets()
	type answer struct {
		index int
		err   error
	}
	results := make(chan answer, len(targets))
	uncancelled := context.WithoutCancel(ctx)
	for i, t := range targets {
		e.sends.run(func() { results <- answer{i, e.sendTo(uncancelled, t, raw, how, minContextSlot)} })
	}
	var failures sendFailures
	for range targets {
		select {
		case <-ctx.Done():
			return rpc.Ended(ctx, methodSend)
		case a := <-results:
			if a.err == nil {
				return nil
			}
			failures.add(a.index, a.err)
		}
	}
	return failures.err()
}

// Flush waits until no send is under way. Each send ends within its timeout. Flush returns the
// context's error if the context ends first.
func (e *Endpoints) Flush(ctx context.Context) error { return e.sends.wait(ctx) }

// target is an endpoint that a send goes to.
type target struct {
	*endpoint
	permit outbound.Permit
}

// targets returns the submit endpoints to send to, the best first.
func (e *Endpoints) targets() (out []target) {
	all := e.candidates([]Role{RoleSubmit}, methodSend, outbound.FirstSend)
	for _, ep := range all {
		if permit, ok := ep.breaker.Try(); ok {
			out = append(out, target{ep, permit})
		}
	}
	if len(out) > 0 {
		return out
	}
	for _, ep := range all {
		out = append(out, target{ep, ep.breaker.Force()})
	}
	return out
}

// sendTo makes the call to one endpoint.
func (e *Endpoints) sendTo(ctx context.Context, t target, raw []byte, how onchain.Sending, minContextSlot uint64) error {
	limited, cancel := context.WithTimeoutCause(ctx, e.timeout, rpc.ErrLimit)
	defer cancel()
	start := e.now()
	best := e.slots.Best(start)
	if best > 0 && !e.slots.Corroborated(minContextSlot, start) { // one endpoint may have invented the slot, and no honest node would reach it
		minContextSlot = min(minContextSlot, best)
	}
	err := e.verify(limited, t.endpoint)
	if err == nil {
		err = e.callSend(limited, t.endpoint, raw, how.First && t.name != how.SimulatedBy, how.First, minContextSlot)
	}
	e.recordResult(t.endpoint, t.permit, methodSend, e.now().Sub(start), best, err)
	return err
}

// sendFailures collects the failed calls of a send that no endpoint has accepted.
type sendFailures struct {
	unknown callFailures // failures after which the transaction may be on the chain
	skipped int          // endpoints whose budget was exhausted
	refused *onchain.SendError
	index   int   // index of the endpoint that returned refused
	invalid error // an endpoint refused the call itself
}

func (r *sendFailures) add(index int, err error) {
	var s *onchain.SendError
	switch {
	case onchain.KindOf(err) == onchain.KindBudget:
		r.skipped++
	case errors.Is(err, onchain.ErrUnavailable):
		r.unknown.add(err)
	case !errors.As(err, &s):
		r.invalid = err
	// "Already processed" has priority over other refusals, because their endpoints may not have
	// seen the transaction yet. If that decides nothing, the better endpoint's refusal has
	// priority.
	case r.refused == nil, isAlreadyProcessed(s) && !isAlreadyProcessed(r.refused), isAlreadyProcessed(s) == isAlreadyProcessed(r.refused) && index < r.index:
		r.refused, r.index = s, index
	}
}

func isAlreadyProcessed(s *onchain.SendError) bool { return s.Err.Kind == "AlreadyProcessed" }

func (r *sendFailures) err() error {
	r.unknown.method = methodSend
	switch {
	case r.unknown.n > 0:
		return r.unknown.err()
	case r.refused != nil:
		return r.refused
	case r.invalid != nil:
		return r.invalid
	case r.skipped > 0:
		return &onchain.Unavailable{Method: methodSend, Kind: onchain.KindBudget, Detail: "the request budgets of all submit endpoints are exhausted"}
	default:
		return &onchain.Unavailable{Method: methodSend, Kind: onchain.KindRejected, Detail: "every submit endpoint serves another chain: correct their URLs"}
	}
}

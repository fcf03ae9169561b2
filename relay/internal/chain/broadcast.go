package chain

import (
	"context"
	"errors"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/rpc"
)

const methodSend = "sendTransaction"

// Send gives the same signed bytes to every healthy submit endpoint at once, or to all
// of them when none is healthy: a send is never withheld for want of a healthy endpoint.
// The endpoints simulate the first send of a transaction before they forward it, and it
// goes before rebroadcasts in each budget; an endpoint whose budget has no request left
// gets no rebroadcast. A node that has not seen minContextSlot takes neither; 0 for any.
//
// It returns nil as soon as one endpoint took it, which does not mean that it landed.
// When every endpoint that was asked refused, this send put nothing on the chain: then it
// returns *onchain.SendError or *onchain.RPCError. Else it returns onchain.ErrUnavailable,
// and the transaction may land. The other endpoints' calls run to their own end: neither
// the caller nor a shutdown cancels a send.
func (e *Endpoints) Send(ctx context.Context, raw []byte, first bool, minContextSlot uint64) error {
	targets := e.targets()
	type answer struct {
		place int
		err   error
	}
	results := make(chan answer, len(targets))
	free := context.WithoutCancel(ctx)
	for i, t := range targets {
		e.sends.run(func() { results <- answer{i, e.sendTo(free, t, raw, first, minContextSlot)} })
	}
	var refused refusals
	for range targets {
		select {
		case <-ctx.Done():
			return rpc.Ended(ctx, methodSend)
		case a := <-results:
			if a.err == nil {
				return nil
			}
			refused.take(a.place, a.err)
		}
	}
	return refused.err()
}

// Flush returns once no send is under way, each of which ends within its
// timeout, or with the context's error.
func (e *Endpoints) Flush(ctx context.Context) error { return e.sends.wait(ctx) }

// target is an endpoint that a send goes to.
type target struct {
	*endpoint
	permit outbound.Permit
}

// targets are the submit endpoints to send to, the best first.
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
func (e *Endpoints) sendTo(ctx context.Context, t target, raw []byte, first bool, minContextSlot uint64) error {
	limited, cancel := context.WithTimeoutCause(ctx, e.timeout, rpc.ErrLimit)
	defer cancel()
	start := e.now()
	best := e.slots.Best(start)
	if best > 0 && !e.slots.Corroborated(minContextSlot, start) { // it may be a lie, and no honest node would reach it
		minContextSlot = min(minContextSlot, best)
	}
	err := e.verify(limited, t.endpoint)
	if err == nil {
		urgency := outbound.Rebroadcast
		if first {
			urgency = outbound.FirstSend
		}
		err = t.withEndpoint(t.clients[urgency].Send(limited, raw, first, minContextSlot))
	}
	if !first && onchain.KindOf(err) == onchain.KindBudget {
		e.observer.RebroadcastSkipped(t.name)
	}
	e.learn(t.endpoint, t.permit, methodSend, e.now().Sub(start), best, err)
	return err
}

// refusals are the answers to a send that no endpoint took.
type refusals struct {
	unknown answers // that may have put it on the chain
	unasked int
	refused *onchain.SendError
	place   int // of the endpoint that gave refused
	invalid error
}

func (r *refusals) take(place int, err error) {
	var s *onchain.SendError
	switch {
	case onchain.KindOf(err) == onchain.KindBudget:
		r.unasked++
	case errors.Is(err, onchain.ErrUnavailable):
		r.unknown.add(err)
	case !errors.As(err, &s):
		r.invalid = err
	// An error "already processed" counts most, as other endpoints may not have seen
	// that yet; otherwise the best endpoint's answer counts.
	case r.refused == nil, processed(s) && !processed(r.refused), processed(s) == processed(r.refused) && place < r.place:
		r.refused, r.place = s, place
	}
}

func processed(s *onchain.SendError) bool { return s.Err.Kind == "AlreadyProcessed" }

func (r *refusals) err() error {
	r.unknown.method = methodSend
	switch {
	case r.unknown.n > 0:
		return r.unknown.err()
	case r.refused != nil:
		return r.refused
	case r.invalid != nil:
		return r.invalid
	case r.unasked > 0:
		return &onchain.Unavailable{Method: methodSend, Kind: onchain.KindBudget, Detail: "no submit endpoint's budget had a request for it"}
	default:
		return &onchain.Unavailable{Method: methodSend, Kind: onchain.KindRejected, Detail: "every submit endpoint serves another chain: correct their URLs"}
	}
}

package chain

import (
	"context"
	"errors"
	"sync"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/rpc"
)

// identity is what is known about the chain that an endpoint serves.
type identity struct {
	hash solana.Hash // zero when it is not known
	// foreign is true when the endpoint serves another chain than the relay's.
	foreign bool
	// unreported marks an endpoint that only accepts transactions and refuses to report its
	// chain: some providers serve sendTransaction and nothing else.
	unreported bool
}

// GenesisHash returns the hash that identifies the relay's chain. It asks every endpoint that has
// not reported its genesis hash yet. The error contains a *GenesisError for each endpoint of
// another chain; the hash is valid nevertheless.
func (e *Endpoints) GenesisHash(ctx context.Context) (solana.Hash, error) {
	failures := e.identifyAll(ctx)
	want := e.chooseGenesis()
	if want.IsZero() {
		a := callFailures{method: "getGenesisHash"}
		for _, err := range failures {
			a.add(err)
		}
		return want, a.err()
	}
	var wrong []error
	for _, ep := range e.all {
		if err := e.markForeign(ep, want); err != nil {
			wrong = append(wrong, err)
		}
	}
	return want, errors.Join(wrong...)
}

// identifyAll asks all endpoints that have not reported their chain yet, and returns the errors
// in the order of the endpoints.
func (e *Endpoints) identifyAll(ctx context.Context) []error {
	failures := make([]error, len(e.all))
	var wg sync.WaitGroup
	for i, ep := range e.all {
		wg.Go(func() { failures[i] = e.identify(ctx, ep) })
	}
	wg.Wait()
	return failures
}

// chooseGenesis returns the genesis hash of the relay's chain; zero when it is unknown. If it is
// not configured, it is the hash of the first endpoint, in the configured order, that has reported
// one. The choice is final.
func (e *Endpoints) chooseGenesis() solana.Hash {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ep := range e.all {
		if e.genesis.IsZero() {
			e.genesis = ep.identity().hash
		}
	}
	return e.genesis
}

func (e *Endpoints) knownGenesis() solana.Hash {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.genesis
}

func (ep *endpoint) identity() identity {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	return ep.chain
}

// verify makes sure that the endpoint serves the relay's chain. It calls the endpoint only until
// the endpoint has reported its chain or refused to.
func (e *Endpoints) verify(ctx context.Context, ep *endpoint) error {
	want := e.knownGenesis()
	if want.IsZero() {
		// Ask all endpoints: the first one in the configured order decides which chain is the
		// relay's, even if another one answers earlier.
		e.identifyAll(ctx)
		want = e.chooseGenesis()
	}
	if err := e.identify(ctx, ep); err != nil {
		return err
	}
	if want.IsZero() {
		want = e.chooseGenesis()
	}
	if err := e.markForeign(ep, want); err != nil {
		return &onchain.Unavailable{Method: "getGenesisHash", Endpoint: ep.name, Kind: onchain.KindRejected, Detail: err.Error()}
	}
	return nil
}

// identify reads the endpoint's genesis hash, once for all callers.
func (e *Endpoints) identify(ctx context.Context, ep *endpoint) error {
	if known := ep.identity(); known.unreported || !known.hash.IsZero() {
		return nil
	}
	done := ep.asking.DoChan("", func() (any, error) {
		hash, err := ep.clients[outbound.Read].GenesisHash(context.WithoutCancel(ctx))
		var refused *onchain.RPCError
		unreported := errors.As(err, &refused) && ep.hasOnly(RoleSubmit)
		if unreported {
			err = nil
			e.log.Info("chain of a submit-only rpc endpoint unknown", "endpoint", ep.name)
		}
		if err == nil {
			ep.mu.Lock()
			ep.chain.hash, ep.chain.unreported, ep.checkedAt = hash, unreported, e.now()
			ep.mu.Unlock()
		}
		// The name is added here, because all waiting callers share the error.
		return nil, ep.withEndpoint(err)
	})
	select {
	case <-ctx.Done():
		return ep.withEndpoint(rpc.Ended(ctx, "getGenesisHash"))
	case r := <-done:
		return r.Err
	}
}

package chain

import (
	"context"
	"fmt"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/outbound"
)

// recheckInterval is the time after which an endpoint that serves another chain is asked for its
// chain again.
const recheckInterval = time.Minute

// GenesisError reports an endpoint that serves another chain, and is therefore not used.
type GenesisError struct {
	// Endpoint is its name.
	Endpoint string
	// Got is its genesis hash; Want is that of the relay's chain.
	Got, Want solana.Hash
}

// Error names the endpoint and both hashes.
func (e *GenesisError) Error() string {
	return fmt.Sprintf("RPC endpoint %s serves another chain, so it is not used: its genesis hash is %s, expected %s; correct its URL", e.Endpoint, e.Got, e.Want)
}

// isForeign reports whether the endpoint serves another chain, so that it is not used.
func (ep *endpoint) isForeign() bool { return ep.identity().foreign }

// markForeign marks the endpoint as foreign, and returns an error, when its genesis hash is known
// and differs from want. If the hash is unknown or equals want, markForeign removes the mark.
func (e *Endpoints) markForeign(ep *endpoint, want solana.Hash) error {
	ep.mu.Lock()
	got := ep.chain.hash
	wasForeign := ep.chain.foreign
	ep.chain.foreign = !got.IsZero() && got != want
	foreign := ep.chain.foreign
	ep.mu.Unlock()
	if !foreign {
		return nil
	}
	err := &GenesisError{Endpoint: ep.name, Got: got, Want: want}
	if !wasForeign {
		e.log.Error("rpc endpoint serves another chain", "endpoint", ep.name, "error", err)
	}
	return err
}

// recheck asks an endpoint that served another chain whether it now serves the relay's chain.
func (e *Endpoints) recheck(ctx context.Context, ep *endpoint) {
	ep.mu.Lock()
	due := e.now().Sub(ep.checkedAt) >= recheckInterval
	if due {
		ep.checkedAt = e.now()
	}
	ep.mu.Unlock()
	if !due {
		return
	}
	hash, err := ep.clients[outbound.Background].GenesisHash(ctx)
	if err != nil || hash != e.knownGenesis() {
		return
	}
	ep.mu.Lock()
	ep.chain = identity{hash: hash}
	ep.mu.Unlock()
	e.log.Info("rpc endpoint serves the relay's chain again", "endpoint", ep.name)
}

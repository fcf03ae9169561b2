package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/poolcheck"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// chainReader reads which chain the endpoints serve, and whether it answers.
type chainReader interface {
	// GenesisHash returns the chain's genesis hash. Its error contains a *chain.GenesisError for
	// each endpoint that serves another chain.
	GenesisHash(ctx context.Context) (solana.Hash, error)
	Slot(ctx context.Context, commitment onchain.Commitment) (uint64, error)
	Status() []chain.EndpointStatus
}

// genesisGate admits submissions once the endpoints are known to serve the configured chain.
// On another chain, the same proofs would spend other notes.
type genesisGate struct {
	chain   chainReader
	want    solana.Hash
	keyHash [32]byte
	// prepare reads from the chain what submissions need, before they are admitted.
	prepare func(context.Context) error
	open    atomic.Bool
}

func newGenesisGate(chain chainReader, want solana.Hash, keyHash [32]byte, prepare func(context.Context) error) *genesisGate {
	return &genesisGate{chain: chain, want: want, keyHash: keyHash, prepare: prepare}
}

// errWrongChain means that the relay must not run against this chain.
var errWrongChain = errors.New("the RPC endpoints serve another chain than this relay may use")

// check reads the chain's genesis and opens the gate once the chain answers. errWrongChain and
// errInvalidLookupTable are permanent; other errors may be temporary. If one of several endpoints
// serves another chain, the relay does not use that endpoint, and /health names it.
func (g *genesisGate) check(ctx context.Context) (solana.Hash, error) {
	got, err := g.chain.GenesisHash(ctx)
	var foreign *chain.GenesisError
	switch {
	case errors.As(err, &foreign):
		if !slices.ContainsFunc(g.chain.Status(), func(e chain.EndpointStatus) bool { return !e.Foreign }) {
			return got, fmt.Errorf("%w: %w, or --genesis-hash", errWrongChain, err)
		}
	case err != nil:
		return got, err
	}
	if !g.want.IsZero() && got != g.want {
		return got, fmt.Errorf("%w: its genesis hash is %s, expected %s: correct --rpc-url or --genesis-hash", errWrongChain, got, g.want)
	}
	if !poolcheck.KeyAllowed(g.keyHash, got) {
		return got, fmt.Errorf("%w: its genesis hash is %s, and the verifying key is the development one, under which anybody can forge proofs: it is accepted only with the local chain's %s; give the pool's own --verifying-key",
			errWrongChain, got, shieldpool.DevelopmentGenesisHash)
	}
	// If the hash is configured, GenesisHash returns it even if no endpoint answers. This call
	// makes sure that an endpoint answers.
	if _, err := g.chain.Slot(ctx, onchain.Confirmed); err != nil {
		return got, err
	}
	if err := g.prepare(ctx); err != nil {
		return got, err
	}
	g.open.Store(true)
	return got, nil
}

// ready refuses submissions until the gate is open.
func (g *genesisGate) ready() error {
	if !g.open.Load() {
		return refusal.New(refusal.ChainUnavailable,
			"the relay has not reached its chain since it started, so it accepts no submissions: send the same request again").Retry(2 * time.Second)
	}
	return nil
}

// genesisRetry is the pause between tries to read the chain's genesis at start.
const genesisRetry = time.Second

// openGate checks the chain until it answers. An error means that the relay must not run
// with this chain or this lookup table.
func (a *App) openGate(ctx context.Context) error {
	logged := false
	for ctx.Err() == nil {
		genesis, err := a.genesisGate.check(ctx)
		if err == nil {
			a.log.InfoContext(ctx, "chain reached", "genesis_hash", genesis)
			if a.options.Config.Profile.ExtData == shieldpool.ExtDataOpaque {
				a.log.WarnContext(ctx, "profile has no formula for extDataHash: the program alone protects a withdrawal's destination")
			}
			return nil
		}
		if errors.Is(err, errWrongChain) || errors.Is(err, errInvalidLookupTable) {
			return err
		}
		if !logged && ctx.Err() == nil {
			a.log.WarnContext(ctx, "chain unreachable; retrying until it answers", "error", err)
			logged = true
		}
		select {
		case <-ctx.Done():
		case <-time.After(genesisRetry):
		}
	}
	return nil
}

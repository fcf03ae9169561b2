package chain

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
)

const (
	// gateInterval is how often a feature gate is read until it is active. A read a minute
	// suffices: features become active only at the start of an epoch, at most once a day.
	gateInterval = time.Minute
	// gateRetry is the pause after the first failed read. It doubles with each further failure, up
	// to gateInterval.
	gateRetry = 2 * time.Second
	// gateLength is the length of a feature gate's account in bytes. The first byte is 1 when the
	// feature is active. The other eight are the slot of the activation.
	gateLength = 9
)

// TransactionV1Gate is the feature gate of transactions of version 1 (SIMD-0385).
var TransactionV1Gate = solana.MustPublicKeyFromBase58("txv1aq4pp281K9um3tnPgkfX8UqtFT6wcVW3hNezGLL") //nolint:gochecknoglobals // a constant

// featureProgram owns the accounts of feature gates.
var featureProgram = solana.MustPublicKeyFromBase58("Feature111111111111111111111111111111111111") //nolint:gochecknoglobals // a constant

// FeatureGate tracks whether the network has activated a feature. With several endpoints, two
// have to report that it is active. An active feature stays active.
type FeatureGate struct {
	key     solana.PublicKey
	account func(ctx context.Context, key solana.PublicKey) (*onchain.Account, error)
	log     *slog.Logger
	active  atomic.Bool
}

// NewFeatureGate makes a FeatureGate that reads from the endpoints.
func NewFeatureGate(key solana.PublicKey, e *Endpoints, log *slog.Logger) *FeatureGate {
	return &FeatureGate{key: key, account: e.CorroboratedAccount, log: log}
}

// Active reports whether the feature was active when the gate was last read.
func (g *FeatureGate) Active() bool { return g.active.Load() }

// Run reads the gate until the feature is active or the context ends. It warns once for each series
// of failed reads, because without an answer the relay keeps to the older transaction formats.
func (g *FeatureGate) Run(ctx context.Context) {
	for retry := gateRetry; !g.Active(); {
		pause := gateInterval
		if err := g.Read(ctx); err == nil {
			retry = gateRetry
		} else if ctx.Err() == nil {
			level := slog.LevelDebug
			if retry == gateRetry {
				level = slog.LevelWarn
			}
			g.log.Log(ctx, level, "feature gate not read", "gate", g.key, "error", err)
			pause, retry = retry, min(2*retry, gateInterval)
		}
		if g.Active() || !sleep(ctx, pause) {
			return
		}
	}
}

// Read reads the gate once. The feature is inactive if the account is missing, is not a feature
// gate's account, or shows that the activation is pending.
func (g *FeatureGate) Read(ctx context.Context) error {
	if g.Active() {
		return nil
	}
	a, err := g.account(ctx, g.key)
	if err != nil {
		return fmt.Errorf("read feature gate: %w", err)
	}
	if a == nil || !a.Owner.Equals(featureProgram) || len(a.Data) != gateLength || a.Data[0] != 1 {
		return nil
	}
	if !g.active.Swap(true) {
		g.log.InfoContext(ctx, "network feature active", "gate", g.key)
	}
	return nil
}

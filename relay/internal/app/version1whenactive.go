package app

import (
	"context"

	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// transactionFormats decides which formats this relay sends. That depends on its configuration
// and on the network's feature gate.
type transactionFormats struct {
	// configured is one of config's formats.
	configured string
	// older is the format before V1.
	older shieldpool.Format
	// gate is nil when the configuration excludes V1.
	gate *chain.FeatureGate
}

func newTransactionFormats(c *config.Config, table *shieldpool.LookupTable, gate *chain.FeatureGate) *transactionFormats {
	f := &transactionFormats{configured: c.TransactionFormat, older: shieldpool.OlderFormat(table)}
	if f.configured != config.FormatLegacy {
		f.gate = gate
	}
	return f
}

// read reads the feature gate once at start, so that the relay accepts longer notes from its
// first request on if V1 is active.
func (f *transactionFormats) read(ctx context.Context) {
	if f.gate != nil {
		_ = f.gate.Read(ctx) // run repeats it
	}
}

// run polls the feature gate until the context ends.
func (f *transactionFormats) run(ctx context.Context) {
	if f.gate != nil {
		f.gate.Run(ctx)
	}
}

// now returns the formats that transactions may have now, the preferred one first.
func (f *transactionFormats) now() []shieldpool.Format {
	switch {
	case f.gate == nil || !f.gate.Active():
		return []shieldpool.Format{f.older}
	case f.configured == config.FormatV1:
		return []shieldpool.Format{shieldpool.V1}
	default:
		return []shieldpool.Format{f.older, shieldpool.V1}
	}
}

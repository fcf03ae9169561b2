package app

import (
	"context"
	"errors"
	"time"

	"github.com/relaypool/relaypool/relay/internal/ledger"
)

// ledgerInterval is how often the ledger is reconciled with the finalized chain.
const ledgerInterval = 30 * time.Second

// reconcile reconciles the ledger with the finalized chain.
func (a *App) reconcile(ctx context.Context) error {
	err := a.ledger.Reconcile(ctx)
	if errors.Is(err, ledger.ErrCursorMoved) {
		return nil // another process has reconciled it
	}
	return err
}

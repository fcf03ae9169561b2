package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/internal/ledger"
	"github.com/relaypool/relaypool/relay/internal/store"
	"github.com/relaypool/relaypool/relay/onchain"
)

// historyTimeout is how long a sweep waits for missing history before its ledger continues
// without that history.
const historyTimeout = time.Minute

// sweepAccounting reconciles the keys' ledger with the chain. It implements sweep.AccountingReader.
type sweepAccounting struct {
	ledger    *store.Ledger
	endpoints *chain.Endpoints
	log       *slog.Logger

	reconciler *ledger.Reconciler // made once, because it records since when history is missing
}

// Complete implements sweep.AccountingReader.
func (b *sweepAccounting) Complete(ctx context.Context, payers []solana.PublicKey) (bool, error) {
	if b.reconciler == nil {
		reconciler, err := ledger.NewReconciler(ledger.ReconcilerOptions{
			Payers: payers, Store: b.ledger, Chain: b.endpoints, Observer: noObserver{}, Log: b.log, Now: time.Now, GapTimeout: historyTimeout,
		})
		if err != nil {
			return false, err
		}
		b.reconciler = reconciler
	}
	began := time.Now().Add(-time.Millisecond) // a margin, because the database stores times with less precision
	if err := b.reconciler.Reconcile(ctx); err != nil {
		if errors.Is(err, ledger.ErrCursorMoved) {
			return false, nil // another process has advanced the ledger at the same time
		}
		return false, err
	}
	for _, payer := range payers {
		cursor, err := b.ledger.Cursor(ctx, payer)
		if err != nil {
			return false, err
		}
		if cursor == nil {
			cursor = &ledger.Cursor{} // the key never had a transaction
		}
		accounts, _, err := b.endpoints.Accounts(ctx, []solana.PublicKey{payer}, onchain.Finalized, cursor.Slot)
		if err != nil {
			return false, err
		}
		var lamports uint64
		if accounts[0] != nil {
			lamports = accounts[0].Lamports
		}
		if lamports != cursor.BalanceAfter || !cursor.Payer.IsZero() && cursor.CheckedAt.Before(began) {
			return false, nil
		}
	}
	return true, nil
}

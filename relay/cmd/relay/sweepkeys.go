package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/internal/feepayer"
	"github.com/relaypool/relaypool/relay/internal/ledger"
	"github.com/relaypool/relaypool/relay/internal/store"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
)

// maxSwept is the number of keys in one sweep. One status request may contain more.
const maxSwept = 100

// keysOf reads the keys in a flag's files and directories.
func keysOf(flag string, paths []string) ([]txmgr.Payer, error) {
	if err := config.CheckKeyPaths(flag, paths); err != nil {
		return nil, err
	}
	read, err := feepayer.ReadKeys(paths)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	if len(read) > maxSwept {
		return nil, fmt.Errorf("--%s: expected at most %d keys, received %d", flag, maxSwept, len(read))
	}
	keys := make([]txmgr.Payer, len(read))
	for i := range read {
		keys[i] = read[i]
	}
	return keys, nil
}

// addressesOf returns the addresses that a flag names, directly or by the files of their
// keys.
func addressesOf(flag string, values []string) ([]solana.PublicKey, error) {
	var out []solana.PublicKey
	for _, value := range values {
		if _, err := os.Stat(value); err == nil {
			keys, err := keysOf(flag, []string{value})
			if err != nil {
				return nil, err
			}
			for _, k := range keys {
				out = append(out, k.PublicKey())
			}
			continue
		}
		address, err := config.ParseAddress(flag, value)
		if err != nil {
			return nil, err
		}
		out = append(out, address)
	}
	for i, address := range out {
		if slices.Contains(out[:i], address) {
			return nil, fmt.Errorf("--%s: %s is given twice: give each once", flag, address)
		}
	}
	if len(out) > maxSwept {
		return nil, fmt.Errorf("--%s: expected at most %d keys, received %d", flag, maxSwept, len(out))
	}
	return out, nil
}

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
	began := time.Now().Add(-time.Millisecond) // the database stores times with less precision
	if err := b.reconciler.Reconcile(ctx); err != nil {
		if errors.Is(err, ledger.ErrCursorMoved) {
			return false, nil // another process reads it too
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

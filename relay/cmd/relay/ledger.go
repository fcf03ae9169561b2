package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/internal/app"
	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/internal/ledger"
	"github.com/relaypool/relaypool/relay/internal/store"
	"github.com/relaypool/relaypool/relay/internal/telemetry"
	"github.com/relaypool/relaypool/relay/onchain"
)

const (
	// ledgerTries is the largest number of tries to reconcile the ledger. One try may not be
	// enough, because the chain advances meanwhile. ledgerPause is the pause between two tries,
	// in which the chain adds some blocks.
	ledgerTries = 8
	ledgerPause = 2 * time.Second
)

type ledgerCmd struct{ config.Ledger }

// errDisagrees makes relay ledger exit with 1 when Statement.Agrees is false; the output says why.
var errDisagrees = errors.New("lamports are not accounted for: see the last table's gaps, unknown, other, unexplained and difference")

// Run prints what the fee payers spent, and compares it with the chain.
func (c *ledgerCmd) Run(env *environment) error {
	c.EarlierProblems = env.malformed
	period, err := c.Load()
	if err != nil {
		return err
	}
	log, err := telemetry.NewLog(env.err, c.Level, c.Logging.Format)
	if err != nil {
		return fmt.Errorf("%w: %w", commandline.ErrUsage, err)
	}
	return withDatabase(env, period.DatabaseURL, c.MaxConnections, func(pool *pgxpool.Pool) error {
		s, err := store.New(pool)
		if err != nil {
			return err
		}
		b := ledgerReader{Ledger: s.Ledger(), period: period}
		snapshot, err := b.read(env)
		if err != nil {
			return err
		}
		var balances map[solana.PublicKey]uint64
		if len(period.Endpoints) > 0 && len(snapshot.Cursors) > 0 {
			if snapshot, balances, err = b.compare(env, snapshot, log); err != nil {
				return err
			}
		}
		return c.print(env, snapshot.Statement(balances))
	})
}

func (c *ledgerCmd) print(env *environment, s ledger.Statement) error {
	write := s.WriteTable
	if c.JSON {
		write = s.WriteJSON
	}
	if err := write(env.out); err != nil {
		return err
	}
	if len(s.Payers) == 0 {
		fmt.Fprintln(env.err, "the ledger is empty: a relay that serves writes it from the chain")
	}
	if !s.Agrees() {
		return errDisagrees
	}
	return nil
}

// ledgerReader reads the requested days of the ledger.
type ledgerReader struct {
	*store.Ledger
	period *config.LedgerRequest
}

func (b ledgerReader) read(ctx context.Context) (*ledger.Snapshot, error) {
	until := b.period.Until
	if until.IsZero() {
		until = time.Now().AddDate(0, 0, 1) // Until is exclusive, so today is the last day
	}
	return b.Read(ctx, b.period.From, until.AddDate(0, 0, -1))
}

// compare reconciles the ledger with the finalized chain and returns the finalized balances. It
// leaves out the balance of a payer that keeps getting new transactions: their cost is not in the
// ledger yet, and would count as a difference.
func (b ledgerReader) compare(env *environment, snapshot *ledger.Snapshot, log *slog.Logger) (*ledger.Snapshot, map[solana.PublicKey]uint64, error) {
	endpoints, err := app.Endpoints(b.period.Endpoints, chain.EndpointsOptions{Log: log})
	if err != nil {
		return nil, nil, err
	}
	defer endpoints.Close()
	var payers []solana.PublicKey
	for i := range snapshot.Cursors {
		payers = append(payers, snapshot.Cursors[i].Payer)
	}
	reconciler, err := ledger.NewReconciler(ledger.ReconcilerOptions{
		Payers: payers, Store: b, Chain: endpoints, Observer: noObserver{}, Log: log, Now: time.Now,
	})
	if err != nil {
		return nil, nil, err
	}
	balances := map[solana.PublicKey]uint64{}
	for try := range ledgerTries {
		if try > 0 && !pause(env, ledgerPause) {
			return nil, nil, env.Err()
		}
		if err := reconciler.Reconcile(env); err != nil && !errors.Is(err, ledger.ErrCursorMoved) {
			return nil, nil, fmt.Errorf("bring the ledger up to the chain: %w", err)
		}
		if snapshot, err = b.read(env); err != nil {
			return nil, nil, err
		}
		clear(balances)
		if err := stableBalances(env, endpoints, snapshot.Cursors, balances); err != nil || len(balances) == len(snapshot.Cursors) {
			return snapshot, balances, err
		}
	}
	for i := range snapshot.Cursors {
		if payer := snapshot.Cursors[i].Payer; !has(balances, payer) {
			fmt.Fprintf(env.err, "the ledger of fee payer %s was not compared with the chain, because new transactions keep coming: run the command again when there are none\n", payer)
		}
	}
	return snapshot, balances, nil
}

func has(balances map[solana.PublicKey]uint64, payer solana.PublicKey) bool {
	_, ok := balances[payer]
	return ok
}

// stableBalances reads the finalized balance of every payer that has no transaction after its
// cursor.
func stableBalances(ctx context.Context, endpoints *chain.Endpoints, cursors []ledger.Cursor, balances map[solana.PublicKey]uint64) error {
	for i := range cursors {
		c := &cursors[i]
		accounts, _, err := endpoints.Accounts(ctx, []solana.PublicKey{c.Payer}, onchain.Finalized, c.Slot)
		if err != nil {
			return fmt.Errorf("read balance of fee payer %s: %w", c.Payer, err)
		}
		// The history is read after the balance. If it has no transaction after the cursor, the
		// balance includes none either.
		later, err := endpoints.SignaturesFor(ctx, c.Payer, onchain.Finalized, solana.Signature{}, c.Signature, 1)
		if err != nil {
			return fmt.Errorf("read history of fee payer %s: %w", c.Payer, err)
		}
		if len(later) > 0 && later[0].Slot > c.Slot {
			continue
		}
		balances[c.Payer] = 0
		if accounts[0] != nil {
			balances[c.Payer] = accounts[0].Lamports
		}
	}
	return nil
}

// noObserver is the observer of a ledger without metrics.
type noObserver struct{}

func (noObserver) EntryAdded(ledger.Kind, ledger.Amounts) {}
func (noObserver) GapSkipped()                            {}

// pause waits, and returns false when ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

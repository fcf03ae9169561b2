package app

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/relaypool/relaypool/relay/internal/feepayer"
	"github.com/relaypool/relaypool/relay/internal/ledger"
	"github.com/relaypool/relaypool/relay/internal/spendcap"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

func (a *App) openSpending(ctx context.Context) error {
	c := a.options.Config
	keys, err := a.payerKeys(ctx)
	if err != nil {
		return err
	}
	a.payers, err = feepayer.New(feepayer.Options{
		Keys: keys, Balances: a.endpoints, Log: a.log, Now: time.Now, MinBalance: c.FeePayerMinBalance,
		Funded: func() { a.submissions.Manager.ClaimSoon() }, // called only after Run has started: the manager is set by then
	})
	if err != nil {
		return err
	}
	for _, lane := range lanes(c.Endpoints) {
		if i := slices.IndexFunc(lane.Accounts, a.payers.Owns); i >= 0 {
			return fmt.Errorf("--rpc-endpoints-file: the tip account %s of endpoint %s is a fee payer of this relay: expected an account of the service", lane.Accounts[i], lane.Name)
		}
	}
	limits := spendcap.Limits{Hour: c.SpendCapHour, Day: c.SpendCapDay, TransferDay: c.SpendCapTransfersDay}
	if limits == (spendcap.Limits{}) {
		a.log.Warn("all spend caps are disabled: transfers pay the pool no fee, so anybody who sends them can make the payers spend their whole balance; remove --spend-cap-transfers-day=0 to get its default, or set a limit")
	}
	a.caps, err = spendcap.New(spendcap.Options{
		Limits: limits,
		Store:  a.store, Log: a.log, Now: time.Now,
	})
	if err != nil {
		return err
	}
	a.accounting = &accountingCache{ledger: a.store.Ledger()}
	a.ledger, err = ledger.NewReconciler(ledger.ReconcilerOptions{
		Payers: a.payers.Keys(), Store: a.store.Ledger(), Chain: a.endpoints, Observer: ledgerEvents{a.metrics}, Log: a.log, Now: time.Now,
		Rent: a.rent.Rate, Finalized: a.readFinalizedSlot,
	})
	return err
}

// payerKeys reads the keys in files, and checks the signers.
func (a *App) payerKeys(ctx context.Context) (keys []txmgr.Payer, err error) {
	c := a.options.Config
	if len(c.FeePayerKeyFile) > 0 {
		read, err := feepayer.ReadKeys(c.FeePayerKeyFile)
		if err != nil {
			return nil, fmt.Errorf("--fee-payer-key-file: %w", err)
		}
		for _, key := range read {
			keys = append(keys, key)
		}
	}
	if a.signers, err = Signers(ctx, c.Signers, a.log, a.metrics.SignerCalled); err == nil {
		err = CheckSigners(ctx, a.signers, a.log)
	}
	if err != nil {
		return nil, fmt.Errorf("--fee-payer-signers-file: %w", err)
	}
	for _, s := range a.signers {
		keys = append(keys, s)
	}
	return keys, nil
}

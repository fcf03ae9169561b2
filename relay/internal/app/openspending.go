package app

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/relaypool/relaypool/relay/internal/feepayer"
	"github.com/relaypool/relaypool/relay/internal/ledger"
	"github.com/relaypool/relaypool/relay/internal/spendcap"
)

func (a *App) openSpending(context.Context) error {
	c := a.options.Config
	keys, err := feepayer.ReadKeys(c.FeePayerKeyFile)
	if err != nil {
		return fmt.Errorf("--fee-payer-key-file: %w", err)
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
		Rent: a.rent.Rate,
	})
	return err
}

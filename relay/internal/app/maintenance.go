package app

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/internal/store"
)

// payersOf identifies a set of payers. Each cluster with a fleet on one database has its own, and reads
// their history.
func payersOf(keys []solana.PublicKey) string {
	sorted := slices.SortedFunc(slices.Values(keys), func(a, b solana.PublicKey) int { return bytes.Compare(a[:], b[:]) })
	sum := sha256.New()
	for _, key := range sorted {
		sum.Write(key[:])
	}
	return fmt.Sprintf(" of payers %x", sum.Sum(nil)[:8])
}

// openMaintenance makes the maintenance jobs. Each job runs in one process of the fleet at a time.
func (a *App) openMaintenance(context.Context) error {
	var err error
	a.maintenance, err = store.NewMaintenance(a.store, store.MaintenanceOptions{
		Jobs: []store.Job{
			{Name: "ledger", Every: a.options.LedgerInterval, Timeout: a.options.LedgerInterval, For: payersOf(a.payers.Keys()), Run: a.reconcile},
			{Name: "retention", Every: retentionInterval, Timeout: retentionInterval, Run: a.deleteOld},
		},
		Log: a.log, SoftStop: contract.QueueStop, Observe: a.metrics.MaintenanceRan, Now: time.Now,
	})
	return err
}

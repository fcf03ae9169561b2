package app

import (
	"context"
	"time"

	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/internal/store"
)

// openMaintenance makes the maintenance jobs. Each job runs in one process of the fleet at a time.
func (a *App) openMaintenance(context.Context) error {
	var err error
	a.maintenance, err = store.NewMaintenance(a.store, store.MaintenanceOptions{
		Jobs: []store.Job{
			{Name: "ledger", Every: a.options.LedgerInterval, Timeout: a.options.LedgerInterval, Run: a.reconcile},
			{Name: "retention", Every: retentionInterval, Timeout: retentionInterval, Run: a.deleteOld},
		},
		Log: a.log, SoftStop: contract.QueueStop, Observe: a.metrics.MaintenanceRan, Now: time.Now,
	})
	return err
}

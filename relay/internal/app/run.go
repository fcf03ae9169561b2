package app

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"

	"github.com/relaypool/relaypool/relay/contract"
)

// serve serves until the server is shut down. An error of the server ends the relay.
func (a *App) serve(s *http.Server, l net.Listener) {
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		a.fatal <- err
	}
}

// Run serves until ctx ends, then drains: /readyz fails, no new connections are accepted,
// waiting clients are answered, maintenance and running steps end, leases are released,
// sends under way end, and the database is closed last. It returns an error when the relay
// cannot continue.
func (a *App) Run(ctx context.Context) error {
	defer a.close() //nolint:contextcheck // a.close needs no context
	go a.serve(a.api, a.apiListener)

	background, stopBackground := context.WithCancel(context.WithoutCancel(ctx))
	work, stopWork := context.WithCancel(background)
	maintenance, stopMaintenance := context.WithCancel(background)
	defer stopBackground()
	defer stopWork()
	defer stopMaintenance()

	var services, workers, maintenanceJobs sync.WaitGroup
	services.Go(func() { a.endpoints.Run(background) })
	services.Go(func() { a.rent.Run(background) })
	services.Go(func() { a.finality.Run(background) })
	services.Go(func() { a.formats.run(background) })
	services.Go(func() { a.payers.Run(background) })
	services.Go(func() { a.reader.Run(background, a.store, a.submissions.Manager.ClaimSoon) })
	gateOpened := make(chan error, 1)
	services.Go(func() { gateOpened <- a.openGate(ctx) })
	a.log.InfoContext(ctx, "serving", "listen", a.Address(), "operations", a.OperationsAddress(), "version", a.options.Version, "profile", a.options.Config.Profile.Name)

	err := a.awaitEnd(ctx, a.fatal, gateOpened, func() {
		services.Go(func() { a.commitmentIndex.Run(background) }) // only now: another chain's leaves must not enter the index
		services.Go(func() { a.endpoints.Subscribe(background, a.pool.MerkleTree, a.submissions.Manager.PollSoon) })
		workers.Go(func() { a.submissions.Run(work) })
		maintenanceJobs.Go(func() { a.maintenance.Run(maintenance) })
	})
	a.draining.Store(true)
	a.submissions.Manager.Close() // other processes run submissions that are accepted from here on
	a.admission.Close()           // clients that wait to be accepted are refused
	a.reader.Close()              // clients that wait for an outcome get the address of their submission's status
	a.shutdown(context.WithoutCancel(ctx), a.api, contract.HTTPShutdown)
	stopMaintenance()
	maintenanceJobs.Wait()
	stopWork()
	workers.Wait()
	a.flush(context.WithoutCancel(ctx))
	stopBackground()
	services.Wait()
	a.shutdown(context.WithoutCancel(ctx), a.operations, finalScrapeTime)
	a.log.InfoContext(ctx, "stopped")
	return err
}

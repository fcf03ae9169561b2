package app

import (
	"context"
	"errors"
	"net"
	"net/http"
)

// serve serves until the server is shut down. An error of the server ends the relay.
func (a *App) serve(s *http.Server, l net.Listener) {
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		a.fatal <- err
	}
}

// Run serves until ctx ends, then drains (see drain), and closes the database last. It returns an
// error when the relay cannot continue.
func (a *App) Run(ctx context.Context) error {
	defer a.close() //nolint:contextcheck // a.close needs no context
	go a.serve(a.api, a.apiListener)

	var p running
	background, stopBackground := context.WithCancel(context.WithoutCancel(ctx))
	work, stopWork := context.WithCancel(background)
	maintenance, stopMaintenance := context.WithCancel(background)
	defer stopBackground()
	defer stopWork()
	defer stopMaintenance()
	p.stopBackground, p.stopWork, p.stopMaintenance = stopBackground, stopWork, stopMaintenance

	p.services.Go(func() { a.endpoints.Run(background) })
	p.services.Go(func() { a.rent.Run(background) })
	p.services.Go(func() { a.baseFee.Run(background) })
	p.services.Go(func() { a.finality.Run(background) })
	p.services.Go(func() { a.formats.run(background) })
	p.services.Go(func() { a.payers.Run(background) })
	p.services.Go(func() { a.requests.Run(background) })
	if len(a.options.Config.APIKeys) > 0 {
		p.services.Go(func() { a.rereadAPIKeys(background) })
	}
	for _, s := range a.signers {
		p.services.Go(func() { s.Run(background) })
	}
	p.services.Go(func() { a.reader.Run(background, a.store, a.submissions.Manager.ClaimSoon) })
	gateOpened := make(chan error, 1)
	p.services.Go(func() { gateOpened <- a.openGate(ctx) })
	a.log.InfoContext(ctx, "serving", "listen", a.Address(), "operations", a.OperationsAddress(), "version", a.options.Version, "profile", a.options.Config.Profile.Name)

	err := a.awaitEnd(ctx, a.fatal, gateOpened, func() {
		p.services.Go(func() { a.keepPayments(background) })
		p.services.Go(func() { a.commitmentIndex.Run(background) }) // only now: another chain's leaves must not enter the index
		p.services.Go(func() { a.endpoints.Subscribe(background, a.pool.MerkleTree, a.treeNotification) })
		p.workers.Go(func() { a.submissions.Run(work) })
		p.maintenanceJobs.Go(func() { a.maintenance.Run(maintenance) })
	})
	a.drain(context.WithoutCancel(ctx), &p)
	return err
}

// awaitEnd returns when the relay has to stop: nil if ctx ended, or the error for which it
// cannot continue. It calls startWork once the chain is verified.
func (a *App) awaitEnd(ctx context.Context, fatal, gateOpened <-chan error, startWork func()) error {
	for {
		select {
		case <-ctx.Done():
			a.log.InfoContext(ctx, "draining")
			return nil
		case err := <-fatal:
			return err
		case err := <-gateOpened:
			if err != nil {
				return err
			}
			gateOpened = nil
			if ctx.Err() == nil {
				startWork()
			}
		}
	}
}

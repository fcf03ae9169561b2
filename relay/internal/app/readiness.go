package app

import "errors"

// errStarting makes /readyz fail until the relay has its database.
var errStarting = errors.New("starting: this relay has not migrated its database yet")

// errDraining makes /readyz fail while the relay stops.
var errDraining = errors.New("draining: this relay is stopping and accepts no new work")

// ready returns nil from the end of the initialisation until the relay drains. It does not
// depend on the RPC. If it did, a failing RPC would leave the Service without endpoints.
func (a *App) ready() error {
	if !a.initialised.Load() {
		return errStarting
	}
	if a.draining.Load() {
		return errDraining
	}
	return nil
}

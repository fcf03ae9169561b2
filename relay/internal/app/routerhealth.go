package app

import (
	"context"
	"errors"
)

// checkRouter returns an error while no router works.
func (a *App) checkRouter(context.Context) error {
	if a.routers == nil {
		return nil
	}
	for _, failing := range a.routers.Failing() {
		if !failing {
			return nil
		}
	}
	return errors.New("all swap routers keep failing, so the relay sends them nothing but probes: swaps wait until their timeout, and are then refunded")
}

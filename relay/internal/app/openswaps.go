package app

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/cafile"
	"github.com/relaypool/relaypool/relay/internal/httpapi"
	"github.com/relaypool/relaypool/relay/internal/router"
	"github.com/relaypool/relaypool/relay/internal/swap"
)

// swapConcurrencyWithoutRouter is how many swaps a relay without a router refunds at a time.
const swapConcurrencyWithoutRouter = 16

// openSwaps makes the planner of swaps. A relay without a router accepts no swaps, but
// refunds the swaps of other relays, so that no refund waits for a relay with a router.
func (a *App) openSwaps(context.Context) error {
	c := a.options.Config
	o := swap.Options{
		Chain: a.endpoints, Router: noRouter{}, Pool: a.pool, RouterProgram: noProgram, Table: a.lookupTable, Formats: a.formats.now, Payers: a.payers,
		SlippageBps: max(1, c.SwapSlippageBps), Observer: a.metrics, Log: a.log, Now: time.Now, SlotDuration: a.endpoints.SlotDuration,
	}
	if c.Swaps != nil {
		var err error
		if a.routers, err = a.openRouters(); err != nil {
			return err
		}
		o.Router, o.RouterProgram = a.routers, c.Swaps.Program
	}
	var err error
	a.swaps, err = swap.New(o)
	return err
}

func (a *App) openRouters() (*router.Routers, error) {
	c := a.options.Config
	var clients []*router.Client
	for _, r := range c.Swaps.Routers {
		calls := router.NewHTTPClient()
		if r.CAFile != "" {
			if err := cafile.Trust(calls, cafile.Options{Path: r.CAFile, Now: time.Now, Changed: cafile.LogChanges(a.log, "router", r.Name)}); err != nil {
				return nil, fmt.Errorf("swap router %s: %w", r.Name, err)
			}
		}
		client, err := router.New(router.Options{
			Name: r.Name, BaseURL: r.URL.Reveal(), APIKey: r.APIKey.Reveal(), HTTP: calls, Now: time.Now, Rand: rand.Float64,
			Log: a.log, Observer: a.metrics, Timeout: c.Router.Timeout, Take: a.routerBudget(r.Name, r.RequestsPerSecond),
		})
		if err != nil {
			return nil, err
		}
		clients = append(clients, client)
	}
	return router.NewRouters(clients...)
}

// routerBudget returns the function that takes one call from the router's budget, which all
// processes share; nil without a limit.
func (a *App) routerBudget(name string, perSecond int) func(context.Context) (time.Duration, error) {
	if perSecond == 0 {
		return nil
	}
	return func(ctx context.Context) (time.Duration, error) { return a.store.TakeRouterCall(ctx, name, perSecond) }
}

// swapsInfo returns the part of the service information about swaps; nil without a router.
func (a *App) swapsInfo() *httpapi.Swaps {
	if a.routers == nil {
		return nil
	}
	return &httpapi.Swaps{RouterProgram: a.options.Config.Swaps.Program}
}

// swapConcurrency is how many second legs this process executes at a time.
func (a *App) swapConcurrency() int {
	if n := a.options.Config.SwapConcurrency; n > 0 {
		return n
	}
	return swapConcurrencyWithoutRouter
}

// noProgram is the router program of a relay without a router: no instruction names this
// address.
var noProgram = solana.PublicKey{31: 1} //nolint:gochecknoglobals // a constant

// noRouter is a swap.Router that always fails, for a relay without a router.
type noRouter struct{}

func (noRouter) unavailable() error {
	return &swap.RouterUnavailable{Kind: swap.FaultRejected, Detail: "this relay has no router: set --router-url"}
}

// Quote implements swap.Router.
func (n noRouter) Quote(context.Context, swap.QuoteRequest) (*swap.Quote, error) {
	return nil, n.unavailable()
}

// Instructions implements swap.Router.
func (n noRouter) Instructions(context.Context, *swap.Quote, solana.PublicKey) (*swap.Instructions, error) {
	return nil, n.unavailable()
}

// Len implements swap.Router.
func (noRouter) Len() int { return 1 }

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/internal/app"
	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/internal/store"
	"github.com/relaypool/relaypool/relay/internal/telemetry"
	"github.com/relaypool/relaypool/relay/onchain"
)

// slotTimeout bounds the request for the chain's slot.
const slotTimeout = 10 * time.Second

type swapsCmd struct{ config.SwapList }

// errOverdue makes relay swaps --overdue exit with 1; the output lists the swaps.
var errOverdue = errors.New("swaps are past their timeout slot and neither executed nor refunded: the table shows what each waits for")

// Run lists swaps. It reads them from the database. From the chain it reads only the slot, if an
// endpoint is given.
func (c *swapsCmd) Run(env *environment) error {
	c.EarlierProblems = env.malformed
	url, endpoints, err := c.Load()
	if err != nil {
		return err
	}
	log, err := telemetry.NewLog(env.err, c.Level, c.Logging.Format)
	if err != nil {
		return fmt.Errorf("%w: %w", commandline.ErrUsage, err)
	}
	return withStore(env, url, c.MaxConnections, func(s *store.Store) error {
		report := swapReport{Swaps: []swapLine{}}
		var err error
		if report.Slot, report.Reckoned, err = slotNow(env, s, endpoints, log); err != nil {
			return err
		}
		if err := c.read(env, s, &report); err != nil {
			return err
		}
		write := report.writeTable
		if c.JSON {
			write = report.writeJSON
		}
		if err := write(env.out); err != nil {
			return err
		}
		if c.Overdue && report.Overdue > 0 {
			return errOverdue
		}
		return nil
	})
}

// slotNow returns the slot that timeouts are compared with: the chain's or, without
// endpoints, an estimate from the newest observed slot and the time since.
func slotNow(env *environment, s *store.Store, endpoints []config.Endpoint, log *slog.Logger) (slot uint64, reckoned bool, err error) {
	if len(endpoints) == 0 {
		observed, age, err := s.LatestTreeSlot(env)
		if err != nil || observed == 0 {
			return 0, false, err
		}
		return observed + uint64(max(age, 0)/onchain.NominalSlot), true, nil
	}
	rpc, err := app.Endpoints(endpoints, chain.EndpointsOptions{Log: log})
	if err != nil {
		return 0, false, err
	}
	defer rpc.Close()
	ctx, cancel := context.WithTimeout(env, slotTimeout)
	defer cancel()
	if slot, err = rpc.Slot(ctx, onchain.Confirmed); err != nil {
		return 0, false, fmt.Errorf("ask for the chain's slot: %w", err)
	}
	return slot, false, nil
}

// read fills in the report.
func (c *swapsCmd) read(ctx context.Context, s *store.Store, r *swapReport) error {
	summary, err := s.Swaps(ctx, r.Slot)
	if err != nil {
		return err
	}
	r.ByPhase, r.Unfinished = summary.ByPhase, summary.Unfinished()
	r.OldestAge, r.Overdue, r.OldestOverdueSlots = summary.OldestAge.Seconds(), summary.Overdue, summary.OldestOverdueSlots
	listed, err := s.ListSwaps(ctx, c.Limit)
	if err != nil {
		return err
	}
	if c.All {
		final, err := s.ListFinalSwaps(ctx, c.Limit)
		if err != nil {
			return err
		}
		listed = append(listed, final...)
	}
	for i := range listed {
		if l := &listed[i]; !c.Overdue || l.Overdue(r.Slot) {
			r.Swaps = append(r.Swaps, lineOf(l, r.Slot))
		}
	}
	return nil
}

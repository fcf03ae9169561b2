package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/internal/store"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/telemetry"
	"github.com/relaypool/relaypool/relay/onchain"
)

// swapCache caches one summary of the fleet's swaps for all gauges of a scrape and for
// /health.
type swapCache struct {
	read func(context.Context) (store.SwapSummary, error)

	mu   sync.Mutex
	last store.SwapSummary
	err  error
	at   time.Time
}

// get returns false when the summary, or the slot that it needs, cannot be read. Then the
// gauges have no sample, because an unknown value is not zero.
func (c *swapCache) get() (store.SwapSummary, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.at) > summaryMaxAge {
		ctx, cancel := context.WithTimeout(context.Background(), healthTimeout)
		defer cancel()
		c.last, c.err = c.read(ctx)
		c.at = time.Now()
	}
	return c.last, c.err == nil
}

// summariseSwaps summarises the swaps at the chain's present slot.
func (a *App) summariseSwaps(ctx context.Context) (store.SwapSummary, error) {
	slot, err := a.endpoints.Slot(ctx, onchain.Confirmed)
	if err != nil {
		return store.SwapSummary{}, err
	}
	return a.store.Swaps(ctx, slot)
}

func (a *App) registerSwapGauges() {
	a.metrics.RegisterVecFunc(contract.MetricSwaps, func(sample telemetry.Sample) {
		if s, ok := a.swapSummary.get(); ok {
			for _, p := range []submission.Phase{submission.PhaseFunded, submission.PhaseQuoted} {
				sample(float64(s.ByPhase[p]), string(p))
			}
		}
	})
	// The value is the time at which the oldest unfinished swap was funded. Its phase is funded or
	// quoted.
	a.metrics.RegisterGaugeFunc(contract.MetricSwapOldestFunded, func() (float64, bool) {
		s, ok := a.swapSummary.get()
		return telemetry.Timestamp(time.Now().Add(-s.OldestAge)), ok && s.Unfinished() > 0
	})
	a.metrics.RegisterGaugeFunc(contract.MetricSwapsOverdue, func() (float64, bool) { s, ok := a.swapSummary.get(); return float64(s.Overdue), ok })
	a.metrics.RegisterVecFunc(contract.MetricRouterBreakerOpen, func(sample telemetry.Sample) {
		if a.routers == nil {
			return
		}
		for name, failing := range a.routers.Failing() {
			sample(boolGauge(failing), name)
		}
	})
}

// checkSwaps returns an error when a swap is past its timeout. Its refund may still land within
// the lifetime of a blockhash. If it does not land, the people who run the relay have to act.
func (a *App) checkSwaps(context.Context) error {
	s, ok := a.swapSummary.get() //nolint:contextcheck // many callers share the reading, which has its own timeout
	if !ok {
		return errors.New("the fleet's swaps cannot be read: the database or the chain does not answer")
	}
	return swapsProblem(s)
}

func swapsProblem(s store.SwapSummary) error {
	if s.Overdue == 0 {
		return nil
	}
	return fmt.Errorf("%d swaps are past their timeout, the longest overdue by %d slots, and neither executed nor refunded: run `relay swaps` to see what each waits for", s.Overdue, s.OldestOverdueSlots)
}

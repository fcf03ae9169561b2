package app

import (
	"context"
	"time"

	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/internal/feepayer"
	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/telemetry"
	"github.com/relaypool/relaypool/relay/onchain"
)

// endpointEvents records events of the endpoints as metrics.
type endpointEvents struct{ *telemetry.Metrics }

// BreakerChanged implements chain.Observer.
func (e endpointEvents) BreakerChanged(endpoint string, state outbound.State) {
	e.BreakerStateChanged(endpoint, string(state))
}

// registerGauges registers the metrics whose values are read at each scrape.
func (a *App) registerGauges() {
	a.registerManagerGauges()
	a.registerBacklogGauges()
	a.registerEndpointGauges()
	a.registerChainGauges()
	a.registerPayerGauges()
	a.registerSpendingGauges()
	a.registerLedgerGauges()
	a.registerIndexGauges()
	a.registerSwapGauges()
}

func (a *App) registerManagerGauges() {
	a.metrics.RegisterGaugeFunc(contract.MetricWaiting, func() (float64, bool) { return float64(a.admission.Waiting() + a.reader.Waiting()), true })
	a.metrics.RegisterGaugeFunc(contract.MetricInFlight, func() (float64, bool) { n, _ := a.submissions.Manager.InProgress(); return float64(n), true })
	a.metrics.RegisterGaugeFunc(contract.MetricTracked, func() (float64, bool) { _, n := a.submissions.Manager.InProgress(); return float64(n), true })
	a.metrics.RegisterVecFunc(contract.MetricQueuePaused, func(sample telemetry.Sample) {
		if reason := a.submissions.Manager.PausedBy(); reason != "" {
			sample(1, reason)
		}
	})
}

func (a *App) registerBacklogGauges() {
	a.metrics.RegisterGaugeFunc(contract.MetricBacklog, func() (float64, bool) { b, ok := a.backlog.get(); return float64(b.Due), ok })
	a.metrics.RegisterGaugeFunc(contract.MetricBacklogAge, func() (float64, bool) { b, ok := a.backlog.get(); return b.OldestDue.Seconds(), ok })
	a.metrics.RegisterVecFunc(contract.MetricHeld, func(sample telemetry.Sample) {
		b, _ := a.backlog.get() // if it cannot be read, there are no samples
		for reason, n := range b.Held {
			sample(float64(n), reason)
		}
	})
	a.metrics.RegisterVecFunc(contract.MetricOpen, func(sample telemetry.Sample) {
		if b, ok := a.backlog.get(); ok {
			sample(float64(b.Pending), string(submission.Pending))
			sample(float64(b.Processing), string(submission.Processing))
		}
	})
}

func (a *App) registerEndpointGauges() {
	a.metrics.RegisterVecFunc(contract.MetricRPCUp, func(sample telemetry.Sample) {
		for _, e := range a.endpoints.Status() {
			sample(boolGauge(e.Breaker == outbound.Closed && !e.Foreign), e.Name)
		}
	})
	a.metrics.RegisterVecFunc(contract.MetricRPCLag, func(sample telemetry.Sample) {
		for _, e := range a.endpoints.Status() {
			if !e.SlotAt.IsZero() {
				sample(float64(e.Lag), e.Name)
			}
		}
	})
	a.metrics.RegisterVecFunc(contract.MetricRPCSocket, func(sample telemetry.Sample) {
		for _, e := range a.endpoints.Status() {
			sample(boolGauge(e.Subscribed), e.Name)
		}
	})
	a.metrics.RegisterVecFunc(contract.MetricRPCLatency, func(sample telemetry.Sample) {
		for _, e := range a.endpoints.Status() {
			if e.Latency > 0 {
				sample(e.Latency.Seconds(), e.Name)
			}
		}
	})
}

func boolGauge(set bool) float64 {
	if set {
		return 1
	}
	return 0
}

func (a *App) registerChainGauges() {
	a.metrics.RegisterGaugeFunc(contract.MetricFinalityAdvanced, func() (float64, bool) {
		r := a.finality.Report()
		return telemetry.Timestamp(r.AdvancedAt), r.Current(time.Now())
	})
	a.metrics.RegisterVecFunc(contract.MetricConsensus, func(sample telemetry.Sample) {
		if c := a.finality.Report().Consensus; c != onchain.ConsensusUnknown {
			sample(1, string(c))
		}
	})
	a.metrics.RegisterGaugeFunc(contract.MetricSlotDuration, func() (float64, bool) { return a.endpoints.SlotDuration().Seconds(), true })
	a.metrics.RegisterGaugeFunc(contract.MetricRent, func() (float64, bool) { r := a.rent.Rate(); return float64(r), r > 0 })
}

func (a *App) registerPayerGauges() {
	each := func(value func(b feepayer.Balance) (float64, bool)) func(telemetry.Sample) {
		return func(sample telemetry.Sample) {
			for _, b := range a.payers.Balances() {
				if v, ok := value(b); ok {
					sample(v, b.Payer.String())
				}
			}
		}
	}
	known := func(b feepayer.Balance) bool { return b.State != feepayer.StateUnknown }
	a.metrics.RegisterVecFunc(contract.MetricPayerBalance, each(func(b feepayer.Balance) (float64, bool) { return float64(b.Lamports), known(b) }))
	a.metrics.RegisterVecFunc(contract.MetricPayerBalanceTime, each(func(b feepayer.Balance) (float64, bool) { return telemetry.Timestamp(b.At), known(b) }))
	a.metrics.RegisterVecFunc(contract.MetricPayerInFlight, each(func(b feepayer.Balance) (float64, bool) { return float64(b.InFlight), true }))
	a.metrics.RegisterVecFunc(contract.MetricPayerReserved, each(func(b feepayer.Balance) (float64, bool) { return float64(b.Reserved), true }))
	a.metrics.RegisterGaugeFunc(contract.MetricPayerMinimum, func() (float64, bool) { return float64(a.options.Config.FeePayerMinBalance), true })
	a.metrics.RegisterVecFunc(contract.MetricPayerUsable, each(func(b feepayer.Balance) (float64, bool) { return boolGauge(b.State == feepayer.StateReady), true }))
	a.metrics.RegisterVecFunc(contract.MetricSignerAvailable, func(sample telemetry.Sample) {
		for _, s := range a.signers {
			sample(boolGauge(s.Available()), s.Name())
		}
	})
}

func (a *App) registerSpendingGauges() {
	a.metrics.RegisterVecFunc(contract.MetricCap, func(sample telemetry.Sample) {
		cfg := a.options.Config
		for _, c := range []struct {
			name     string
			lamports uint64
		}{{"hour", cfg.SpendCapHour}, {"day", cfg.SpendCapDay}, {"transfers_day", cfg.SpendCapTransfersDay}} {
			if c.lamports > 0 {
				sample(float64(c.lamports), c.name)
			}
		}
	})
	a.metrics.RegisterVecFunc(contract.MetricCapLeft, func(sample telemetry.Sample) {
		ctx, cancel := context.WithTimeout(context.Background(), healthTimeout)
		defer cancel()
		usage, err := a.caps.Usage(ctx)
		if err != nil {
			return // no sample: an unknown value is not zero
		}
		for _, u := range usage {
			if u.Limit > 0 {
				sample(float64(u.Limit-min(u.Spent, u.Limit)), u.Cap)
			}
		}
	})
}

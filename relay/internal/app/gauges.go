package app

import (
	"context"

	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/internal/feepayer"
	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/telemetry"
)

// endpointEvents records events of the endpoints as metrics.
type endpointEvents struct{ *telemetry.Metrics }

// BreakerChanged implements chain.Observer.
func (e endpointEvents) BreakerChanged(endpoint string, state outbound.State) {
	e.BreakerTurned(endpoint, string(state))
}

// readGauges registers the metrics that are read when they are scraped.
func (a *App) readGauges() {
	a.readEngineGauges()
	a.readBacklogGauges()
	a.readEndpointGauges()
	a.readPayerGauges()
	a.readSpendingGauges()
	a.readLedgerGauges()
	a.readIndexGauges()
	a.readSwapGauges()
}

func (a *App) readEngineGauges() {
	a.metrics.Read(contract.MetricWaiting, func() (float64, bool) { return float64(a.reader.Waiting()), true })
	a.metrics.Read(contract.MetricInFlight, func() (float64, bool) { n, _ := a.submissions.Manager.InProgress(); return float64(n), true })
	a.metrics.Read(contract.MetricTracked, func() (float64, bool) { _, n := a.submissions.Manager.InProgress(); return float64(n), true })
	a.metrics.ReadEach(contract.MetricQueuePaused, func(sample telemetry.Sample) {
		if why := a.submissions.Manager.PausedBy(); why != "" {
			sample(1, why)
		}
	})
}

func (a *App) readBacklogGauges() {
	a.metrics.Read(contract.MetricBacklog, func() (float64, bool) { b, ok := a.backlog.get(); return float64(b.Due), ok })
	a.metrics.Read(contract.MetricBacklogAge, func() (float64, bool) { b, ok := a.backlog.get(); return b.OldestDue.Seconds(), ok })
	a.metrics.ReadEach(contract.MetricHeld, func(sample telemetry.Sample) {
		b, _ := a.backlog.get() // without a reading there are no samples
		for reason, n := range b.Held {
			sample(float64(n), reason)
		}
	})
	a.metrics.ReadEach(contract.MetricOpen, func(sample telemetry.Sample) {
		if b, ok := a.backlog.get(); ok {
			sample(float64(b.Pending), string(submission.Pending))
			sample(float64(b.Processing), string(submission.Processing))
		}
	})
}

func (a *App) readEndpointGauges() {
	a.metrics.ReadEach(contract.MetricRPCUp, func(sample telemetry.Sample) {
		for _, e := range a.endpoints.Status() {
			sample(flag(e.Breaker == outbound.Closed && !e.Foreign), e.Name)
		}
	})
	a.metrics.ReadEach(contract.MetricRPCLag, func(sample telemetry.Sample) {
		for _, e := range a.endpoints.Status() {
			if !e.SlotAt.IsZero() {
				sample(float64(e.Lag), e.Name)
			}
		}
	})
	a.metrics.ReadEach(contract.MetricRPCSocket, func(sample telemetry.Sample) {
		for _, e := range a.endpoints.Status() {
			sample(flag(e.Subscribed), e.Name)
		}
	})
	a.metrics.ReadEach(contract.MetricRPCLatency, func(sample telemetry.Sample) {
		for _, e := range a.endpoints.Status() {
			if e.Latency > 0 {
				sample(e.Latency.Seconds(), e.Name)
			}
		}
	})
}

func flag(set bool) float64 {
	if set {
		return 1
	}
	return 0
}

func (a *App) readPayerGauges() {
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
	a.metrics.ReadEach(contract.MetricPayerBalance, each(func(b feepayer.Balance) (float64, bool) { return float64(b.Lamports), known(b) }))
	a.metrics.ReadEach(contract.MetricPayerBalanceTime, each(func(b feepayer.Balance) (float64, bool) { return telemetry.Timestamp(b.At), known(b) }))
	a.metrics.ReadEach(contract.MetricPayerInFlight, each(func(b feepayer.Balance) (float64, bool) { return float64(b.InFlight), true }))
	a.metrics.ReadEach(contract.MetricPayerReserved, each(func(b feepayer.Balance) (float64, bool) { return float64(b.Reserved), true }))
	a.metrics.Read(contract.MetricPayerMinimum, func() (float64, bool) { return float64(a.o.Config.FeePayerMinBalance), true })
	a.metrics.ReadEach(contract.MetricPayerUsable, each(func(b feepayer.Balance) (float64, bool) { return flag(b.State == feepayer.StateReady), true }))
}

func (a *App) readSpendingGauges() {
	a.metrics.ReadEach(contract.MetricCap, func(sample telemetry.Sample) {
		l := a.o.Config
		for _, c := range []struct {
			name     string
			lamports uint64
		}{{"hour", l.SpendCapHour}, {"day", l.SpendCapDay}, {"transfers_day", l.SpendCapTransfersDay}} {
			if c.lamports > 0 {
				sample(float64(c.lamports), c.name)
			}
		}
	})
	a.metrics.ReadEach(contract.MetricCapLeft, func(sample telemetry.Sample) {
		ctx, cancel := context.WithTimeout(context.Background(), healthTimeout)
		defer cancel()
		usage, err := a.caps.Usage(ctx)
		if err != nil {
			return // unknown is not zero
		}
		for _, u := range usage {
			if u.Limit > 0 {
				sample(float64(u.Limit-min(u.Spent, u.Limit)), u.Cap)
			}
		}
	})
}

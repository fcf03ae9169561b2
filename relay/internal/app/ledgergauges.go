package app

import (
	"time"

	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/internal/ledger"
	"github.com/relaypool/relaypool/relay/internal/telemetry"
)

// registerLedgerGauges registers the gauges of the ledger, which cover the whole fleet.
func (a *App) registerLedgerGauges() {
	each := func(c contract.Metric, read func(l *ledger.Snapshot, sample telemetry.Sample)) {
		a.metrics.RegisterVecFunc(c, func(sample telemetry.Sample) {
			if l := a.accounting.get(); l != nil {
				read(l, sample)
			}
		})
	}
	each(contract.MetricSpent, func(l *ledger.Snapshot, sample telemetry.Sample) {
		sampleCosts(sumByKind(l.Totals, time.Time{}), sample)
	})
	each(contract.MetricSpentToday, func(l *ledger.Snapshot, sample telemetry.Sample) {
		sampleCosts(sumByKind(l.Days, startOfDay(time.Now())), sample)
	})
	each(contract.MetricReceived, func(l *ledger.Snapshot, sample telemetry.Sample) {
		var received uint64
		for _, s := range l.Totals {
			received += s.Received
		}
		sample(float64(received))
	})
	each(contract.MetricReturned, func(l *ledger.Snapshot, sample telemetry.Sample) {
		var returned uint64
		for _, s := range l.Totals {
			returned += s.Returned
		}
		sample(float64(returned))
	})
	each(contract.MetricLedgerUnknown, func(l *ledger.Snapshot, sample telemetry.Sample) {
		var unknown uint64
		for _, s := range l.Totals {
			if s.Kind == ledger.KindUnknown {
				unknown += s.Transactions
			}
		}
		sample(float64(unknown))
	})
	payers := func(value func(p *ledger.PayerLine) (float64, bool)) func(*ledger.Snapshot, telemetry.Sample) {
		return func(l *ledger.Snapshot, sample telemetry.Sample) {
			for _, p := range l.Statement(nil).Payers {
				if v, ok := value(&p); ok {
					sample(v, p.Payer.String())
				}
			}
		}
	}
	each(contract.MetricLedgerGaps, payers(func(p *ledger.PayerLine) (float64, bool) { return float64(p.Gaps), true }))
	each(contract.MetricLedgerDifference, payers(func(p *ledger.PayerLine) (float64, bool) { return float64(p.Unexplained + p.Other), true }))
	each(contract.MetricLedgerReconciled, func(l *ledger.Snapshot, sample telemetry.Sample) {
		for _, payerLag := range a.accounting.lags(l, a.payers.Balances(), time.Now()) {
			sample(telemetry.Timestamp(payerLag.Since), payerLag.Payer.String())
		}
	})
}

func startOfDay(now time.Time) time.Time { return now.UTC().Truncate(24 * time.Hour) }

// sumByKind adds up the sums of one day over all payers; the zero day means all days.
func sumByKind(sums []ledger.Sum, day time.Time) map[ledger.Kind]ledger.Amounts {
	out := map[ledger.Kind]ledger.Amounts{}
	for _, s := range sums {
		if !day.IsZero() && !s.Day.Equal(day) {
			continue
		}
		t := out[s.Kind]
		t.Fee, t.PriorityFee, t.Tip, t.Rent, t.Returned, t.Other = t.Fee+s.Fee, t.PriorityFee+s.PriorityFee, t.Tip+s.Tip, t.Rent+s.Rent, t.Returned+s.Returned, t.Other+s.Other
		out[s.Kind] = t
	}
	return out
}

// sampleCosts samples the costs by kind. A counter must not fall, but Rent falls when rent is
// returned. So the sample is the rent before returns, and returned rent has its own metric.
func sampleCosts(kinds map[ledger.Kind]ledger.Amounts, sample telemetry.Sample) {
	for kind, t := range kinds {
		if kind == ledger.KindReceived {
			continue // received lamports are not a cost
		}
		for cost, lamports := range map[string]float64{
			"fee": float64(t.Fee), "priority_fee": float64(t.PriorityFee), "tip": float64(t.Tip), "rent": float64(t.Rent) + float64(t.Returned), "other": float64(t.Other),
		} {
			sample(lamports, string(kind), cost)
		}
	}
}

package pool

import (
	"testing"
	"time"

	"github.com/relaypool/relaypool/controllers/internal/chainwatch"
)

func TestUnderfundedPayerIsReadMoreOften(t *testing.T) {
	t.Parallel()
	setBalance := func(f *Facts, lamports uint64) {
		f.Chain.Payers[payerA()] = chainwatch.Payer{Lamports: lamports, At: now()}
	}
	tests := map[string]struct {
		change func(f *Facts)
		want   time.Duration
	}{
		"all are above their minimum":                                 {want: time.Minute},
		"one is below its minimum":                                    {change: func(f *Facts) { setBalance(f, 1) }, want: underfundedInterval},
		"one is below its minimum, and the interval is short already": {change: func(f *Facts) { setBalance(f, 1); f.Target.Query.Interval = 10 * time.Second }, want: 10 * time.Second},
		"one was never read":                                          {change: func(f *Facts) { delete(f.Chain.Payers, payerA()) }, want: time.Minute},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := healthyFacts()
			if tc.change != nil {
				tc.change(f)
			}
			if p := Decide(f, settings()); p.Query.Interval != tc.want {
				t.Errorf("checks every %s: want %s", p.Query.Interval, tc.want)
			}
		})
	}
}

package pool

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/chainwatch"
)

func TestFiguresAreWrittenOnlyAfterEnoughChange(t *testing.T) {
	t.Parallel()
	balance := func(lamports uint64) func(*Facts) {
		return func(f *Facts) { f.Chain.Payers[payerA()] = chainwatch.Payer{Lamports: lamports, At: f.Now} }
	}
	index := func(n uint64) func(*Facts) {
		return func(f *Facts) { f.Chain.Report.Pools[0].NextIndex = &n }
	}
	due := func(n int64) func(*Facts) { return func(f *Facts) { f.Backlog.Due = n } }
	tests := map[string]struct {
		change func(f *Facts)
		after  time.Duration
		want   bool
	}{
		"nothing changed":                                {change: func(*Facts) {}, after: time.Hour},
		"a balance fell by two percent":                  {change: balance(980_000_000), after: time.Hour, want: true}, // across the target
		"a balance rose by two percent":                  {change: balance(1_020_000_000), after: time.Hour},
		"a balance rose by a tenth":                      {change: balance(1_100_000_000), after: time.Hour, want: true},
		"a balance rose by a tenth within a minute":      {change: balance(1_100_000_000), after: 30 * time.Second},
		"a balance fell below the minimum, at once":      {change: balance(10_000_000), after: time.Second, want: true}, // a condition changes
		"a balance could not be read":                    {change: func(f *Facts) { delete(f.Chain.Payers, payerA()) }, after: 0, want: true},
		"the tree of a million leaves grew by a hundred": {change: index(1_234_667), after: time.Hour},
		"the tree grew by two percent":                   {change: index(1_260_000), after: time.Hour, want: true},
		"the backlog grew by half":                       {change: due(4), after: time.Hour},
		"the backlog doubled":                            {change: due(6), after: time.Hour, want: true},
		"the backlog ended":                              {change: due(0), after: time.Hour, want: true},
		"a pod became ready":                             {change: func(f *Facts) { setFleet(f, 3, 3) }, after: time.Second, want: true},
		"a payer was removed":                            {change: func(f *Facts) { f.References.Payers = f.References.Payers[:1] }, after: time.Second, want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := healthyFacts()
			f.Pool.Status = statusOf(t, f)
			if f.Pool.Status.ObservedAt == nil || ptr.Deref(f.Pool.Status.NextIndex, 0) != 1_230_000 || ptr.Deref(f.Pool.Status.Backlog, 0) != 3 {
				t.Fatalf("first status has index %v, backlog %v: want 1230000 and 3", f.Pool.Status.NextIndex, f.Pool.Status.Backlog)
			}
			f.Now = f.Now.Add(tc.after)
			tc.change(f)
			next := statusOf(t, f)
			if got := !equality.Semantic.DeepEqual(f.Pool.Status, next); got != tc.want {
				t.Errorf("status changed %t: want %t", got, tc.want)
			}
		})
	}
}

// Deferred figures are written when the minute is over, even if nothing else starts a pass.
func TestDeferredFiguresAreWrittenAfterAMinute(t *testing.T) {
	t.Parallel()
	f := healthyFacts()
	f.Pool.Status = statusOf(t, f)
	f.Now = f.Now.Add(20 * time.Second)
	f.Backlog.Due = 50
	p := Decide(f, settings())
	status := Report(f, &p, &Outcome{})
	if got, want := figuresDue(f, &p, &status), now().Add(time.Minute); !got.Equal(want) {
		t.Errorf("figures are due at %s: want %s", got, want)
	}
	f.Now = now().Add(time.Minute)
	status = Report(f, &p, &Outcome{})
	if got := ptr.Deref(status.Backlog, 0); got != 50 {
		t.Errorf("backlog %d: want 50", got)
	}
	if got := figuresDue(f, &p, &status); !got.IsZero() {
		t.Errorf("figures are due at %s although all are written", got)
	}
}

func TestRoundDownKeepsTheFirstDigits(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]int64{0: 0, 7: 7, 99: 99, 100: 100, 123: 120, 98765: 98000} {
		if got := roundDown(n, 2); got != want {
			t.Errorf("roundDown(%d) = %d: want %d", n, got, want)
		}
	}
}

// The amount in the message is enough although the balance and the amount are rounded.
func TestShortfallIsEnough(t *testing.T) {
	t.Parallel()
	f := healthyFacts()
	for _, balance := range []uint64{0, 1, 9_999_999, 10_000_000, 49_999_999} {
		f.Chain.Payers[payerA()] = chainwatch.Payer{Lamports: balance, At: now()}
		p := Decide(f, settings())
		v := feePayersFunded(f, &p)
		if v.reason != v1alpha1.ReasonUnderfunded {
			t.Errorf("with %d lamports: reason %s, want Underfunded", balance, v.reason)
		}
		amount := regexp.MustCompile(`\((\d+) lamports\)`).FindStringSubmatch(v.message)
		if amount == nil {
			t.Fatalf("with %d lamports the message names no amount: %s", balance, v.message)
		}
		if more, err := strconv.ParseUint(amount[1], 10, 64); err != nil || balance+more < 1_000_000_000 {
			t.Errorf("with %d lamports the message asks for %s more, which is not enough", balance, amount[1])
		}
	}
}

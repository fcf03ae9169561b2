package chainwatch

import (
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/poolcheck"
)

// The balance also keeps the time at which it was last read.
func TestABalanceThatIsNotReadKeepsItsLastValue(t *testing.T) {
	t.Parallel()
	rich, unread, neverRead := solana.PublicKey{1}, solana.PublicKey{2}, solana.PublicKey{3}
	p := &pool{query: &Query{Payers: []solana.PublicKey{rich, unread, neverRead}}, history: map[solana.PublicKey]*balanceHistory{}}
	first := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	second := first.Add(time.Minute)
	p.keepReading(answer{ok: true, report: poolcheck.Report{Balances: map[solana.PublicKey]uint64{rich: 9, unread: 5}}}, first)
	p.keepReading(answer{ok: true, report: poolcheck.Report{Balances: map[solana.PublicKey]uint64{rich: 8}}}, second)
	got := map[solana.PublicKey]time.Time{}
	for key, payer := range p.reading.Payers {
		got[key] = payer.At
	}
	if diff := cmp.Diff(map[solana.PublicKey]time.Time{rich: second, unread: first}, got); diff != "" {
		t.Errorf("times at which balances were read (-want +got):\n%s", diff)
	}
	if p.reading.Payers[rich].Lamports != 8 || p.reading.Payers[unread].Lamports != 5 {
		t.Errorf("balances are %+v, want 8 and the last one, 5", p.reading.Payers)
	}
}

// A field of Query that sameQuery did not compare could change in the spec without effect.
func TestSameQueryComparesEveryField(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*Query)
		want   bool
	}{
		"nothing is changed":        {func(*Query) {}, true},
		"another interval":          {func(q *Query) { q.Interval *= 2 }, false},
		"another commitment":        {func(q *Query) { q.Finalized = !q.Finalized }, false},
		"another payer":             {func(q *Query) { q.Payers = []solana.PublicKey{{7}} }, false},
		"another threshold":         {func(q *Query) { q.Thresholds = []uint64{60_000_000} }, false},
		"an extra threshold":        {func(q *Query) { q.Thresholds = append(q.Thresholds, 1) }, false},
		"one endpoint fewer":        {func(q *Query) { q.Endpoints = q.Endpoints[:1] }, false},
		"an endpoint's new name":    {func(q *Query) { q.Endpoints[1].Name = "c" }, false},
		"an endpoint's changed URL": {func(q *Query) { q.Endpoints[1].Identity = "b at another resource version" }, false},
		"another chain":             {func(q *Query) { q.Target.Genesis = solana.Hash{1} }, false},
		"another key":               {func(q *Query) { q.Target.Key = &poolcheck.Key{Publics: 1} }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, after := query("a", "b"), query("a", "b")
			test.change(&after)
			if got := sameQuery(&before, &after); got != test.want {
				t.Errorf("sameQuery is %t, want %t", got, test.want)
			}
		})
	}
}

package chainwatch

import (
	"testing"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/poolcheck"
)

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

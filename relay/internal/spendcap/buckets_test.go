package spendcap

import (
	"testing"
	"time"
)

func TestSum(t *testing.T) {
	t.Parallel()
	m := time.Minute
	tests := map[string]struct {
		buckets       []Bucket
		transfersOnly bool
		want          uint64
	}{
		"nothing spent":                            {},
		"one bucket":                               {buckets: []Bucket{{Age: m, Lamports: 5}}, want: 5},
		"both kinds of a bucket":                   {buckets: []Bucket{{m, true, 5}, {m, false, 7}}, want: 12},
		"only transfers":                           {buckets: []Bucket{{m, true, 5}, {m, false, 7}}, transfersOnly: true, want: 5},
		"a bucket partly outside counts in full":   {buckets: []Bucket{{64 * m, false, 5}}, want: 5},
		"a bucket outside does not count":          {buckets: []Bucket{{65 * m, false, 5}, {m, false, 1}}, want: 1},
		"a later release is subtracted":            {buckets: []Bucket{{30 * m, false, 9}, {10 * m, false, -4}}, want: 5},
		"a release in the same bucket":             {buckets: []Bucket{{m, false, 9}, {m, false, -9}}},
		"a release gives later spending no credit": {buckets: []Bucket{{70 * m, false, 9}, {62 * m, false, -9}, {m, false, 5}}, want: 5},
		"a release from several buckets":           {buckets: []Bucket{{40 * m, false, 9}, {30 * m, false, 2}, {10 * m, false, -4}}, want: 7},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := sum(test.buckets, time.Hour, test.transfersOnly); got.spent != test.want {
				t.Errorf("%d lamports are spent, want %d", got.spent, test.want)
			}
		})
	}
}

func TestTimeUntilFree(t *testing.T) {
	t.Parallel()
	m := time.Minute
	w := sum([]Bucket{{Age: 10 * m, Lamports: 5}, {Age: 50 * m, Lamports: 3}, {Age: 20 * m, Lamports: 2}}, time.Hour, false)
	tests := map[string]struct {
		over uint64
		want time.Duration
		ok   bool
	}{
		"the oldest bucket is enough":       {over: 3, want: 15 * m, ok: true},
		"the two oldest buckets are enough": {over: 4, want: 45 * m, ok: true},
		"all buckets are needed":            {over: 10, want: 55 * m, ok: true},
		"more than was spent":               {over: 11},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, ok := w.timeUntilFree(test.over); got != test.want || ok != test.ok {
				t.Errorf("time is %s (ok %v), want %s (ok %v)", got, ok, test.want, test.ok)
			}
		})
	}
}

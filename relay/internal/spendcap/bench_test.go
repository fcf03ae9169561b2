package spendcap

import (
	"context"
	"log/slog"
	"testing"
	"time"
)

// fullDay is a day with both kinds of bucket every five minutes.
type fullDay struct{}

func (fullDay) SpendBuckets(context.Context, time.Duration) ([]Bucket, error) {
	var out []Bucket
	for age := time.Duration(0); age < BucketsKept; age += BucketWidth {
		out = append(out, Bucket{age, true, 1e9}, Bucket{age, false, 1e9})
	}
	return out, nil
}

// BenchmarkAllow measures what the caps cost each attempt.
func BenchmarkAllow(b *testing.B) {
	c, err := New(Options{Limits: Limits{1 << 60, 1 << 60, 1 << 60}, Store: fullDay{}, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	if err != nil {
		b.Fatal(err)
	}
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			done, err := c.Allow(b.Context(), true, 1)
			if err != nil {
				b.Fatal(err)
			}
			done(true)
		}
	})
}

// BenchmarkSum measures the summation that runs every two seconds.
func BenchmarkSum(b *testing.B) {
	buckets, _ := fullDay{}.SpendBuckets(b.Context(), 0) // it never fails
	for b.Loop() {
		sum(buckets, day, false)
	}
}

// Package spendcap bounds what the fleet spends, by hour and by day.
package spendcap

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// The store adds spending to buckets, which the caps sum up.
const (
	// BucketWidth is the length of one bucket.
	BucketWidth = 5 * time.Minute
	// BucketsKept is the age at which no cap needs a bucket any more.
	BucketsKept = day + BucketWidth
)

const (
	hour = time.Hour
	day  = 24 * time.Hour
)

// Bucket is the fleet's spending of five minutes on one class of transactions.
type Bucket struct {
	// Age is the time since the bucket began, by the database's clock.
	Age time.Duration
	// Transfer is set for transfers, which pay the pool no fee.
	Transfer bool
	// Lamports is the reserved cost of attempts, less the released cost of attempts
	// that died without payment. It is negative when the released attempts belong to an
	// earlier bucket.
	Lamports int64
}

// BucketStore reads the buckets.
type BucketStore interface {
	// SpendBuckets returns the buckets that are younger than age, in any order.
	SpendBuckets(ctx context.Context, age time.Duration) ([]Bucket, error)
}

// window is the spending of a period, in parts that leave it one after the other.
type window struct {
	spent uint64
	parts []part // the first to leave comes first
}

type part struct {
	leavesIn time.Duration
	lamports uint64
}

// sum adds up the buckets of the last length. A bucket counts until all of it has left.
// Releases only reduce earlier spending: an attempt whose bucket has left the window must
// not make room when it dies.
func sum(buckets []Bucket, length time.Duration, transfersOnly bool) window {
	var inWindow []Bucket
	for _, b := range buckets {
		if b.Age < length+BucketWidth && (b.Transfer || !transfersOnly) {
			inWindow = append(inWindow, b)
		}
	}
	slices.SortFunc(inWindow, func(a, b Bucket) int { return cmp.Compare(a.Age, b.Age) })
	var w window
	var net int64 // if negative, it is subtracted from older buckets
	for i := 0; i < len(inWindow); {
		age := inWindow[i].Age
		for ; i < len(inWindow) && inWindow[i].Age == age; i++ {
			net += inWindow[i].Lamports
		}
		if net > 0 {
			w.parts = append(w.parts, part{leavesIn: length + BucketWidth - age, lamports: uint64(net)})
			w.spent += uint64(net)
			net = 0
		}
	}
	slices.Reverse(w.parts)
	return w
}

// timeUntilFree returns the time until at least over lamports have left the window. ok
// is false when the window has less than that.
func (w window) timeUntilFree(over uint64) (wait time.Duration, ok bool) {
	for _, p := range w.parts {
		if p.lamports >= over {
			return p.leavesIn, true
		}
		over -= p.lamports
	}
	return 0, false
}

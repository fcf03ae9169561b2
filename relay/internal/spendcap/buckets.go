// Package spendcap bounds what the fleet spends, by hour and by day.
package spendcap

import (
	"context"
	"time"
)

// The store adds spending to buckets, and the caps sum up the buckets.
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
	// Lamports is the reserved cost of attempts, less the released cost of attempts that died
	// without payment. It can be negative, because the cost of an attempt may be released in a
	// later bucket than the one in which it was reserved.
	Lamports int64
}

// BucketStore reads the buckets.
type BucketStore interface {
	// SpendBuckets returns the buckets that are younger than age, in any order.
	SpendBuckets(ctx context.Context, age time.Duration) ([]Bucket, error)
}

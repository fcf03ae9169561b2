package spendcap

import (
	"cmp"
	"slices"
	"time"
)

// window is the spending of a period, in parts that drop out of the period one after the other.
type window struct {
	spent uint64
	parts []part // the oldest first
}

// part is the spending of one bucket. leavesIn is the time until it drops out of the window.
type part struct {
	leavesIn time.Duration
	lamports uint64
}

// sum adds up the buckets of the newest period of the given length. A bucket counts until the whole
// bucket is older than the period. A release reduces only spending that is older than the release:
// when the bucket of an attempt has dropped out of the period, the release of the attempt's cost
// must not make room for newer spending.
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

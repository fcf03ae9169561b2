package spendcap

import (
	"cmp"
	"slices"
	"time"
)

// window is the spending of a period, in parts that leave it one after the other.
type window struct {
	spent uint64
	parts []part // the first to leave comes first
}

type part struct {
	leaves   time.Duration
	lamports uint64
}

// sum adds up the buckets of the last length. A bucket counts until all of it has left.
// Releases only reduce earlier spending: an attempt whose bucket has left the window must
// not make room when it dies.
func sum(buckets []Bucket, length time.Duration, transfersOnly bool) window {
	var in []Bucket
	for _, b := range buckets {
		if b.Age < length+BucketWidth && (b.Transfer || !transfersOnly) {
			in = append(in, b)
		}
	}
	slices.SortFunc(in, func(a, b Bucket) int { return cmp.Compare(a.Age, b.Age) })
	var w window
	var back int64 // negative: still to be subtracted from older buckets
	for i := 0; i < len(in); {
		age := in[i].Age
		for ; i < len(in) && in[i].Age == age; i++ {
			back += in[i].Lamports
		}
		if back > 0 {
			w.parts = append(w.parts, part{leaves: length + BucketWidth - age, lamports: uint64(back)})
			w.spent += uint64(back)
			back = 0
		}
	}
	slices.Reverse(w.parts)
	return w
}

// until returns the time until enough has left the window to remove over. ok is false when
// it never will.
func (w window) until(over uint64) (wait time.Duration, ok bool) {
	for _, p := range w.parts {
		if p.lamports >= over {
			return p.leaves, true
		}
		over -= p.lamports
	}
	return 0, false
}

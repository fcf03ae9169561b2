package chainwatch

import (
	"slices"
	"time"
)

const (
	// spendingWindow is over how much of the past spending is reckoned, in
	// spendingParts parts of the same length.
	spendingWindow = time.Hour
	spendingParts  = 6
	// sampleEvery bounds the samples that are kept of one payer.
	sampleEvery = time.Minute
)

// balances is the history of one payer's balance, by what was spent in all: a
// balance that rose between two readings says nothing of what was spent
// meanwhile, and counts as nothing.
type balances struct {
	lamports uint64 // the newest balance
	spent    uint64 // in all, since the first
	samples  []sample
}

type sample struct {
	at    time.Time
	spent uint64
}

// add takes a reading in. Readings are added in their order.
func (b *balances) add(at time.Time, lamports uint64) {
	if len(b.samples) > 0 && lamports < b.lamports {
		b.spent += b.lamports - lamports
	}
	b.lamports = lamports
	if n := len(b.samples); n > 1 && at.Sub(b.samples[n-2].at) < sampleEvery {
		b.samples = b.samples[:n-1]
	}
	b.samples = append(b.samples, sample{at, b.spent})
	// One sample from before the window says what was spent up to its beginning.
	for len(b.samples) > 2 && at.Sub(b.samples[1].at) >= spendingWindow {
		b.samples = slices.Delete(b.samples, 0, 1)
	}
}

// perHour is the median of what was spent in the parts of the last hour, in
// lamports an hour: one burst, such as a sweep of the whole balance, does not
// move it. known is false while not even one part has been seen whole.
func (b *balances) perHour() (lamports uint64, known bool) {
	if len(b.samples) == 0 {
		return 0, false
	}
	const part = spendingWindow / spendingParts
	newest, oldest := b.samples[len(b.samples)-1].at, b.samples[0].at
	var parts []uint64
	for i := range spendingParts {
		end := newest.Add(-time.Duration(i) * part)
		if start := end.Add(-part); !start.Before(oldest) {
			parts = append(parts, b.spentAt(end)-b.spentAt(start))
		}
	}
	if len(parts) == 0 {
		return 0, false
	}
	slices.Sort(parts)
	// Of an even number the mean of the two in the middle.
	middle := len(parts) / 2
	median := parts[middle]
	if len(parts)%2 == 0 {
		median = (parts[middle-1] + parts[middle]) / 2
	}
	return median * spendingParts, true
}

// spentAt is what had been spent at t, which is not before the oldest sample,
// as if it was spent evenly between two of them.
func (b *balances) spentAt(t time.Time) uint64 {
	i := slices.IndexFunc(b.samples, func(s sample) bool { return !s.at.Before(t) })
	if i <= 0 {
		return b.samples[max(i, 0)].spent
	}
	from, to := b.samples[i-1], b.samples[i]
	share := float64(t.Sub(from.at)) / float64(to.at.Sub(from.at))
	return from.spent + uint64(share*float64(to.spent-from.spent))
}

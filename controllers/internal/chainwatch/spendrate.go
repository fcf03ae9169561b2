package chainwatch

import (
	"slices"
	"time"
)

const (
	// spendingWindow is the period over which spending is computed, in spendingParts
	// parts of the same length.
	spendingWindow = time.Hour
	spendingParts  = 6
	// sampleInterval is the minimum time between two samples; it bounds their number.
	sampleInterval = time.Minute
)

// balanceHistory is the history of one payer's balance, as a running total of what was
// spent. When a balance rose between two readings, the spending between them is
// unknown, and counts as zero.
type balanceHistory struct {
	lamports uint64 // the newest balance
	spent    uint64 // the total since the first reading
	samples  []sample
}

type sample struct {
	at    time.Time
	spent uint64
}

// add adds a reading. Readings are added in the order of their times.
func (b *balanceHistory) add(at time.Time, lamports uint64) {
	if len(b.samples) > 0 && lamports < b.lamports {
		b.spent += b.lamports - lamports
	}
	b.lamports = lamports
	if n := len(b.samples); n > 1 && at.Sub(b.samples[n-2].at) < sampleInterval {
		b.samples = b.samples[:n-1]
	}
	b.samples = append(b.samples, sample{at, b.spent})
	// One sample from before the window gives the total at the window's start.
	for len(b.samples) > 2 && at.Sub(b.samples[1].at) >= spendingWindow {
		b.samples = slices.Delete(b.samples, 0, 1)
	}
}

// perHour returns the rate of spending, in lamports an hour. It is the median over the parts
// of the last hour, because one burst, such as a sweep of the whole balance, hardly changes a
// median. known is false while the history is shorter than one part.
func (b *balanceHistory) perHour() (lamports uint64, known bool) {
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
	// For an even number of parts, the median is the mean of the two in the middle.
	middle := len(parts) / 2
	median := parts[middle]
	if len(parts)%2 == 0 {
		median = (parts[middle-1] + parts[middle]) / 2
	}
	return median * spendingParts, true
}

// spentAt returns the total spent until t, which must not be before the oldest sample. It
// assumes even spending between two samples.
func (b *balanceHistory) spentAt(t time.Time) uint64 {
	i := slices.IndexFunc(b.samples, func(s sample) bool { return !s.at.Before(t) })
	if i <= 0 {
		return b.samples[max(i, 0)].spent
	}
	before, after := b.samples[i-1], b.samples[i]
	share := float64(t.Sub(before.at)) / float64(after.at.Sub(before.at))
	return before.spent + uint64(share*float64(after.spent-before.spent))
}

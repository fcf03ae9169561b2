package bank

import (
	"sort"
	"time"
)

// samplePeriod is the time that a performance sample covers.
const samplePeriod = time.Minute

// Sample is what the chain did in a period.
type Sample struct {
	// Slot is the last slot of the period. Slots is the number of slots. Seconds is the length.
	Slot, Slots, Seconds uint64
	// Transactions counts those that landed.
	Transactions uint64
}

// Samples returns at most limit samples, the newest first. A chain younger than a minute
// has none.
func (v View) Samples(limit int) []Sample {
	chain, end := v.bank.chain, v.block
	var out []Sample
	for len(out) < limit {
		first := sort.Search(len(chain), func(i int) bool { return chain[i].at.After(end.at.Add(-samplePeriod)) })
		if first == 0 {
			break
		}
		start := chain[first-1]
		out = append(out, Sample{
			Slot: end.Slot, Slots: end.Slot - start.Slot, Seconds: uint64(end.at.Sub(start.at).Round(time.Second) / time.Second), //nolint:gosec // time goes on
			Transactions: end.Transactions - start.Transactions,
		})
		end = start
	}
	return out
}

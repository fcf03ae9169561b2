package chainwatch

import "time"

// Runway is how long the balance lasts at the recent rate of spending; ok is
// false while nothing is spent or the rate is not known.
func (p Payer) Runway() (d time.Duration, ok bool) {
	const longest = 100 * 365 * 24 // hours; a time.Duration holds three times as many
	if !p.SpendingKnown || p.Spending == 0 {
		return 0, false
	}
	hours := float64(p.Lamports) / float64(p.Spending)
	return time.Duration(min(hours, longest) * float64(time.Hour)), true
}

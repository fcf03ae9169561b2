package pool

import "github.com/relaypool/relaypool/api/v1alpha1"

// thresholds returns the minimum and the target balance, in lamports.
func thresholds(p *v1alpha1.FeePayers) []uint64 {
	return []uint64{lamports(p.MinimumBalanceLamports, defaultMinimum), lamports(p.TargetBalanceLamports, defaultTarget)}
}

// These are the CRD's defaults of the two balances, in lamports. The API server normally
// fills them in.
const (
	defaultMinimum = 50_000_000
	defaultTarget  = 1_000_000_000
)

// lamports returns an amount, or fallback if the amount is not set or negative.
func lamports(amount *int64, fallback uint64) uint64 {
	if amount == nil || *amount < 0 {
		return fallback
	}
	return uint64(*amount)
}

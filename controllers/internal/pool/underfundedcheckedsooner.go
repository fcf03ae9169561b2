package pool

import (
	"slices"
	"time"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// underfundedInterval is the longest time between checks of the chain while a fee payer is
// below its minimum, because the person who funds the payer waits for the result.
const underfundedInterval = 15 * time.Second

// checkInterval returns the time between checks of the chain: the declared time, or less while a
// payer in use has less than minimum lamports. A declared time of 0 is the watcher's default.
func checkInterval(declared time.Duration, payers []v1alpha1.FeePayerStatus, minimum uint64) time.Duration {
	if anyUnderfunded(payers, minimum) && (declared == 0 || declared > underfundedInterval) {
		return underfundedInterval
	}
	return declared
}

// anyUnderfunded reports whether a payer in use is known to have less than minimum lamports.
func anyUnderfunded(payers []v1alpha1.FeePayerStatus, minimum uint64) bool {
	return slices.ContainsFunc(payers, func(p v1alpha1.FeePayerStatus) bool {
		return p.State == v1alpha1.PayerActive && p.BalanceLamports != nil && lamports(p.BalanceLamports, 0) < minimum
	})
}

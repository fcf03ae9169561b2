package main

import (
	"github.com/relaypool/relaypool/api/v1alpha1"
)

// The CRD's defaults of a payer's balances. The API server normally fills them in.
const (
	defaultMinimum = 50_000_000
	defaultTarget  = 1_000_000_000
)

// roundingUnit is the unit of the balances in a status, in lamports.
const roundingUnit = 10_000_000

// balancesWanted returns the minimum and the target balance of a payer, in lamports.
func balancesWanted(payers *v1alpha1.FeePayers) (minimum, target uint64) {
	minimum, target = orDefault(payers.MinimumBalanceLamports, defaultMinimum), orDefault(payers.TargetBalanceLamports, defaultTarget)
	return minimum, max(minimum, target)
}

func orDefault(lamports *int64, fallback uint64) uint64 {
	if lamports == nil || *lamports < 0 {
		return fallback
	}
	return uint64(*lamports)
}

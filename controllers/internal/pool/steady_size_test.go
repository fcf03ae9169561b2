//go:build !race

package pool_test

// How many fleets TestSteadyStateIsNotWritten has.
const (
	idlePools = 200
	busyPools = 20
)

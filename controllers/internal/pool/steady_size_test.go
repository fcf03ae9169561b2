//go:build !race

package pool_test

// These are the numbers of fleets in TestSteadyStateWritesOnlyChangedStatuses.
const (
	idlePools = 200
	busyPools = 20
)

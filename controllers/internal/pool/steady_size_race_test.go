//go:build race

package pool_test

// Races show among few fleets as among many, and the detector would take minutes
// for the latter. `make test` runs the whole number without it.
const (
	idlePools = 20
	busyPools = 6
)

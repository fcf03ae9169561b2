//go:build race

package pool_test

// Few fleets show the same races as many, and with many the race detector takes minutes.
// `make test` also runs all fleets, without the race detector.
const (
	idlePools = 20
	busyPools = 6
)

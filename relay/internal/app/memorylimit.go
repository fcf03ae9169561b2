package app

import (
	"math"
	"runtime/debug"

	"github.com/relaypool/relaypool/relay/internal/httpapi"
)

// LowerMemoryLimit takes the cached leaves, which are outside Go's heap, off the memory limit of the
// environment (GOMEMLIMIT), if there is one: the container's limit counts both. Call it once.
func LowerMemoryLimit() {
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		debug.SetMemoryLimit(max(limit-httpapi.MaxCached, limit/2))
	}
}

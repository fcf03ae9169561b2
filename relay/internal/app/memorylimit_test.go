package app_test

import (
	"math"
	"runtime/debug"
	"testing"

	"github.com/relaypool/relaypool/relay/internal/app"
)

func TestCachedLeavesLowerTheMemoryLimit(t *testing.T) { //nolint:paralleltest // the limit is the process's
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	for limit, want := range map[int64]int64{math.MaxInt64: math.MaxInt64, 900 << 20: 820 << 20, 100 << 20: 50 << 20} {
		debug.SetMemoryLimit(limit)
		app.LowerMemoryLimit()
		if got := debug.SetMemoryLimit(-1); got != want {
			t.Errorf("a limit of %d became %d, want %d", limit, got, want)
		}
	}
}

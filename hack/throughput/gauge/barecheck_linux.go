package gauge

import (
	"math/big"
	"runtime"
	"slices"
	"time"

	"github.com/consensys/gnark-crypto/ecc/bn254"
	"golang.org/x/sys/unix"
)

// bareChecks is how many checks BareCheck makes, which takes some 50 ms.
const bareChecks = 40

// BareCheck returns the processor time of gnark-crypto's check of four pairs, the median of some. It is
// the unit in which machines of different speed can be compared.
func BareCheck() time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// 2·3 + 5·7 + 11·13 − 184·1 = 0, in the exponent.
	left, right := []int64{2, 5, 11, -184}, []int64{3, 7, 13, 1}
	points, twists := make([]bn254.G1Affine, len(left)), make([]bn254.G2Affine, len(right))
	for i := range left {
		points[i].ScalarMultiplicationBase(big.NewInt(left[i]))
		twists[i].ScalarMultiplicationBase(big.NewInt(right[i]))
	}
	took := make([]time.Duration, bareChecks)
	for i := range took {
		before := threadTime()
		if ok, err := bn254.PairingCheck(points, twists); err != nil || !ok {
			panic("the product of the pairings is not one")
		}
		took[i] = threadTime() - before
	}
	slices.Sort(took)
	return took[bareChecks/2]
}

// threadTime is the processor time that this thread has taken. The one of getrusage is too coarse.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

package groth16

import (
	"crypto/rand"
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkBatch compares a batch, with the decoding of its proofs, with bare pairings and with
// single checks. All are measured in turn, in processor time, and the least of each counts, so that
// another load of the machine changes the ratios little.
func BenchmarkBatch(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	key, vectors := snarkjsKeyOf(b), snarkjsVectors(b)
	points, twists := fourPairs()
	for _, size := range []int{1, 4, 16, 64} {
		for _, forged := range []struct {
			name string
			one  int // of that many claims
		}{{"none", math.MaxInt}, {"sixteenth", 16}, {"all", 1}} {
			if forged.one == 16 && size < 16 {
				continue
			}
			b.Run(fmt.Sprintf("size=%d/forged=%s", size, forged.name), func(b *testing.B) {
				bare, single, batch := time.Hour, time.Hour, time.Hour
				for b.Loop() {
					bare = min(bare, measure(b, func() { pair(b, points, twists) }))
					single = min(single, measure(b, func() { verifyBytes(b, key, vectors[2], Plain) }))
					batch = min(batch, measure(b, func() { verifyBatch(b, key, vectors, size, forged.one) }))
				}
				perProof := float64(batch) / float64(size)
				b.ReportMetric(perProof, "ns/proof")
				b.ReportMetric(perProof/float64(bare), "bare-checks/proof")
				b.ReportMetric(perProof/float64(single), "single-checks/proof")
			})
		}
	}
}

// measure returns the processor time that this thread uses for the work.
func measure(b *testing.B, work func()) time.Duration {
	began := threadTime(b)
	work()
	return threadTime(b) - began
}

func threadTime(b *testing.B) time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		b.Fatal(err)
	}
	return time.Duration(now.Nano())
}

// verifyBatch verifies a batch in which one of so many claims is forged, from the middle of each.
func verifyBatch(b *testing.B, key *Key, vectors []vector, size, one int) {
	forged := func(i int) bool { return i%one == one/2 }
	claims := make([]Claim, size)
	for i := range claims {
		v := vectors[i%len(vectors)]
		proof, err := ParseProof(v.proof)
		if err != nil {
			b.Fatal(err)
		}
		if forged(i) {
			proof.c.Neg(&proof.c)
		}
		claims[i] = Claim{Proof: proof, Publics: v.publics}
	}
	for i, v := range key.VerifyBatch(claims, Plain, rand.Reader) {
		if forged(i) != (v.Err != nil) {
			b.Errorf("claim %d: verdict %v", i, v)
		}
	}
}

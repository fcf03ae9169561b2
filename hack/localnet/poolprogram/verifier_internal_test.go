package poolprogram

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

// countingVerifier is a verifier that counts its verifications. A proof is valid when its
// first byte is 1.
func countingVerifier() (v *verifier, verified *atomic.Int64) {
	verified = new(atomic.Int64)
	return newVerifier(func(proof []byte, _ *shieldpool.PublicInputs) bool {
		verified.Add(1)
		return proof[0] == 1
	}), verified
}

func numberedProof(n uint64, valid byte) []byte {
	return append([]byte{valid}, binary.LittleEndian.AppendUint64(nil, n)...)
}

func TestIdenticalBytesAreVerifiedOnce(t *testing.T) {
	t.Parallel()
	v, verified := countingVerifier()
	in := &shieldpool.PublicInputs{PublicAmount: 7}
	for range 3 {
		if !v.valid(numberedProof(0, 1), in) || v.valid(numberedProof(0, 0), in) {
			t.Fatal("a cached verdict differs from the verified one")
		}
	}
	if got := verified.Load(); got != 2 {
		t.Errorf("%d verifications of two proofs, want 2", got)
	}
	other := *in
	other.PublicAmount++
	v.valid(numberedProof(0, 1), &other)
	if got := verified.Load(); got != 3 {
		t.Errorf("other public inputs were answered from the cache: %d verifications, want 3", got)
	}
}

func TestSimultaneousCallsShareOneVerification(t *testing.T) {
	t.Parallel()
	v, verified := countingVerifier()
	in := new(shieldpool.PublicInputs)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for n := range uint64(100) {
				if !v.valid(numberedProof(n, 1), in) {
					t.Error("a valid proof was refused")
				}
			}
		})
	}
	wg.Wait()
	if got := verified.Load(); got != 100 {
		t.Errorf("%d verifications of 100 proofs, want 100", got)
	}
}

func TestTheCacheOfVerdictsIsBounded(t *testing.T) {
	t.Parallel()
	v, verified := countingVerifier()
	in := new(shieldpool.PublicInputs)
	for n := range uint64(verdictsKept + 1) {
		v.valid(numberedProof(n, 1), in)
	}
	if n := len(v.verdicts); n != 1 {
		t.Errorf("%d verdicts are cached after the cache was full, want 1", n)
	}
	v.valid(numberedProof(0, 1), in)
	if got := verified.Load(); got != verdictsKept+2 {
		t.Errorf("a verdict that was forgotten: %d verifications, want %d", got, verdictsKept+2)
	}
}

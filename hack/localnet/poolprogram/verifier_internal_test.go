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

func TestOldestVerdictsAreEvicted(t *testing.T) {
	t.Parallel()
	v, verified := countingVerifier()
	in := new(shieldpool.PublicInputs)
	const proofs = 2*verdictsKept + 10
	for n := range uint64(proofs) {
		v.valid(numberedProof(n, 1), in)
	}
	if n := len(v.verdicts); n != verdictsKept || len(v.order) != verdictsKept {
		t.Errorf("%d verdicts and %d keys are cached, want %d each", n, len(v.order), verdictsKept)
	}
	v.valid(numberedProof(proofs-verdictsKept, 1), in)
	if got := verified.Load(); got != proofs {
		t.Errorf("the oldest cached proof was verified again: %d verifications, want %d", got, proofs)
	}
	v.valid(numberedProof(proofs-verdictsKept-1, 1), in)
	if got := verified.Load(); got != proofs+1 {
		t.Errorf("an evicted proof was not verified again: %d verifications, want %d", got, proofs+1)
	}
}

package poolprogram

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

// counting is a verifier that counts its verifications. A proof is valid when its
// first byte is 1.
func counting() (v *verifier, verified *atomic.Int64) {
	verified = new(atomic.Int64)
	return newVerifier(func(proof []byte, _ *shieldpool.PublicInputs) bool {
		verified.Add(1)
		return proof[0] == 1
	}), verified
}

func numbered(n uint64, holds byte) []byte {
	return append([]byte{holds}, binary.LittleEndian.AppendUint64(nil, n)...)
}

func TestIdenticalBytesAreVerifiedOnce(t *testing.T) {
	t.Parallel()
	v, verified := counting()
	in := &shieldpool.PublicInputs{PublicAmount: 7}
	for range 3 {
		if !v.holds(numbered(0, 1), in) || v.holds(numbered(0, 0), in) {
			t.Fatal("a verdict is not the one that was given")
		}
	}
	if got := verified.Load(); got != 2 {
		t.Errorf("%d verifications of two proofs, want 2", got)
	}
	other := *in
	other.PublicAmount++
	v.holds(numbered(0, 1), &other)
	if got := verified.Load(); got != 3 {
		t.Errorf("other public inputs were answered from the cache: %d verifications, want 3", got)
	}
}

func TestSimultaneousCallsShareOneVerification(t *testing.T) {
	t.Parallel()
	v, verified := counting()
	in := new(shieldpool.PublicInputs)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for n := range uint64(100) {
				if !v.holds(numbered(n, 1), in) {
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

func TestVerdictsAreBoundedAndTheOldestGo(t *testing.T) {
	t.Parallel()
	v, verified := counting()
	in := new(shieldpool.PublicInputs)
	const asked = 2*verdictsKept + 10
	for n := range uint64(asked) {
		v.holds(numbered(n, 1), in)
	}
	if n := len(v.verdicts); n != verdictsKept || len(v.order) != verdictsKept {
		t.Errorf("%d verdicts are kept in order of %d, want %d", n, len(v.order), verdictsKept)
	}
	v.holds(numbered(asked-verdictsKept, 1), in)
	if got := verified.Load(); got != asked {
		t.Errorf("the oldest that is kept was verified again: %d verifications, want %d", got, asked)
	}
	v.holds(numbered(asked-verdictsKept-1, 1), in)
	if got := verified.Load(); got != asked+1 {
		t.Errorf("one that was forgotten was not verified again: %d verifications, want %d", got, asked+1)
	}
}

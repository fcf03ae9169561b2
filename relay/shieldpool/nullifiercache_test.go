package shieldpool

import (
	"errors"
	"testing"

	"github.com/gagliardetto/solana-go"
)

func TestNullifierCacheDerivesEachAddressOnceAndStaysSmall(t *testing.T) {
	t.Parallel()
	var c nullifierCache
	derived := 0
	get := func(i int) {
		t.Helper()
		n := [32]byte{byte(i), byte(i >> 8)}
		want := solana.PublicKey{31: byte(i), 30: byte(i >> 8)}
		address, bump, err := c.get(n, func() (solana.PublicKey, uint8, error) { derived++; return want, uint8(i % 256), nil })
		if err != nil || address != want || bump != uint8(i%256) {
			t.Fatalf("nullifier %d: address %s, bump %d, %v, want %s, %d", i, address, bump, err, want, i%256)
		}
	}
	const many = 3 * nullifierCacheSize
	for i := range many {
		get(i)
		get(i)
		get(max(0, i-nullifierCacheSize/2)) // the older half still has it
	}
	if derived != many {
		t.Errorf("derived %d times, want %d: once for each", derived, many)
	}
	if n := len(c.recent) + len(c.older); n > 2*nullifierCacheSize {
		t.Errorf("%d entries, want at most %d", n, 2*nullifierCacheSize)
	}
}

func TestNullifierCacheForgetsFailures(t *testing.T) {
	t.Parallel()
	var c nullifierCache
	for range 2 {
		if _, _, err := c.get([32]byte{1}, func() (solana.PublicKey, uint8, error) { return solana.PublicKey{}, 0, errors.New("no bump") }); err == nil {
			t.Fatal("no error, want the derivation's each time")
		}
	}
}

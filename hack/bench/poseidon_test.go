// Package bench compares the relay's Poseidon with a library's, in a module of its own, because
// the relay does not use the library. make bench ARGS='-only crypto' prints the result with the
// other comparisons, which are next to the code that they measure.
package bench

import (
	"math/big"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
	"github.com/iden3/go-iden3-crypto/poseidon"

	"github.com/relaypool/relaypool/relay/merkle"
)

func inputs() (left, right fr.Element, both []*big.Int) {
	left, right = fr.NewElement(1), fr.NewElement(2)
	return left, right, []*big.Int{left.BigInt(new(big.Int)), right.BigInt(new(big.Int))}
}

func TestPoseidonImplementationsAgree(t *testing.T) {
	t.Parallel()
	left, right, both := inputs()
	want, err := poseidon.Hash(both)
	if err != nil {
		t.Fatal(err)
	}
	got := merkle.Hash2(&left, &right)
	if got.BigInt(new(big.Int)).Cmp(want) != 0 {
		t.Errorf("relaypool computes %s, go-iden3-crypto %s", got.String(), want)
	}
}

// BenchmarkPoseidon hashes two inputs.
func BenchmarkPoseidon(b *testing.B) {
	left, right, both := inputs()
	b.Run("way=go-iden3-crypto", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := poseidon.Hash(both); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("way=relaypool", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			left = merkle.Hash2(&left, &right)
		}
	})
}

package merkle

import (
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
)

func BenchmarkHash2(b *testing.B) {
	x, y := fr.NewElement(1), fr.NewElement(2)
	b.ReportAllocs()
	for b.Loop() {
		x = Hash2(&x, &y)
	}
}

func BenchmarkAppend(b *testing.B) {
	tree, leaf := NewTree(), fr.NewElement(1)
	b.ReportAllocs()
	for b.Loop() {
		if err := tree.Append(&leaf); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendAndRoot(b *testing.B) {
	tree, leaf := NewTree(), fr.NewElement(1)
	for b.Loop() {
		if err := tree.Append(&leaf); err != nil {
			b.Fatal(err)
		}
		leaf = tree.Root()
	}
}

// BenchmarkBulkLoad100k is a relay's start over a pool of 100 000 leaves: appends, then one root.
func BenchmarkBulkLoad100k(b *testing.B) {
	leaves := squares(100_000)
	for b.Loop() {
		grow(b, leaves).Root()
	}
}

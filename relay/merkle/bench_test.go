package merkle

import (
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
)

// BenchmarkTree compares appends that compute the root after every leaf, as the chain's program
// does, with appends that defer it.
func BenchmarkTree(b *testing.B) {
	for _, way := range []string{"root-after-each-leaf", "root-later"} {
		b.Run("way="+way, func(b *testing.B) {
			tree, leaf := NewTree(), fr.NewElement(1)
			b.ReportAllocs()
			for b.Loop() {
				if err := tree.Append(&leaf); err != nil {
					b.Fatal(err)
				}
				if way == "root-after-each-leaf" {
					tree.Root()
				}
			}
		})
	}
}

// BenchmarkTreeBulkLoad measures the start of a relay for a pool of 100 000 leaves: appends, then one root.
func BenchmarkTreeBulkLoad(b *testing.B) {
	leaves := squares(100_000)
	for b.Loop() {
		treeWith(b, leaves).Root()
	}
}

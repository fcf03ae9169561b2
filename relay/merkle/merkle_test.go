package merkle

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math/big"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
	"github.com/google/go-cmp/cmp"
)

// vectors were made by circomlibjs.
type vectors struct {
	Poseidon []struct {
		In  []string `json:"in"`
		Out string   `json:"out"`
	} `json:"poseidon"`
	Zeros []string `json:"zeros"`
	Tree  struct {
		Roots []struct {
			Leaves int    `json:"leaves"`
			Root   string `json:"root"`
		} `json:"roots"`
		Root1000 string `json:"root_1000_decimal"`
	} `json:"tree"`
}

func loadVectors(t *testing.T) vectors {
	t.Helper()
	b, err := os.ReadFile("testdata/poseidon_tree.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Poseidon) == 0 || len(v.Zeros) != Height+1 || len(v.Tree.Roots) == 0 || v.Tree.Root1000 == "" {
		t.Fatalf("vectors are incomplete: %d hashes, %d zeros, %d roots", len(v.Poseidon), len(v.Zeros), len(v.Tree.Roots))
	}
	return v
}

func hexOf(e fr.Element) string {
	b := Bytes(&e)
	return hex.EncodeToString(b[:])
}

func decimal(t *testing.T, s string) fr.Element {
	t.Helper()
	var e fr.Element
	if _, err := e.SetString(s); err != nil {
		t.Fatal(err)
	}
	return e
}

// squares are the leaves of the vectors: leaf i is (i+1)².
func squares(n int) []fr.Element {
	leaves := make([]fr.Element, n)
	for i := range leaves {
		leaves[i].SetUint64(uint64(i + 1))
		leaves[i].Square(&leaves[i])
	}
	return leaves
}

func treeWith(t testing.TB, leaves []fr.Element) *Tree {
	t.Helper()
	tree := NewTree()
	for i := range leaves {
		if err := tree.Append(&leaves[i]); err != nil {
			t.Fatal(err)
		}
	}
	return tree
}

func TestHashesMatchCircomlib(t *testing.T) {
	t.Parallel()
	seen := map[int]bool{}
	for _, v := range loadVectors(t).Poseidon {
		var in []fr.Element
		for _, s := range v.In {
			in = append(in, decimal(t, s))
		}
		seen[len(in)] = true
		var got fr.Element
		switch len(in) {
		case 2:
			got = Hash2(&in[0], &in[1])
		case 3:
			got = Hash3(&in[0], &in[1], &in[2])
		case 4:
			got = Hash4(&in[0], &in[1], &in[2], &in[3])
		default:
			t.Fatalf("vector with %d inputs", len(in))
		}
		if hexOf(got) != v.Out {
			t.Errorf("Poseidon(%s) = %s, want %s", strings.Join(v.In, ", "), hexOf(got), v.Out)
		}
	}
	if !cmp.Equal(seen, map[int]bool{2: true, 3: true, 4: true}) {
		t.Errorf("vectors cover %v inputs, want 2, 3 and 4", seen)
	}
}

// A changed constant would go unnoticed if no vector's hash depended on it.
func TestVectorsDependOnEveryConstant(t *testing.T) {
	t.Parallel()
	for inputs, p := range map[int]*parameters{2: &width3, 3: &width4, 4: &width5} {
		changed := *p
		hash := func() fr.Element {
			var state [maxWidth]fr.Element
			for i := range inputs {
				state[i+1].SetUint64(uint64(i + 1)) // the inputs of the vectors
			}
			changed.permute(state[:p.width])
			return state[0]
		}
		original := hash()
		for name, constants := range map[string]*[]fr.Element{
			"full": &changed.full, "partial": &changed.partial, "mds": &changed.mds, "pre": &changed.pre, "sparse": &changed.sparse,
		} {
			*constants = slices.Clone(*constants) // other tests hash with the original
			for i := range *constants {
				constant := (*constants)[i]
				(*constants)[i].Double(&constant)
				if hash() == original {
					t.Errorf("%d inputs: the hash is the same with another %s[%d]", inputs, name, i)
				}
				(*constants)[i] = constant
			}
		}
	}
}

func TestHashesDoNotAllocate(t *testing.T) {
	a, b := fr.NewElement(1), fr.NewElement(2)
	tree := NewTree()
	tests := map[string]func(){
		"two inputs":      func() { _ = Hash2(&a, &b) },
		"three inputs":    func() { _ = Hash3(&a, &b, &a) },
		"four inputs":     func() { _ = Hash4(&a, &b, &a, &b) },
		"append and root": func() { _ = tree.Append(&a); _ = tree.Root() },
	}
	for name, f := range tests {
		if got := testing.AllocsPerRun(20, f); got != 0 {
			t.Errorf("%s: %v allocations, want 0", name, got)
		}
	}
}

func TestZerosMatchCircomlib(t *testing.T) {
	t.Parallel()
	for level, want := range loadVectors(t).Zeros {
		if got := hexOf(Zero(level)); got != want {
			t.Errorf("Zero(%d) = %s, want %s", level, got, want)
		}
	}
}

func TestRootsMatchCircomlib(t *testing.T) {
	t.Parallel()
	v := loadVectors(t)
	for _, r := range v.Tree.Roots {
		if got := hexOf(treeWith(t, squares(r.Leaves)).Root()); got != r.Root {
			t.Errorf("root over %d leaves = %s, want %s", r.Leaves, got, r.Root)
		}
	}
	if got := treeWith(t, squares(1000)).Root(); got != decimal(t, v.Tree.Root1000) {
		t.Errorf("root over 1000 leaves = %s, want %s", got.String(), v.Tree.Root1000)
	}
}

func TestFromBytes(t *testing.T) {
	t.Parallel()
	order := func(add int64) (b [32]byte) {
		n := big.NewInt(add)
		n.Add(n, fr.Modulus()).FillBytes(b[:])
		return b
	}
	tests := map[string]struct {
		in      [32]byte
		wantErr error
	}{
		"zero is canonical":                      {in: [32]byte{}},
		"the order less one is canonical":        {in: order(-1)},
		"the order is not canonical":             {in: order(0), wantErr: ErrNotCanonical},
		"the order plus one is not canonical":    {in: order(1), wantErr: ErrNotCanonical},
		"the largest 32 bytes are not canonical": {in: [32]byte([]byte(strings.Repeat("\xff", 32))), wantErr: ErrNotCanonical},
		"255 in the last byte is canonical":      {in: [32]byte{31: 0xff}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := FromBytes(tc.in)
			if !errors.Is(err, tc.wantErr) {
				t.Fatalf("error %v, want %v", err, tc.wantErr)
			}
			if err == nil && Bytes(&e) != tc.in {
				t.Errorf("the round trip changes the bytes: %x", Bytes(&e))
			}
		})
	}
}

func TestRootEqualsTheNaiveRootAtEveryLength(t *testing.T) {
	t.Parallel()
	leaves := squares(70)
	tree := NewTree()
	for n := range len(leaves) + 1 {
		want := naiveRoot(leaves[:n])
		if got := tree.Root(); got != want {
			t.Fatalf("root over %d leaves differs from the naive root", n)
		}
		restored, err := RestoreTree(tree.NextIndex(), tree.Frontier())
		if err != nil {
			t.Fatal(err)
		}
		if restored.Root() != want || restored.NextIndex() != uint64(n) {
			t.Fatalf("tree restored at %d leaves: another root, or index %d", n, restored.NextIndex())
		}
		tree = restored // so that every append happens on a restored tree
		if n < len(leaves) {
			if err := tree.Append(&leaves[n]); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestTreeThatBecomesFull(t *testing.T) {
	t.Parallel()
	var frontier [Height]fr.Element
	copy(frontier[:], squares(Height))
	tree, err := RestoreTree(1<<Height-1, frontier)
	if err != nil {
		t.Fatal(err)
	}
	leaf := fr.NewElement(7)
	want := leaf
	for i := range frontier {
		want = Hash2(&frontier[i], &want)
	}
	if err := tree.Append(&leaf); err != nil {
		t.Fatalf("the last leaf: %v", err)
	}
	if tree.Root() != want {
		t.Error("the full tree's root is not the hash of the frontier and the last leaf")
	}
	if err := tree.Append(&leaf); !errors.Is(err, ErrFull) {
		t.Errorf("one leaf too many: error %v, want %v", err, ErrFull)
	}
	if tree.Root() != want || tree.NextIndex() != 1<<Height {
		t.Error("a refused leaf changed the tree")
	}
	if _, err := RestoreTree(1<<Height+1, frontier); err == nil {
		t.Error("a tree with more than 2^32 leaves was restored")
	}
}

func TestPathLeadsToTheRoot(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 3, 8, 21} {
		leaves := squares(n)
		root := naiveRoot(leaves)
		for index := range leaves {
			path, err := Path(leaves, index)
			if err != nil {
				t.Fatal(err)
			}
			node := leaves[index]
			for level := range Height {
				if index>>level&1 == 1 {
					node = Hash2(&path[level], &node)
				} else {
					node = Hash2(&node, &path[level])
				}
			}
			if node != root {
				t.Errorf("the path of leaf %d of %d does not lead to the root", index, n)
			}
		}
		if !cmp.Equal(leaves, squares(n)) {
			t.Error("Path changed its argument")
		}
	}
	for _, index := range []int{-1, 3} {
		if _, err := Path(squares(3), index); err == nil {
			t.Errorf("index %d of 3 leaves: no error", index)
		}
	}
}

func FuzzFromBytes(f *testing.F) {
	f.Add(make([]byte, 32))
	f.Add(fr.Modulus().Bytes())
	f.Add([]byte(strings.Repeat("\xff", 32)))
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) != 32 {
			return
		}
		b := [32]byte(in)
		e, err := FromBytes(b)
		canonical := new(big.Int).SetBytes(in).Cmp(fr.Modulus()) < 0
		if canonical != (err == nil) {
			t.Fatalf("canonical is %v, error %v", canonical, err)
		}
		if err == nil && Bytes(&e) != b {
			t.Fatal("the round trip changes the bytes")
		}
	})
}

// FuzzTree reads its input as leaves of eight bytes; the tree is restored after each odd leaf.
func FuzzTree(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("a leaf. another. a third."))
	f.Add([]byte(strings.Repeat("01234567", 19)))
	f.Fuzz(func(t *testing.T, in []byte) {
		tree := NewTree()
		var leaves []fr.Element
		for ; len(in) >= 8 && len(leaves) < 64; in = in[8:] {
			v := binary.BigEndian.Uint64(in)
			leaf := fr.NewElement(v)
			leaves = append(leaves, leaf)
			if err := tree.Append(&leaf); err != nil {
				t.Fatal(err)
			}
			if v%2 == 1 {
				var err error
				if tree, err = RestoreTree(tree.NextIndex(), tree.Frontier()); err != nil {
					t.Fatal(err)
				}
			}
		}
		if tree.Root() != naiveRoot(leaves) {
			t.Fatalf("root over %d leaves differs from the naive root", len(leaves))
		}
	})
}

// naiveRoot computes the root level by level, from every node above a leaf.
func naiveRoot(leaves []fr.Element) fr.Element {
	nodes := append([]fr.Element(nil), leaves...)
	var zero fr.Element
	for range Height {
		var above []fr.Element
		for i := 0; i < len(nodes); i += 2 {
			right := zero
			if i+1 < len(nodes) {
				right = nodes[i+1]
			}
			above = append(above, Hash2(&nodes[i], &right))
		}
		zero = Hash2(&zero, &zero)
		nodes = above
	}
	if len(nodes) == 0 {
		return zero
	}
	return nodes[0]
}

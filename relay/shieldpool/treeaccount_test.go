package shieldpool

import (
	"errors"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/merkle"
)

func treeWithLeaves(t testing.TB, p *Profile, leaves int) *TreeAccount {
	t.Helper()
	tree := p.NewTree(solana.PublicKey{1})
	for i := range leaves {
		if err := tree.Append([32]byte{30: byte(i >> 8), 31: byte(i + 1)}); err != nil {
			t.Fatal(err)
		}
	}
	return tree
}

func TestTreeAccountLayout(t *testing.T) {
	t.Parallel()
	p := ShieldPoolV1()
	tree := treeWithLeaves(t, p, 5)
	raw := tree.Bytes()
	if len(raw) != 4304 || p.TreeLength() != 4304 {
		t.Errorf("the account has %d bytes and TreeLength is %d, want 4304", len(raw), p.TreeLength())
	}
	if [32]byte(raw[1064:1096]) != tree.Root {
		t.Error("the root is not at offset 1064")
	}
	back, err := p.ParseTree(raw)
	if diff := cmp.Diff(tree, back); err != nil || diff != "" {
		t.Errorf("round trip changes the account: %v %s", err, diff)
	}
	if _, err := p.ParseTree(raw[:4303]); err == nil {
		t.Error("a short account is decoded")
	}
	raw[4296] = 100
	if _, err := p.ParseTree(raw); err == nil {
		t.Error("a root index outside the history is accepted")
	}
	raw[4296], raw[39] = 0, 1
	if _, err := p.ParseTree(raw); err == nil {
		t.Error("more leaves than the tree's capacity are accepted")
	}
}

func TestSelfCheck(t *testing.T) {
	t.Parallel()
	p := ShieldPoolV1()
	for _, n := range []int{0, 1, 2, 3, 7, 8, 130} {
		if err := treeWithLeaves(t, p, n).SelfCheck(); err != nil {
			t.Errorf("a correct tree of %d leaves fails: %v", n, err)
		}
	}
	breaks := map[string]func(*TreeAccount){
		"another root":                       func(a *TreeAccount) { a.Root[31] ^= 1 },
		"a wrong newest root in the history": func(a *TreeAccount) { a.History[a.RootIndex][31] ^= 1 },
		"a root index that is off by one":    func(a *TreeAccount) { a.RootIndex++ },
		"a wrong frontier":                   func(a *TreeAccount) { a.Frontier[0][31] ^= 1 },
		"a wrong next index":                 func(a *TreeAccount) { a.NextIndex++ },
		"a frontier outside the field":       func(a *TreeAccount) { a.Frontier[0] = modulus },
	}
	for name, spoil := range breaks {
		tree := treeWithLeaves(t, p, 3)
		spoil(tree)
		if err := tree.SelfCheck(); !errors.Is(err, ErrSelfCheck) {
			t.Errorf("a tree with %s passes: %v", name, err)
		}
	}
}

func TestEmptyTree(t *testing.T) {
	t.Parallel()
	tree := ShieldPoolV1().NewTree(solana.PublicKey{})
	empty := merkle.Zero(merkle.Height)
	if tree.Root != merkle.Bytes(&empty) || tree.LeavesUntilEviction(tree.Root) != 99 {
		t.Errorf("the empty root has %d leaves until eviction, want 99", tree.LeavesUntilEviction(tree.Root))
	}
	if tree.LeavesUntilEviction([32]byte{}) != -1 {
		t.Error("the all-zero root counts as a root, although it only fills unused entries")
	}
}

func TestLeavesUntilEvictionCountsDownAsTheHistoryWraps(t *testing.T) {
	t.Parallel()
	p := ShieldPoolV1()
	tree := treeWithLeaves(t, p, 60)
	root := tree.Root
	for i := range 100 {
		if got := tree.LeavesUntilEviction(root); got != 99-i {
			t.Fatalf("after %d leaves, eviction is %d leaves away, want %d", i, got, 99-i)
		}
		if err := tree.Append([32]byte{29: 1, 30: byte(i >> 8), 31: byte(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if got := tree.LeavesUntilEviction(root); got != -1 {
		t.Errorf("an evicted root has %d leaves until eviction, want -1", got)
	}
	if err := tree.Append(modulus); err == nil {
		t.Error("a leaf that is no field element is appended")
	}
}

// An empty tree has the same root whatever its history length, so only the size of the data differs.
func TestEmptyTreeWithAnotherRootHistoryIsRefused(t *testing.T) {
	t.Parallel()
	for _, length := range []int{127, 129} {
		p, other := ShieldPoolV1(), ShieldPoolV1()
		p.RootHistory, other.RootHistory = 128, length
		if _, err := p.ParseTree(other.NewTree(solana.PublicKey{}).Bytes()); err == nil || !strings.Contains(err.Error(), "for a root history of 128") {
			t.Errorf("with a history of %d: error %v, want it to name the expected one", length, err)
		}
	}
}

package poseidon

import (
	"encoding/json"
	"math/big"
	"os"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
)

// TestSumMatchesCircomlib uses vectors that circomlibjs computed. The tests of package transaction
// show that Constrain computes the same as Sum.
func TestSumMatchesCircomlib(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("testdata/poseidon_tree.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		Poseidon []struct {
			In  []string `json:"in"`
			Out string   `json:"out"`
		} `json:"poseidon"`
	}
	if err := json.Unmarshal(b, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors.Poseidon) == 0 {
		t.Fatal("testdata/poseidon_tree.json has no vectors")
	}
	hash := New()
	for _, v := range vectors.Poseidon {
		in := make([]fr.Element, len(v.In))
		for i, s := range v.In {
			if _, err := in[i].SetString(s); err != nil {
				t.Fatal(err)
			}
		}
		var want fr.Element
		if _, err := want.SetString("0x" + v.Out); err != nil {
			t.Fatal(err)
		}
		if got := hash.Sum(in...); got != want {
			t.Errorf("Poseidon%v = %s, want %s", v.In, got.Text(16), v.Out)
		}
	}
}

// TestVectorsDependOnEveryConstant checks that TestSumMatchesCircomlib would detect any changed
// constant.
func TestVectorsDependOnEveryConstant(t *testing.T) {
	t.Parallel()
	hash := New()
	for width, p := range hash.permutations {
		var in []fr.Element
		for i := range width - 1 {
			in = append(in, fr.NewElement(uint64(i+1))) // the inputs of the vectors
		}
		want := hash.Sum(in...)
		for name, constants := range map[string][]*big.Int{"constants": p.constants, "mds": p.mds} {
			for i, constant := range constants {
				constants[i] = new(big.Int).Lsh(constant, 1)
				if hash.Sum(in...) == want {
					t.Errorf("%d inputs: the hash is the same after a change of %s[%d]", len(in), name, i)
				}
				constants[i] = constant
			}
		}
	}
}

package groth16

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fp"
)

// wantHash was computed outside of Go from the key's decimal numbers: they were laid out
// as protocol.md says, and hashed with sha256.
const wantHash = "5b45417904d005a903f196c9162bcb0f38e3d049498f2ec44a568dc2f0f1788e"

func TestKeyIdentity(t *testing.T) {
	t.Parallel()
	key := snarkjsKeyOf(t)
	if key.NPublic() != 9 {
		t.Errorf("NPublic %d, want 9", key.NPublic())
	}
	hash := key.Hash()
	if got := hex.EncodeToString(hash[:]); got != wantHash {
		t.Errorf("hash %s, want %s", got, wantHash)
	}
	var indented any
	if err := json.Unmarshal(readFile(t, "verification_key.json"), &indented); err != nil {
		t.Fatal(err)
	}
	compact, err := json.Marshal(indented)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseKey(compact)
	if err != nil {
		t.Fatal(err)
	}
	if again.Hash() != hash {
		t.Error("the hash depends on the form of the JSON")
	}
	other, err := ParseKey(newTrapdoor(9).json(t))
	if err != nil {
		t.Fatal(err)
	}
	if other.Hash() == hash {
		t.Error("two keys have the same hash")
	}
}

func TestParseKeyRefuses(t *testing.T) {
	t.Parallel()
	outside := bn254.GeneratePointNotInG2(bn254.E2{A0: fp.NewElement(3), A1: fp.NewElement(4)})
	var off bn254.G2Affine
	off.FromJacobian(&outside)
	outsideSubgroup := [][]string{{off.X.A0.String(), off.X.A1.String()}, {off.Y.A0.String(), off.Y.A1.String()}, {"1", "0"}}
	p := fp.Modulus().String()
	two := 2
	tests := map[string]struct {
		change  func(*snarkjsKey)
		want    string
		wantErr error
	}{
		"another proof system":     {change: func(k *snarkjsKey) { k.Protocol = "plonk" }, want: `protocol: want "groth16", received "plonk"`},
		"another curve":            {change: func(k *snarkjsKey) { k.Curve = "bls12381" }, want: `curve: want "bn128"`},
		"no nPublic":               {change: func(k *snarkjsKey) { k.NPublic = nil }, want: "nPublic: missing"},
		"no public inputs":         {change: func(k *snarkjsKey) { *k.NPublic = 0 }, want: "nPublic: want 1 to 64, received 0"},
		"too many public inputs":   {change: func(k *snarkjsKey) { *k.NPublic = 65 }, want: "nPublic: want 1 to 64, received 65"},
		"a point of IC missing":    {change: func(k *snarkjsKey) { k.IC = k.IC[:9] }, want: "IC: want nPublic+1 = 10 points, received 9"},
		"nPublic differs from IC":  {change: func(k *snarkjsKey) { k.NPublic = &two }, want: "IC: want nPublic+1 = 3 points, received 10"},
		"no alpha":                 {change: func(k *snarkjsKey) { k.Alpha = nil }, want: `vk_alpha_1: want a point [x, y, "1"], received nothing`},
		"alpha cut short":          {change: func(k *snarkjsKey) { k.Alpha = k.Alpha[:2] }, want: "vk_alpha_1: want a point"},
		"alpha not normalised":     {change: func(k *snarkjsKey) { k.Alpha[2] = "2" }, want: "vk_alpha_1: want a point"},
		"alpha at infinity":        {change: func(k *snarkjsKey) { k.Alpha[0], k.Alpha[1] = "0", "0" }, want: "vk_alpha_1: ", wantErr: ErrInfinity},
		"alpha off the curve":      {change: func(k *snarkjsKey) { k.Alpha[0] = "5" }, want: "vk_alpha_1: ", wantErr: ErrNotOnCurve},
		"a coordinate of p":        {change: func(k *snarkjsKey) { k.Alpha[1] = p }, want: "vk_alpha_1: coordinate 2 of 2: ", wantErr: ErrNonCanonical},
		"a very long coordinate":   {change: func(k *snarkjsKey) { k.Alpha[0] = strings.Repeat("9", 78) }, want: "vk_alpha_1: coordinate 1 of 2: ", wantErr: ErrNonCanonical},
		"a hexadecimal coordinate": {change: func(k *snarkjsKey) { k.Alpha[0] = "0x1f" }, want: "vk_alpha_1: coordinate 1 of 2: want a decimal number"},
		"a negative coordinate":    {change: func(k *snarkjsKey) { k.Alpha[0] = "-1" }, want: "vk_alpha_1: coordinate 1 of 2: ", wantErr: ErrNonCanonical},
		"a leading zero":           {change: func(k *snarkjsKey) { k.Alpha[0] = "01" }, want: "vk_alpha_1: coordinate 1 of 2: want a decimal number"},
		"an empty coordinate":      {change: func(k *snarkjsKey) { k.IC[3][1] = "" }, want: "IC[3]: coordinate 2 of 2: want a decimal number"},
		"beta cut short":           {change: func(k *snarkjsKey) { k.Beta = k.Beta[:1] }, want: "vk_beta_2: want a point [[x0, x1], [y0, y1]"},
		"beta of G1's form":        {change: func(k *snarkjsKey) { k.Beta = [][]string{{"1"}, {"2"}, {"1"}} }, want: "vk_beta_2: want a point"},
		"beta with parts swapped":  {change: func(k *snarkjsKey) { k.Beta[0][0], k.Beta[0][1] = k.Beta[0][1], k.Beta[0][0] }, want: "vk_beta_2: ", wantErr: ErrNotOnCurve},
		"beta with x of p":         {change: func(k *snarkjsKey) { k.Beta[0][1] = p }, want: "vk_beta_2: coordinate 2 of 2: ", wantErr: ErrNonCanonical},
		"gamma at infinity": {change: func(k *snarkjsKey) {
			k.Gamma = [][]string{{"0", "0"}, {"0", "0"}, {"1", "0"}}
		}, want: "vk_gamma_2: ", wantErr: ErrInfinity},
		"gamma off the subgroup": {change: func(k *snarkjsKey) { k.Gamma = outsideSubgroup }, want: "vk_gamma_2: ", wantErr: ErrNotInSubgroup},
		"delta with y of p":      {change: func(k *snarkjsKey) { k.Delta[1][0] = p }, want: "vk_delta_2: coordinate 1 of 2: ", wantErr: ErrNonCanonical},
		"delta equal to gamma":   {change: func(k *snarkjsKey) { k.Delta = k.Gamma }, want: "vk_delta_2: equals vk_gamma_2, so anybody can forge proofs"},
		"IC at infinity":         {change: func(k *snarkjsKey) { k.IC[4][0], k.IC[4][1] = "0", "0" }, want: "IC[4]: ", wantErr: ErrInfinity},
		"IC off the curve":       {change: func(k *snarkjsKey) { k.IC[9][1] = "7" }, want: "IC[9]: ", wantErr: ErrNotOnCurve},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var raw snarkjsKey
			if err := json.Unmarshal(readFile(t, "verification_key.json"), &raw); err != nil {
				t.Fatal(err)
			}
			tt.change(&raw)
			changed, err := json.Marshal(raw)
			if err != nil {
				t.Fatal(err)
			}
			key, err := ParseKey(changed)
			if key != nil || err == nil {
				t.Fatalf("key %v, error %v; want a refusal", key, err)
			}
			if !strings.HasPrefix(err.Error(), "verification key: "+tt.want) {
				t.Errorf("message %q does not start with %q", err, tt.want)
			}
			if tt.wantErr != nil && !errors.Is(err, tt.wantErr) {
				t.Errorf("error %v is not %v", err, tt.wantErr)
			}
		})
	}
}

func TestParseKeyRefusesText(t *testing.T) {
	t.Parallel()
	good := readFile(t, "verification_key.json")
	tests := map[string][]byte{
		"nothing":                    nil,
		"not JSON":                   []byte("proof"),
		"an array":                   []byte("[]"),
		"the key cut in half":        good[:len(good)/2],
		"the key cut before its end": good[:len(strings.TrimSpace(string(good)))-1],
		"the key with text after it": append(append([]byte(nil), good...), "{}"...),
		"a proof instead of a key":   []byte(`{"pi_a":["1","2","1"],"protocol":"groth16","curve":"bn128"}`),
		"numbers instead of strings": []byte(`{"protocol":"groth16","curve":"bn128","nPublic":1,"vk_alpha_1":[1,2,1]}`),
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if key, err := ParseKey(text); key != nil || err == nil {
				t.Errorf("key %v, error %v; want a refusal", key, err)
			}
		})
	}
}

package groth16

import (
	"errors"
	"fmt"
	"math/big"
	"sync"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fp"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
)

func TestSnarkjsProofsVerify(t *testing.T) {
	t.Parallel()
	key := snarkjsKeyOf(t)
	tests := map[string]struct {
		change       func([]byte) []byte
		wantEncoding ProofAEncoding
		wantErr      error
	}{
		"unchanged: plain": {
			change: func(b []byte) []byte { return b }, wantEncoding: Plain,
		},
		"A negated: negated": {
			change: func(b []byte) []byte { return negateG1(t, b, 0) }, wantEncoding: Negated,
		},
		"B negated: the same as A negated": {
			change: func(b []byte) []byte { return negateB(t, b) }, wantEncoding: Negated,
		},
		"A and B negated: the same proof, plain": {
			change: func(b []byte) []byte { return negateB(t, negateG1(t, b, 0)) }, wantEncoding: Plain,
		},
		"C negated: invalid": {
			change: func(b []byte) []byte { return negateG1(t, b, 192) }, wantErr: ErrInvalid,
		},
		"A and C negated: invalid": {
			change: func(b []byte) []byte { return negateG1(t, negateG1(t, b, 0), 192) }, wantErr: ErrInvalid,
		},
		"A and C exchanged: invalid": {
			change:  func(b []byte) []byte { return splice(splice(b, 0, b[192:]), 192, b[:64]) },
			wantErr: ErrInvalid,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i, v := range snarkjsVectors(t) {
				proof := mustParseProof(t, tt.change(v.proof))
				// Twice, because gnark-crypto writes into the lines that it is given.
				for range 2 {
					sign, err := key.Verify(proof, v.publics)
					if sign != tt.wantEncoding || !errors.Is(err, tt.wantErr) {
						t.Fatalf("vector %d: sign %v, error %v; want %v, %v", i, sign, err, tt.wantEncoding, tt.wantErr)
					}
				}
			}
		})
	}
}

// TestSignsAreExact shows why two products are formed: a verifier that compared only one of
// them with the target and its inverse would accept the third and fourth row.
func TestSignsAreExact(t *testing.T) {
	t.Parallel()
	publics := []fr.Element{fr.NewElement(23), fr.NewElement(29)}
	d := newTrapdoor(len(publics))
	key, err := ParseKey(d.json(t))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		sumSign, targetSign int64
		negateA             bool
		wantEncoding        ProofAEncoding
		wantErr             error
	}{
		"the equation itself":                            {sumSign: 1, targetSign: 1, wantEncoding: Plain},
		"the equation for −A":                            {sumSign: 1, targetSign: 1, negateA: true, wantEncoding: Negated},
		"the target inverted alone":                      {sumSign: 1, targetSign: -1, wantErr: ErrInvalid},
		"the target inverted and A negated":              {sumSign: 1, targetSign: -1, negateA: true, wantErr: ErrInvalid},
		"the public inputs' pairing inverted":            {sumSign: -1, targetSign: 1, wantErr: ErrInvalid},
		"the public inputs' pairing and target inverted": {sumSign: -1, targetSign: -1, wantErr: ErrInvalid},
		"the target left out":                            {sumSign: 1, targetSign: 0, wantErr: ErrInvalid},
		"the public inputs left out":                     {sumSign: 0, targetSign: 1, wantErr: ErrInvalid},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proof := d.prove(publics, tt.sumSign, tt.targetSign)
			if tt.negateA {
				proof.a.Neg(&proof.a)
			}
			sign, err := key.Verify(proof, encode(publics))
			if sign != tt.wantEncoding || !errors.Is(err, tt.wantErr) {
				t.Errorf("sign %v, error %v; want %v, %v", sign, err, tt.wantEncoding, tt.wantErr)
			}
		})
	}
}

func encode(es []fr.Element) [][32]byte {
	out := make([][32]byte, len(es))
	for i := range es {
		out[i] = es[i].Bytes()
	}
	return out
}

func TestEveryFlippedByteIsRefused(t *testing.T) {
	t.Parallel()
	key := snarkjsKeyOf(t)
	v := snarkjsVectors(t)[2]
	for i := range v.proof {
		for _, bit := range []byte{0x01, 0x80} {
			changed := splice(v.proof, i, []byte{v.proof[i] ^ bit})
			proof, err := ParseProof(changed)
			if err == nil {
				_, err = key.Verify(proof, v.publics)
			}
			if err == nil {
				t.Errorf("proof byte %d xor %#x: accepted", i, bit)
			}
		}
	}
	proof := mustParseProof(t, v.proof)
	for i := range v.publics {
		for j := range v.publics[i] {
			changed := append([][32]byte(nil), v.publics...)
			changed[i][j] ^= 0x01
			if sign, err := key.Verify(proof, changed); !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrNonCanonical) {
				t.Errorf("public input %d byte %d flipped: sign %v, error %v", i, j, sign, err)
			}
		}
	}
}

func TestVerifyRefusesPublics(t *testing.T) {
	t.Parallel()
	key := snarkjsKeyOf(t)
	vectors := snarkjsVectors(t)
	v := vectors[2]
	plusR := func(publics [][32]byte, i int) [][32]byte {
		out := append([][32]byte(nil), publics...)
		n := new(big.Int).SetBytes(out[i][:])
		n.Add(n, fr.Modulus()).FillBytes(out[i][:])
		return out
	}
	tests := map[string]struct {
		publics     [][32]byte
		wantErr     error
		wantMessage string
	}{
		"of another proof": {publics: vectors[0].publics, wantErr: ErrInvalid, wantMessage: ErrInvalid.Error()},
		"in another order": {
			publics: append([][32]byte{v.publics[1], v.publics[0]}, v.publics[2:]...),
			wantErr: ErrInvalid, wantMessage: ErrInvalid.Error(),
		},
		"with r added to a nullifier, the same residue": {
			publics: plusR(v.publics, 4), wantErr: ErrNonCanonical,
			wantMessage: "public input 4: " + ErrNonCanonical.Error(),
		},
		"with r instead of zero": {
			publics: plusR(make([][32]byte, 9), 0), wantErr: ErrNonCanonical,
			wantMessage: "public input 0: " + ErrNonCanonical.Error(),
		},
		"one missing": {
			publics:     v.publics[:8],
			wantMessage: "public inputs: the verification key wants 9, received 8",
		},
		"one too many": {
			publics:     append(append([][32]byte(nil), v.publics...), [32]byte{}),
			wantMessage: "public inputs: the verification key wants 9, received 10",
		},
		"none": {wantMessage: "public inputs: the verification key wants 9, received 0"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sign, err := key.Verify(mustParseProof(t, v.proof), tt.publics)
			if err == nil || sign != EncodingUnknown {
				t.Fatalf("sign %v, error %v; want a refusal", sign, err)
			}
			if tt.wantErr != nil && !errors.Is(err, tt.wantErr) {
				t.Errorf("error %v is not %v", err, tt.wantErr)
			}
			if err.Error() != tt.wantMessage {
				t.Errorf("message %q, want %q", err, tt.wantMessage)
			}
		})
	}
}

// TestConcurrentVerification fails under -race, and on results, if calls share
// the lines that gnark-crypto writes into.
func TestConcurrentVerification(t *testing.T) {
	t.Parallel()
	key := snarkjsKeyOf(t)
	vectors := snarkjsVectors(t)
	errs := make(chan error, 32)
	var wg sync.WaitGroup
	for g := range cap(errs) {
		v := vectors[g%len(vectors)]
		want, proof := Plain, mustParseProof(t, v.proof)
		if g%2 == 1 {
			want, proof = Negated, mustParseProof(t, negateG1(t, v.proof, 0))
		}
		wg.Go(func() {
			for range 4 {
				if sign, err := key.Verify(proof, v.publics); sign != want || err != nil {
					errs <- fmt.Errorf("goroutine %d: sign %v, error %w; want %v", g, sign, err, want)
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
}

// TestPublicsPoint compares the tables with gnark-crypto's own multiplication,
// on scalars that meet every carry of the signed digits.
func TestPublicsPoint(t *testing.T) {
	t.Parallel()
	d := newTrapdoor(2)
	key, err := ParseKey(d.json(t))
	if err != nil {
		t.Fatal(err)
	}
	var minusOne, pattern fr.Element
	minusOne.SetInt64(-1)
	fill := func(b byte) fr.Element {
		var bytes [32]byte
		for i := range bytes {
			bytes[i] = b
		}
		bytes[0] = 0x20
		return *pattern.SetBytes(bytes[:])
	}
	var cancel fr.Element // makes L the point at infinity
	cancel.Neg(&d.ic[0]).Div(&cancel, &d.ic[1])
	for name, scalar := range map[string]fr.Element{
		"zero": {}, "one": fr.One(), "minus one": minusOne,
		"128": fr.NewElement(128), "129": fr.NewElement(129), "255": fr.NewElement(255), "256": fr.NewElement(256),
		"digits of 127": fill(127), "digits of 128": fill(128), "digits of 129": fill(129), "digits of 255": fill(255),
		"a point at infinity": cancel,
	} {
		for _, second := range []fr.Element{{}, minusOne} {
			got, err := key.publicsPoint(encode([]fr.Element{scalar, second}))
			if err != nil {
				t.Fatal(err)
			}
			log := d.ic[0]
			var term fr.Element
			log.Add(&log, term.Mul(&scalar, &d.ic[1])).Add(&log, term.Mul(&second, &d.ic[2]))
			if want := g1(&log); !got.Equal(&want) {
				t.Errorf("%s: the tables disagree with scalar multiplication", name)
			}
		}
	}
}

func TestParseProofAEncoding(t *testing.T) {
	t.Parallel()
	for _, want := range []ProofAEncoding{Plain, Negated} {
		if got, err := ParseProofAEncoding(want.String()); got != want || err != nil {
			t.Errorf("ParseProofAEncoding(%q) = %v, %v", want, got, err)
		}
	}
	for _, bad := range []string{"", "unknown", "auto", "Plain"} {
		if got, err := ParseProofAEncoding(bad); got != EncodingUnknown || err == nil {
			t.Errorf("ParseProofAEncoding(%q) = %v, %v; want an error", bad, got, err)
		}
	}
}

func TestParseProofRefuses(t *testing.T) {
	t.Parallel()
	good := snarkjsVectors(t)[2].proof
	plusP := func(offset int) []byte {
		n := new(big.Int).SetBytes(good[offset : offset+32])
		return splice(good, offset, n.Add(n, fp.Modulus()).FillBytes(make([]byte, 32)))
	}
	outside := bn254.GeneratePointNotInG2(bn254.E2{A0: fp.NewElement(1), A1: fp.NewElement(2)})
	var outsideAffine bn254.G2Affine
	outsideBytes := outsideAffine.FromJacobian(&outside).RawBytes()
	if !outsideAffine.IsOnCurve() {
		t.Fatal("the point outside the subgroup is not on the curve: this test is void")
	}
	modulus := fp.Modulus().FillBytes(make([]byte, 32))
	tests := map[string]struct {
		proof       []byte
		wantErr     error
		wantMessage string
	}{
		"empty":                    {nil, ErrLength, "proof: wrong length: want 256 bytes, received 0"},
		"a byte short":             {good[:255], ErrLength, "proof: wrong length: want 256 bytes, received 255"},
		"a byte long":              {append(splice(good, 0, nil), 0), ErrLength, "proof: wrong length: want 256 bytes, received 257"},
		"A.x with p added":         {plusP(0), ErrNonCanonical, "proof point A.x: " + ErrNonCanonical.Error()},
		"A.y with p added":         {plusP(32), ErrNonCanonical, "proof point A.y: " + ErrNonCanonical.Error()},
		"B.x.c1 with p added":      {plusP(64), ErrNonCanonical, "proof point B.x.c1: " + ErrNonCanonical.Error()},
		"B.x.c0 with p added":      {plusP(96), ErrNonCanonical, "proof point B.x.c0: " + ErrNonCanonical.Error()},
		"B.y.c1 with p added":      {plusP(128), ErrNonCanonical, "proof point B.y.c1: " + ErrNonCanonical.Error()},
		"B.y.c0 with p added":      {plusP(160), ErrNonCanonical, "proof point B.y.c0: " + ErrNonCanonical.Error()},
		"C.x with p added":         {plusP(192), ErrNonCanonical, "proof point C.x: " + ErrNonCanonical.Error()},
		"C.y with p added":         {plusP(224), ErrNonCanonical, "proof point C.y: " + ErrNonCanonical.Error()},
		"p for a zero coordinate":  {splice(good, 0, modulus), ErrNonCanonical, "proof point A.x: " + ErrNonCanonical.Error()},
		"arkworks' infinity flag":  {splice(good, 32, []byte{good[32] | 0x40}), ErrNonCanonical, "proof point A.y: " + ErrNonCanonical.Error()},
		"arkworks' sign flag":      {splice(good, 224, []byte{good[224] | 0x80}), ErrNonCanonical, "proof point C.y: " + ErrNonCanonical.Error()},
		"A at infinity":            {splice(good, 0, make([]byte, 64)), ErrInfinity, "proof point A: point at infinity"},
		"B at infinity":            {splice(good, 64, make([]byte, 128)), ErrInfinity, "proof point B: point at infinity"},
		"C at infinity":            {splice(good, 192, make([]byte, 64)), ErrInfinity, "proof point C: point at infinity"},
		"all zeros":                {make([]byte, 256), ErrInfinity, "proof point A: point at infinity"},
		"A off the curve":          {splice(good, 63, []byte{good[63] ^ 1}), ErrNotOnCurve, "proof point A: not on the curve"},
		"B off the curve":          {splice(good, 191, []byte{good[191] ^ 1}), ErrNotOnCurve, "proof point B: not on the curve"},
		"C off the curve":          {splice(good, 255, []byte{good[255] ^ 1}), ErrNotOnCurve, "proof point C: not on the curve"},
		"B outside the subgroup":   {splice(good, 64, outsideBytes[:]), ErrNotInSubgroup, "proof point B: not in the prime-order subgroup"},
		"B with c0 and c1 swapped": {splice(splice(good, 64, good[96:128]), 96, good[64:96]), ErrNotOnCurve, "proof point B: not on the curve"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proof, err := ParseProof(tt.proof)
			if proof != nil || !errors.Is(err, tt.wantErr) {
				t.Fatalf("proof %v, error %v; want %v", proof, err, tt.wantErr)
			}
			if err.Error() != tt.wantMessage {
				t.Errorf("message %q, want %q", err, tt.wantMessage)
			}
		})
	}
}

package groth16

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
	"github.com/google/go-cmp/cmp"
)

// claimant makes claims under a trapdoor key.
type claimant struct {
	trapdoor
	random *mathrand.Rand
}

func newClaimant(t testing.TB, seed uint64) (claimant, *Key) {
	t.Helper()
	d := newTrapdoor(2)
	key, err := ParseKey(d.json(t))
	if err != nil {
		t.Fatal(err)
	}
	return claimant{trapdoor: d, random: mathrand.New(mathrand.NewPCG(seed, 1))}, key
}

func (c claimant) element() fr.Element { return fr.NewElement(c.random.Uint64() | 1) }

// valid makes a valid claim with a plain A, different at each call.
func (c claimant) valid() Claim { return c.claim(1) }

func (c claimant) claim(targetSign int64) Claim {
	publics := []fr.Element{c.element(), c.element()}
	p := c.prove(publics, 1, targetSign)
	factor := c.element()
	var inverse fr.Element
	inverse.Inverse(&factor)
	p.a.ScalarMultiplication(&p.a, factor.BigInt(new(big.Int)))
	p.b.ScalarMultiplication(&p.b, inverse.BigInt(new(big.Int)))
	return Claim{Proof: p, Publics: encode(publics)}
}

// addToC adds the scalar's multiple of the generator to C.
func addToC(c Claim, scalar fr.Element) Claim {
	p, d := *c.Proof, g1(&scalar)
	p.c.Add(&p.c, &d)
	return Claim{Proof: &p, Publics: c.Publics}
}

func addToPublic(c Claim, delta int64) Claim {
	var x, d fr.Element
	x.SetBytes(c.Publics[0][:])
	d.SetInt64(delta)
	publics := slices.Clone(c.Publics)
	publics[0] = x.Add(&x, &d).Bytes()
	return Claim{Proof: c.Proof, Publics: publics}
}

func negated(c Claim) Claim {
	p := *c.Proof
	p.a.Neg(&p.a)
	return Claim{Proof: &p, Publics: c.Publics}
}

// kinds make one claim each, valid or faulty.
var kinds = map[string]func(claimant) Claim{
	"plain":                      claimant.valid,
	"negated":                    func(c claimant) Claim { return negated(c.valid()) },
	"another public input":       func(c claimant) Claim { return addToPublic(c.valid(), 1) },
	"negated and another public": func(c claimant) Claim { return addToPublic(negated(c.valid()), 1) },
	"C shifted":                  func(c claimant) Claim { return addToC(c.valid(), c.element()) },
	"the target left out":        func(c claimant) Claim { return c.claim(0) },
	"the target inverted":        func(c claimant) Claim { return c.claim(-1) },
	"A doubled": func(c claimant) Claim {
		claim := c.valid()
		claim.Proof.a.Double(&claim.Proof.a)
		return claim
	},
	"C of another proof": func(c claimant) Claim {
		claim := c.valid()
		claim.Proof.c = c.valid().Proof.c
		return claim
	},
	"a public input above the modulus": func(c claimant) Claim {
		claim := c.valid()
		claim.Publics[1] = [32]byte(bytes.Repeat([]byte{0xff}, 32))
		return claim
	},
	"a public input with the modulus added": func(c claimant) Claim {
		claim := c.valid()
		x := new(big.Int).SetBytes(claim.Publics[1][:])
		x.Add(x, fr.Modulus()).FillBytes(claim.Publics[1][:])
		return claim
	},
	"a public input missing": func(c claimant) Claim {
		claim := c.valid()
		claim.Publics = claim.Publics[:1]
		return claim
	},
}

// outcome is a verdict in a form that cmp compares.
type outcome struct {
	Encoding string
	Err      string
}

func outcomes(verdicts []Verdict) []outcome {
	out := make([]outcome, len(verdicts))
	for i, v := range verdicts {
		out[i].Encoding = v.Encoding.String()
		if v.Err != nil {
			out[i].Err = v.Err.Error()
		}
	}
	return out
}

func singly(key *Key, claims []Claim) []Verdict {
	verdicts := make([]Verdict, len(claims))
	for i, c := range claims {
		verdicts[i].Encoding, verdicts[i].Err = key.Verify(c.Proof, c.Publics)
	}
	return verdicts
}

func wantVerdictsOfSingleChecks(t *testing.T, key *Key, claims []Claim, expected ProofAEncoding, random io.Reader) {
	t.Helper()
	got, want := key.VerifyBatch(claims, expected, random), singly(key, claims)
	if diff := cmp.Diff(outcomes(want), outcomes(got)); diff != "" {
		t.Errorf("a batch of %d, %s expected (-single checks +batch):\n%s", len(claims), expected, diff)
	}
}

// TestBatchesOfAnyMixture covers batches that are mostly valid, half valid and mostly faulty.
func TestBatchesOfAnyMixture(t *testing.T) {
	t.Parallel()
	names := make([]string, 0, len(kinds))
	for name := range kinds {
		names = append(names, name)
	}
	slices.Sort(names)
	for seed := range uint64(24) {
		c, key := newClaimant(t, seed)
		claims := make([]Claim, c.random.IntN(20))
		faulty := c.random.IntN(4)
		for i := range claims {
			switch {
			case i > 0 && c.random.IntN(8) == 0:
				claims[i] = claims[c.random.IntN(i)] // sent twice
			case c.random.IntN(8) < 2*faulty:
				claims[i] = kinds[names[c.random.IntN(len(names))]](c)
			default:
				claims[i] = c.valid()
			}
		}
		wantVerdictsOfSingleChecks(t, key, claims, ProofAEncoding(seed%3), rand.Reader)
	}
}

func TestAFaultChangesNoOtherVerdict(t *testing.T) {
	t.Parallel()
	c, key := newClaimant(t, 1)
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			for place := range 6 {
				claims := []Claim{c.valid(), c.valid(), c.valid(), c.valid(), c.valid(), c.valid()}
				claims[place] = kind(c)
				wantVerdictsOfSingleChecks(t, key, claims, Plain, rand.Reader)
			}
		})
	}
}

func TestBatchOfSnarkjsProofs(t *testing.T) {
	t.Parallel()
	key := snarkjsKeyOf(t)
	vectors := snarkjsVectors(t)
	var claims []Claim
	for i := range 9 {
		v := vectors[i%len(vectors)]
		claims = append(claims, Claim{Proof: mustParseProof(t, v.proof), Publics: v.publics})
	}
	negatedClaims := make([]Claim, len(claims))
	for i := range claims {
		negatedClaims[i] = negated(claims[i])
	}
	for _, expected := range []ProofAEncoding{Plain, Negated} {
		wantVerdictsOfSingleChecks(t, key, claims, expected, rand.Reader)
		wantVerdictsOfSingleChecks(t, key, negatedClaims, expected, rand.Reader)
	}
}

// repeated gives all claims of a batch the same weight.
type repeated struct{}

func (repeated) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(i%16 + 1)
	}
	return len(b), nil
}

// TestFaultsThatCancel combines false claims whose faults cancel in an unweighted product. With
// equal weights the batch passes, which shows that the faults do cancel.
func TestFaultsThatCancel(t *testing.T) {
	t.Parallel()
	c, key := newClaimant(t, 1)
	shift := c.element()
	var minusShift, minusTwice fr.Element
	minusShift.Neg(&shift)
	minusTwice.Double(&minusShift)
	first, second := c.valid(), c.valid()
	exchanged := func(x, y Claim) (Claim, Claim) {
		p, q := *x.Proof, *y.Proof
		p.c, q.c = q.c, p.c
		return Claim{&p, x.Publics}, Claim{&q, y.Publics}
	}
	firstC, secondC := exchanged(first, second)
	// A valid proof with the other encoding than expected has the value e(A, B)^−2. The prover of the
	// trapdoor has A = 17·G and B = 19·H.
	var unsign fr.Element
	unsign.SetInt64(-2*17*19).Div(&unsign, &c.delta)

	for name, claims := range map[string][]Claim{
		"C shifted there and back":             {addToC(first, shift), addToC(second, minusShift)},
		"C shifted twice and back at once":     {addToC(first, shift), addToC(second, shift), addToC(c.valid(), minusTwice)},
		"the C of two proofs exchanged":        {firstC, secondC},
		"public inputs exchanged":              {{first.Proof, second.Publics}, {second.Proof, first.Publics}},
		"a public input one more and one less": {addToPublic(first, 1), addToPublic(second, -1)},
		"a negated proof and a false one":      {negated(first), addToC(second, unsign)},
		"the same proof there and back":        {addToC(first, shift), addToC(first, minusShift)},
		"among valid claims": {
			c.valid(), addToC(first, shift), c.valid(), c.valid(), addToC(second, minusShift), c.valid(), c.valid(), c.valid(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mirrored := make([]Claim, len(claims))
			for i := range claims {
				mirrored[i] = negated(claims[i])
			}
			for expected, claims := range map[ProofAEncoding][]Claim{Plain: claims, Negated: mirrored} {
				for i, v := range key.VerifyBatch(claims, expected, repeated{}) {
					if v.Encoding != expected || v.Err != nil {
						t.Fatalf("with equal weights, claim %d has the verdict %v: the faults do not cancel, so that this test shows nothing", i, v)
					}
				}
				wantVerdictsOfSingleChecks(t, key, claims, expected, rand.Reader)
			}
		})
	}
}

// TestBatchWithoutRandomness shows that claims which would pass with weak weights are refused.
func TestBatchWithoutRandomness(t *testing.T) {
	t.Parallel()
	c, key := newClaimant(t, 1)
	shift := c.element()
	var back fr.Element
	back.Neg(&shift)
	claims := []Claim{addToC(c.valid(), shift), addToC(c.valid(), back), c.valid()}
	for name, random := range map[string]io.Reader{
		"no bytes at all": iotest.ErrReader(errors.New("no randomness")),
		"too few bytes":   io.LimitReader(repeated{}, 16*3-1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantVerdictsOfSingleChecks(t, key, claims, Plain, random)
		})
	}
}

func TestWeightedSum(t *testing.T) {
	t.Parallel()
	const most = 1<<64 - 1
	one, two := fr.NewElement(12345), fr.NewElement(67890)
	points := []bn254.G1Affine{g1(&one), g1(&two)}
	for name, weights := range map[string][]weight{
		"zero": {{}, {}}, "one": {{1, 0}, {}}, "lambda": {{0, 1}, {}}, "one and lambda": {{1, 1}, {1, 1}},
		"the largest": {{most, most}, {most, most}}, "others": {{0x0123456789abcdef, 0xfedcba9876543210}, {1 << 63, 3}},
	} {
		var log fr.Element
		for i, w := range weights {
			scalar, point := w.scalar(), []fr.Element{one, two}[i]
			log.Add(&log, scalar.Mul(&scalar, &point))
		}
		var got bn254.G1Affine
		sum := weightedSum(points, weights)
		got.FromJacobian(&sum)
		if want := g1(&log); !got.Equal(&want) {
			t.Errorf("%s: the sum disagrees with scalar multiplication", name)
		}
	}
}

// TestLambda checks the equation on which the argument for the weights' soundness rests.
func TestLambda(t *testing.T) {
	t.Parallel()
	sum := fr.One()
	var square fr.Element
	square.Square(&lambda)
	if sum.Add(&sum, &lambda).Add(&sum, &square); !sum.IsZero() {
		t.Error("lambda is not a cube root of one other than one")
	}
}

func TestWeightsTakeAllRandomBytes(t *testing.T) {
	t.Parallel()
	var b []byte
	for i := range byte(32) {
		b = append(b, i)
	}
	got, err := randomWeights(bytes.NewReader(b), 2)
	if err != nil {
		t.Fatal(err)
	}
	want := []weight{{0x0706050403020100, 0x0f0e0d0c0b0a0908}, {0x1716151413121110, 0x1f1e1d1c1b1a1918}}
	if !slices.Equal(got, want) {
		t.Errorf("weights %x, want %x", got, want)
	}
}

package groth16

import (
	"io"

	"github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
)

// Claim is a proof and the public inputs that it should hold for.
type Claim struct {
	Proof   *Proof
	Publics [][32]byte
}

// Verdict is what Verify returns for a claim.
type Verdict struct {
	Encoding ProofAEncoding
	Err      error
}

// VerifyBatch returns for each claim what Verify would return. It is fast when all claims are valid
// and A has the expected encoding, in which EncodingUnknown counts as Plain. Other claims cost time,
// and change no verdict but their own. The reader random must be cryptographically secure: whoever
// knows its bytes beforehand can make false claims that pass together. If it fails, each claim is
// verified singly.
//
// For each claim i let sᵢ be 1 or −1, by the expected encoding, and
//
//	vᵢ = e(sᵢ·Aᵢ, Bᵢ)·e(α, β)⁻¹·e(Lᵢ, γ)⁻¹·e(Cᵢ, δ)⁻¹
//
// which is one when the claim is valid in that encoding, and is an element of a group of prime order
// r, because ParseProof refuses points outside of their groups. The batch passes when
// Π vᵢ^wᵢ = 1 for random weights wᵢ. The product needs one pairing for each claim, e(wᵢ·sᵢ·Aᵢ, Bᵢ),
// and three for all of them: with α, Σ wᵢ·Lᵢ and Σ wᵢ·Cᵢ.
//
// Soundness: the weights are drawn after the claims are fixed, and independently of each other. If
// claim j is false, vⱼ is not one, and for any choice of the other weights exactly one wⱼ mod r makes
// the product one. wⱼ has 2^128 equally likely values, so false claims pass with a probability of at
// most 2^-128. The parts of a batch are tested with the weights of the whole: at most twice as many
// tests as there are claims, and the probabilities add up.
func (k *Key) VerifyBatch(claims []Claim, expected ProofAEncoding, random io.Reader) []Verdict {
	b := &batch{key: k, claims: claims, verdicts: make([]Verdict, len(claims)), expected: Plain}
	if expected == Negated {
		b.expected = Negated
	}
	var open []int
	for i := range claims {
		if err := k.checkPublics(claims[i].Publics); err != nil {
			b.verdicts[i].Err = err
		} else {
			open = append(open, i)
		}
	}
	if len(open) > 1 && b.weigh(open, random) == nil {
		b.decide(open)
	} else {
		b.verifySingly(open)
	}
	return b.verdicts
}

// batch is a call of VerifyBatch. Its methods take the indices of the claims that they work on.
type batch struct {
	key      *Key
	claims   []Claim
	verdicts []Verdict
	expected ProofAEncoding
	weights  []weight         // by claim
	a        []bn254.G1Affine // wᵢ·sᵢ·Aᵢ, by claim
}

// weigh draws the weights, and multiplies each A by its own.
func (b *batch) weigh(indices []int, random io.Reader) error {
	weights, err := randomWeights(random, len(indices))
	if err != nil {
		return err
	}
	b.weights = make([]weight, len(b.claims))
	multiples := make([]bn254.G1Jac, len(b.claims))
	for i, index := range indices {
		a := b.claims[index].Proof.a
		if b.expected == Negated {
			a.Neg(&a)
		}
		b.weights[index] = weights[i]
		multiples[index] = weightedSum([]bn254.G1Affine{a}, weights[i:i+1])
	}
	b.a = bn254.BatchJacobianToAffineG1(multiples)
	return nil
}

// decide tests all claims at once.
func (b *batch) decide(indices []int) {
	if value := b.value(indices); value.IsOne() {
		b.accept(indices)
	} else {
		b.divide(indices, &value)
	}
}

// value is the product of the claims' vᵢ^wᵢ.
func (b *batch) value(indices []int) bn254.GT {
	points, twists := make([]bn254.G1Affine, len(indices)), make([]bn254.G2Affine, len(indices))
	cs, weights := make([]bn254.G1Affine, len(indices)), make([]weight, len(indices))
	for i, index := range indices {
		proof := b.claims[index].Proof
		points[i], twists[i], cs[i], weights[i] = b.a[index], proof.b, proof.c, b.weights[index]
	}
	l, alpha := b.sumPublics(indices)
	sumC := weightedSum(cs, weights)
	var c bn254.G1Affine
	c.FromJacobian(&sumC)

	f, err := bn254.MillerLoop(points, twists)
	if err != nil {
		return bn254.GT{} // not one, so that single checks decide and report the error
	}
	g, err := b.key.millerLoop([]bn254.G1Affine{l, c, alpha})
	if err != nil {
		return bn254.GT{}
	}
	g.Conjugate(&g) // stands in for the inverse, as in holds
	return bn254.FinalExponentiation(&f, &g)
}

// sumPublics returns Σ wᵢ·Lᵢ and Σ wᵢ·α. It adds up the scalars of each point first, so that the
// number of multiplications does not depend on the number of claims.
func (b *batch) sumPublics(indices []int) (l, alpha bn254.G1Affine) {
	scalars := make([]fr.Element, len(b.key.ic))
	for _, index := range indices {
		w := b.weights[index].scalar()
		scalars[0].Add(&scalars[0], &w)
		for i := range b.claims[index].Publics {
			var x fr.Element
			x.SetBytes(b.claims[index].Publics[i][:])
			scalars[i+1].Add(&scalars[i+1], x.Mul(&x, &w))
		}
	}
	var sumL, sumAlpha bn254.G1Jac
	for i := range scalars {
		scalar := scalars[i].Bytes()
		b.key.ic[i].addMultiple(&sumL, &scalar)
	}
	total := scalars[0].Bytes()
	b.key.alpha.addMultiple(&sumAlpha, &total)
	l.FromJacobian(&sumL)
	alpha.FromJacobian(&sumAlpha)
	return l, alpha
}

// fewest is the number of claims up to which single checks are faster than tests of halves.
const fewest = 4

// divide finds the claims that do not hold in the expected encoding. The value of the claims is not
// one. The values of two halves multiply to it, so only one of them is computed. When both halves
// fail, faults are many and single checks are faster than further division. A batch full of forged
// proofs therefore takes about half as much again as single checks.
func (b *batch) divide(indices []int, value *bn254.GT) {
	if len(indices) <= fewest {
		b.verifySingly(indices)
		return
	}
	left, right := indices[:len(indices)/2], indices[len(indices)/2:]
	leftValue := b.value(left)
	var rightValue bn254.GT
	rightValue.Conjugate(&leftValue) // the inverse, in the pairing's target group
	rightValue.Mul(&rightValue, value)
	switch {
	case leftValue.IsOne():
		b.accept(left)
		b.divide(right, &rightValue)
	case rightValue.IsOne():
		b.accept(right)
		b.divide(left, &leftValue)
	default:
		b.verifySingly(indices)
	}
}

func (b *batch) accept(indices []int) {
	for _, index := range indices {
		b.verdicts[index].Encoding = b.expected
	}
}

func (b *batch) verifySingly(indices []int) {
	order := [2]ProofAEncoding{Plain, Negated}
	if b.expected == Negated {
		order = [2]ProofAEncoding{Negated, Plain}
	}
	for _, index := range indices {
		v := &b.verdicts[index]
		v.Encoding, v.Err = b.key.verify(b.claims[index].Proof, b.claims[index].Publics, order)
	}
}

package main

import (
	"math/big"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
)

// fieldBits is the size of BN254's scalar field, which the generator takes as a parameter and which
// is also the number of bits drawn for a field element.
const fieldBits = 254

// grain is the self-shrinking Grain LFSR by which the Poseidon paper (appendix E) draws constants,
// so that nobody could have chosen them.
type grain struct {
	state [80]bool
	at    int
}

// newGrain seeds the register with the instance's parameters: a prime field, the S-box x^5, the
// sizes and the rounds, then thirty ones; the first 160 bits are thrown away.
func newGrain(width, fullRounds, partialRounds int) *grain {
	g := &grain{}
	position := 0
	put := func(value, bits int) {
		for i := bits - 1; i >= 0; i-- {
			g.state[position] = value>>i&1 == 1
			position++
		}
	}
	put(1, 2)
	put(0, 4)
	put(fieldBits, 12)
	put(width, 12)
	put(fullRounds, 10)
	put(partialRounds, 10)
	put(1<<30-1, 30)
	for range 160 {
		g.shift()
	}
	return g
}

func (g *grain) shift() bool {
	tap := func(i int) bool { return g.state[(g.at+i)%len(g.state)] }
	b := tap(62) != tap(51) != tap(38) != tap(23) != tap(13) != tap(0)
	g.state[g.at] = b
	g.at = (g.at + 1) % len(g.state)
	return b
}

// bit reads the register in pairs: the second bit of a pair counts only when the first is set.
func (g *grain) bit() bool {
	for {
		keep, b := g.shift(), g.shift()
		if keep {
			return b
		}
	}
}

func (g *grain) integer() *big.Int {
	v := new(big.Int)
	for range fieldBits {
		v.Lsh(v, 1)
		if g.bit() {
			v.SetBit(v, 0, 1)
		}
	}
	return v
}

// below draws until the value is a field element: the paper's rule for round constants.
func (g *grain) below() fr.Element {
	for {
		if v := g.integer(); v.Cmp(fr.Modulus()) < 0 {
			return element(v)
		}
	}
}

// reduced draws once and reduces: the reference's rule for the points of the Cauchy matrix.
func (g *grain) reduced() fr.Element {
	return element(g.integer())
}

func element(v *big.Int) fr.Element {
	var e fr.Element
	e.SetBigInt(v)
	return e
}

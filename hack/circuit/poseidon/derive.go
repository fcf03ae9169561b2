package poseidon

import (
	"math/big"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
)

const (
	fullRounds = 8
	// stateBits is the size of the generator's state.
	stateBits = 80
	// warmUp is the number of the generator's first bits that are discarded.
	warmUp = 160
)

// permutation is Poseidon's permutation of one width.
type permutation struct {
	width, rounds, partial int
	constants              []*big.Int // width for each round
	mds                    []*big.Int // width², by rows
}

// derive makes the constants as the Poseidon paper's reference implementation does,
// generate_parameters_grain.sage, whose output circomlib has.
func derive(width, partial int) *permutation {
	p := &permutation{width: width, rounds: fullRounds + partial, partial: partial}
	g := newGenerator(width, partial)
	for len(p.constants) < width*p.rounds {
		if v := g.number(); v.Cmp(fr.Modulus()) < 0 {
			p.constants = append(p.constants, v)
		}
	}
	// A Cauchy matrix: 1/(x+y) for each x of the first half and each y of the second. For
	// these widths the numbers differ, so that they need not be drawn again.
	numbers := make([]*big.Int, 2*width)
	for i := range numbers {
		numbers[i] = g.number()
	}
	for _, x := range numbers[:width] {
		for _, y := range numbers[width:] {
			sum := new(big.Int).Add(x, y)
			p.mds = append(p.mds, sum.ModInverse(sum, fr.Modulus()))
		}
	}
	return p
}

// generator is the paper's self-shrinking Grain LFSR.
type generator struct {
	bits [stateBits]byte // a ring
	next int             // the oldest bit
}

// newGenerator starts with the parameters of the constants: a prime field, the S-box x⁵, the bits
// of an element, the width and the numbers of rounds, each in a fixed number of bits; then ones.
func newGenerator(width, partial int) *generator {
	g := &generator{}
	i := 0
	for _, field := range []struct{ value, bits int }{{1, 2}, {0, 4}, {fr.Bits, 12}, {width, 12}, {fullRounds, 10}, {partial, 10}, {1<<30 - 1, 30}} {
		for bit := field.bits - 1; bit >= 0; bit-- {
			g.bits[i] = byte(field.value >> bit & 1)
			i++
		}
	}
	for range warmUp {
		g.step()
	}
	return g
}

func (g *generator) step() byte {
	var bit byte
	for _, tap := range []int{62, 51, 38, 23, 13, 0} {
		bit ^= g.bits[(g.next+tap)%stateBits]
	}
	g.bits[g.next] = bit
	g.next = (g.next + 1) % stateBits
	return bit
}

// number returns a number with as many bits as a field element. The generator's bits come in pairs:
// the second bit counts if the first one is one.
func (g *generator) number() *big.Int {
	v := new(big.Int)
	for n := 0; n < fr.Bits; {
		counts, bit := g.step(), g.step()
		if counts == 1 {
			v.Lsh(v, 1).SetBit(v, 0, uint(bit))
			n++
		}
	}
	return v
}

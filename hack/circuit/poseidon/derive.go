package poseidon

import (
	"math/big"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
)

const (
	fullRounds = 8
	// stateBits is the size of the generator's state in bits.
	stateBits = 80
	// warmUp is the number of the generator's first bits, which are discarded.
	warmUp = 160
)

type permutation struct {
	width, rounds, partial int
	constants              []*big.Int // width for each round
	mds                    []*big.Int // width², by rows
}

// derive computes the same constants as generate_parameters_grain.sage, the reference
// implementation of the Poseidon paper. circomlib has them too.
func derive(width, partial int) *permutation {
	p := &permutation{width: width, rounds: fullRounds + partial, partial: partial}
	g := newGenerator(width, partial)
	for len(p.constants) < width*p.rounds {
		if v := g.number(); v.Cmp(fr.Modulus()) < 0 {
			p.constants = append(p.constants, v)
		}
	}
	// mds is a Cauchy matrix: 1/(x+y) for each x in the first half of the numbers and each y in the
	// second half. The reference draws new numbers if two are equal. For these widths all differ.
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

// generator is the self-shrinking Grain LFSR of the Poseidon paper.
type generator struct {
	bits [stateBits]byte // a circular buffer
	next int             // the index of the oldest bit
}

// newGenerator initialises the state with the parameters of the constants, each in a fixed number
// of bits: the type of field (prime), the S-box (x⁵), the bits of an element, the width, the full
// rounds and the partial rounds. The remaining bits are ones.
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

// number returns a number with the bits of a field element. It reads the generator's bits in
// pairs, and uses the second bit of a pair only if the first bit is one.
func (g *generator) number() *big.Int {
	v := new(big.Int)
	for n := 0; n < fr.Bits; {
		selected, bit := g.step(), g.step()
		if selected == 1 {
			v.Lsh(v, 1).SetBit(v, 0, uint(bit))
			n++
		}
	}
	return v
}

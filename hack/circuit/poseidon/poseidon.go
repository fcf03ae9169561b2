// Package poseidon is circom's Poseidon hash over BN254, as constraints of a gnark circuit and for
// the field elements of witnesses.
package poseidon

import (
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
	"github.com/consensys/gnark/frontend"
)

// Hasher hashes two, three or four values. New makes a Hasher.
type Hasher struct {
	permutations map[int]*permutation
}

// New derives the constants. One Hasher serves all hashes of a circuit.
func New() *Hasher {
	return &Hasher{permutations: map[int]*permutation{3: derive(3, 57), 4: derive(4, 56), 5: derive(5, 60)}}
}

func (h *Hasher) permutation(inputs int) *permutation {
	p, ok := h.permutations[inputs+1]
	if !ok {
		panic(fmt.Sprintf("poseidon: want two to four inputs, received %d", inputs))
	}
	return p
}

func (p *permutation) isFull(round int) bool {
	return round < fullRounds/2 || round >= fullRounds/2+p.partial
}

// Constrain returns the hash of the inputs inside a circuit. It adds three constraints for each
// S-box: 240 constraints for two inputs, 261 for three and 297 for four. Sums and the matrix are
// linear and add no constraints.
func (h *Hasher) Constrain(api frontend.API, inputs ...frontend.Variable) frontend.Variable {
	p := h.permutation(len(inputs))
	state := append([]frontend.Variable{0}, inputs...)
	for r := range p.rounds {
		for i := range state {
			state[i] = api.Add(state[i], p.constants[r*p.width+i])
			if i == 0 || p.isFull(r) {
				square := api.Mul(state[i], state[i])
				state[i] = api.Mul(state[i], api.Mul(square, square))
			}
		}
		state = p.mix(api, state)
	}
	return state[0]
}

func (p *permutation) mix(api frontend.API, state []frontend.Variable) []frontend.Variable {
	out := make([]frontend.Variable, p.width)
	for i := range out {
		terms := make([]frontend.Variable, p.width)
		for j := range state {
			terms[j] = api.Mul(p.mds[i*p.width+j], state[j])
		}
		out[i] = api.Add(terms[0], terms[1], terms[2:]...)
	}
	return out
}

// Sum returns the hash of two, three or four field elements.
func (h *Hasher) Sum(inputs ...fr.Element) fr.Element {
	p := h.permutation(len(inputs))
	state := append(make([]fr.Element, 1), inputs...)
	for r := range p.rounds {
		mixed := make([]fr.Element, p.width)
		for j := range state {
			var e, coefficient fr.Element
			e.SetBigInt(p.constants[r*p.width+j])
			e.Add(&e, &state[j])
			if j == 0 || p.isFull(r) {
				var fourth fr.Element
				fourth.Square(&e)
				fourth.Square(&fourth)
				e.Mul(&e, &fourth)
			}
			for i := range mixed {
				coefficient.SetBigInt(p.mds[i*p.width+j])
				coefficient.Mul(&coefficient, &e)
				mixed[i].Add(&mixed[i], &coefficient)
			}
		}
		state = mixed
	}
	return state[0]
}

package shieldpool

// Leaves returns the commitments that an instruction of the program appends, in order; none when
// the data is not a Transact or TransactSwap. The program does not append all-zero commitments.
// Leaves reads only fixed offsets, so it also works if the note envelope has an unknown form.
func (p *Profile) Leaves(data []byte) [][32]byte {
	if len(data) < TransactLength || (data[0] != p.Tags.Transact && data[0] != p.Tags.TransactSwap) {
		return nil
	}
	return leaves([2][32]byte{[32]byte(data[425:]), [32]byte(data[457:])})
}

// Leaves returns the commitments that the program appends, in order.
func (in *PublicInputs) Leaves() [][32]byte { return leaves(in.Commitments) }

func leaves(commitments [2][32]byte) (out [][32]byte) {
	for _, c := range commitments {
		if c != ([32]byte{}) {
			out = append(out, c)
		}
	}
	return out
}

package shieldpool

// Leaves returns the commitments that an instruction of the program appends, in order; none when
// the data is not a Transact or TransactSwap. The program does not append all-zero commitments.
// Leaves reads only fixed offsets, so it also works if the note envelope has an unknown form.
func (p *Profile) Leaves(data []byte) [][32]byte {
	if len(data) < TransactLength || (data[0] != p.Tags.Transact && data[0] != p.Tags.TransactSwap) {
		return nil
	}
	var leaves [][32]byte
	for _, at := range []int{425, 457} { // the two commitments
		if leaf := [32]byte(data[at : at+32]); leaf != ([32]byte{}) {
			leaves = append(leaves, leaf)
		}
	}
	return leaves
}

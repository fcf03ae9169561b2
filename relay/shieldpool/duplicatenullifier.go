package shieldpool

import "github.com/relaypool/relaypool/relay/refusal"

// CheckNullifiers refuses two equal nullifiers (duplicate_nullifier) and two
// zero ones (no_input): a zero nullifier means no input.
func (in *PublicInputs) CheckNullifiers() error {
	var zero [32]byte
	switch {
	case in.Nullifiers[0] == zero && in.Nullifiers[1] == zero:
		return refusal.New(refusal.NoInput, "both nullifiers are zero, which means no input: expected at least one note to spend")
	case in.Nullifiers[0] == in.Nullifiers[1]:
		return refusal.New(refusal.DuplicateNullifier, "both nullifiers are the same: expected two different notes; a missing second input has nullifier zero")
	}
	return nil
}

// HasNullifier reports whether input i (0 or 1) spends a note.
func (in *PublicInputs) HasNullifier(i int) bool { return in.Nullifiers[i] != [32]byte{} }

package setup

import (
	"errors"
	"fmt"

	"github.com/consensys/gnark-crypto/ecc"
	groth16 "github.com/consensys/gnark/backend/groth16/bn254"
	cs "github.com/consensys/gnark/constraint/bn254"
	"github.com/consensys/gnark/frontend"

	"github.com/relaypool/relaypool/hack/circuit/transaction"
)

// ProofSize is the length of a proof in bytes (docs/engineering/protocol.md, "Bytes").
const ProofSize = 256

// Prove proves a transaction and returns the proof in the protocol's encoding: A, B and C,
// uncompressed, with A not negated. For a transaction that breaks a rule of the circuit the error
// names the constraint, never a value.
func (k *Keys) Prove(assignment *transaction.Circuit) ([ProofSize]byte, error) {
	var out [ProofSize]byte
	witness, err := frontend.NewWitness(assignment, ecc.BN254.ScalarField())
	if err != nil {
		return out, fmt.Errorf("make witness: %w", err)
	}
	proof, err := groth16.Prove(k.Circuit, k.Proving, witness)
	if err != nil {
		return out, k.withoutValues(err)
	}
	a, b, c := proof.Ar.RawBytes(), proof.Bs.RawBytes(), proof.Krs.RawBytes()
	copy(out[:64], a[:])
	copy(out[64:192], b[:])
	copy(out[192:], c[:])
	return out, nil
}

// withoutValues replaces the solver's error, which contains secret values of the witness.
func (k *Keys) withoutValues(err error) error {
	var unsatisfied *cs.UnsatisfiedConstraintError
	if errors.As(err, &unsatisfied) {
		return fmt.Errorf("the transaction breaks a rule of the circuit (constraint %d of %d): check root and paths, amounts, nullifiers and hashes", unsatisfied.CID, k.Circuit.GetNbConstraints())
	}
	return fmt.Errorf("prove the transaction: the prover failed with %T", err)
}

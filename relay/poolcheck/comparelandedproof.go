package poolcheck

import (
	"fmt"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// CheckLandedProof is the name of CompareProof's check.
const CheckLandedProof = "landed_proof"

// ReasonProofMismatch means that the proof of a transaction that the program has accepted does not
// hold under the verifying key. Like ReasonProfileMismatch, it is never a condition's reason.
const ReasonProofMismatch Reason = "ProofMismatch"

// CompareProof verifies, under the verifying key, the proof of the first Transact or TransactSwap
// in landed, which lists the newest transaction first. The check shows a wrong key, a wrong mint
// field, and the encoding of A that the program accepts. Without such a transaction the check
// stays unknown.
func CompareProof(p *shieldpool.Pool, key *groth16.Key, landed []Landed) Check {
	check := Check{
		Name: CheckLandedProof, State: Unknown, Reason: ReasonNotChecked, Expected: "a confirmed proof that holds under the verifying key, for a mint of the profile",
		Found: "no confirmed transaction to verify", Remedy: "probe again after the first one",
	}
	for i := range landed {
		for _, ix := range landed[i].Instructions {
			if !ix.Program.Equals(p.Profile.ProgramID) || len(ix.Data) < shieldpool.TransactLength {
				continue
			}
			inputs, err := shieldpool.ParsePublicInputs(ix.Data[1+shieldpool.ProofLength : shieldpool.TransactLength])
			if err != nil {
				continue // an instruction of another kind, at least as long as a Transact
			}
			check.decideProof(p, key, inputs, ix.Data[1:1+shieldpool.ProofLength], landed[i].Signature)
			return check
		}
	}
	return check
}

func (c *Check) decideProof(p *shieldpool.Pool, key *groth16.Key, in *shieldpool.PublicInputs, proof []byte, signature solana.Signature) {
	if _, known := p.Profile.MintByField(in.MintAddress); !known {
		c.State, c.Reason = Failed, ReasonMintUnknown
		c.Found = fmt.Sprintf("a confirmed transaction with the mint field %x, %s", in.MintAddress, signature)
		c.Remedy = "correct the field of the pool's mint, in --mint or the profile"
		return
	}
	signals := in.Signals()
	parsed, err := groth16.ParseProof(proof)
	encoding := groth16.EncodingUnknown
	if err == nil {
		encoding, err = key.Verify(parsed, signals[:])
	}
	if err != nil {
		c.State, c.Reason = Failed, ReasonProofMismatch
		c.Found = fmt.Sprintf("%s: %v", signature, err)
		c.Remedy = "give the pool's own --verifying-key"
		return
	}
	c.State, c.Reason, c.Remedy = OK, "", ""
	c.Found = fmt.Sprintf("the proof of %s holds, with A %s", signature, encoding)
}

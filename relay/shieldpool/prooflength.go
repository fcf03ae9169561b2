package shieldpool

import "github.com/relaypool/relaypool/relay/refusal"

// ProofLength is the size of a Groth16 proof on the wire, in bytes.
const ProofLength = 256

// CheckProofLength refuses a proof that is not exactly 256 bytes.
func CheckProofLength(b []byte) error {
	if len(b) != ProofLength {
		return refusal.New(refusal.InvalidProofLength,
			"proof_bytes decodes to %d bytes, expected exactly %d: A 64, B 128, C 64, uncompressed and big-endian", len(b), ProofLength)
	}
	return nil
}

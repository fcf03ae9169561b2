package shieldpool

import (
	"encoding/binary"
	"math"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"github.com/relaypool/relaypool/relay/refusal"
)

const (
	// PublicInputsLength is the size of the public inputs on the wire, in bytes.
	PublicInputsLength = 264
	// oldPublicInputsLength is the length that clients without chainNoteHash send.
	oldPublicInputsLength = 232
	// SignalCount is the number of the circuit's public signals.
	SignalCount = 9
)

// PublicInputs are the 264 bytes of a proof's public inputs. All 32-byte values are field
// elements, big-endian, below the field's modulus r.
type PublicInputs struct {
	Root [32]byte
	// PublicAmount is in lamports: > 0 deposit, < 0 withdrawal, 0 transfer; the gross
	// amount, fee included.
	PublicAmount  int64
	ExtDataHash   [32]byte
	MintAddress   [32]byte
	Nullifiers    [2][32]byte
	Commitments   [2][32]byte
	ChainNoteHash [32]byte
}

// ParsePublicInputs decodes 264 bytes. It refuses another length (invalid_public_inputs_length),
// a field element ≥ r (non_canonical_field: a nullifier plus r would spend a note twice) and the
// smallest i64 (invalid_public_amount), whose absolute value an i64 cannot hold.
func ParsePublicInputs(b []byte) (*PublicInputs, error) {
	if len(b) != PublicInputsLength {
		return nil, wrongPublicInputsLength(len(b))
	}
	in := new(PublicInputs)
	fields := []struct {
		name string
		to   *[32]byte
		at   int
	}{
		{"root", &in.Root, 0},
		{"extDataHash", &in.ExtDataHash, 40},
		{"mintAddress", &in.MintAddress, 72},
		{"nullifiers[0]", &in.Nullifiers[0], 104},
		{"nullifiers[1]", &in.Nullifiers[1], 136},
		{"commitments[0]", &in.Commitments[0], 168},
		{"commitments[1]", &in.Commitments[1], 200},
		{"chainNoteHash", &in.ChainNoteHash, 232},
	}
	for _, f := range fields {
		copy(f.to[:], b[f.at:f.at+32])
		if err := refuseNonCanonical(f.name, f.at, f.to); err != nil {
			return nil, err
		}
	}
	in.PublicAmount = int64(binary.LittleEndian.Uint64(b[32:40])) //nolint:gosec // two's complement is the wire format
	if in.PublicAmount == math.MinInt64 {
		return nil, refusal.New(refusal.InvalidPublicAmount,
			"publicAmount is the smallest 64-bit integer, which has no magnitude: expected a value above -2^63")
	}
	return in, nil
}

func wrongPublicInputsLength(n int) error {
	if n == oldPublicInputsLength {
		return refusal.New(refusal.InvalidPublicInputsLength,
			"public_inputs decodes to %d bytes, expected %d: %d is the old layout without chainNoteHash; update the client SDK", n, PublicInputsLength, oldPublicInputsLength)
	}
	return refusal.New(refusal.InvalidPublicInputsLength,
		"public_inputs decodes to %d bytes, expected exactly %d: root 32, publicAmount 8, extDataHash 32, mintAddress 32, nullifiers 64, commitments 64, chainNoteHash 32", n, PublicInputsLength)
}

// Bytes encodes the inputs: 264 bytes, the inverse of ParsePublicInputs.
func (in *PublicInputs) Bytes() []byte {
	b := make([]byte, 0, PublicInputsLength)
	b = append(b, in.Root[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(in.PublicAmount)) //nolint:gosec // two's complement is the wire format
	for _, f := range [][32]byte{in.ExtDataHash, in.MintAddress, in.Nullifiers[0], in.Nullifiers[1], in.Commitments[0], in.Commitments[1], in.ChainNoteHash} {
		b = append(b, f[:]...)
	}
	return b
}

// Signals returns the nine public signals in the circuit's order, big-endian. A
// negative amount x is encoded as r − |x|.
func (in *PublicInputs) Signals() [SignalCount][32]byte {
	return [SignalCount][32]byte{
		in.Root, amountSignal(in.PublicAmount), in.ExtDataHash, in.MintAddress,
		in.Nullifiers[0], in.Nullifiers[1], in.Commitments[0], in.Commitments[1], in.ChainNoteHash,
	}
}

func amountSignal(x int64) [32]byte {
	var e fr.Element
	e.SetInt64(x)
	return e.Bytes()
}

// Gross returns |publicAmount| in lamports.
func (in *PublicInputs) Gross() uint64 {
	if in.PublicAmount < 0 {
		return uint64(-in.PublicAmount)
	}
	return uint64(in.PublicAmount)
}

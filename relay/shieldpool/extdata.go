package shieldpool

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/gagliardetto/solana-go"
)

// ExtDataRule is the rule by which the proof binds the destination.
type ExtDataRule string

const (
	// ExtDataOpaque means that the formula is unknown: only the program protects the
	// destination.
	ExtDataOpaque ExtDataRule = "opaque"
	// ExtDataSHA256 is 0x00 ‖ the first 31 bytes of sha256(destination).
	ExtDataSHA256 ExtDataRule = "sha256-31"
)

// Destination is the destination of a withdrawal or swap, as the ext data hash binds it.
type Destination struct {
	// Recipient is the wallet of a withdrawal; zero for transfers and swaps.
	Recipient solana.PublicKey
	// Swap is a swap's terms; nil without one.
	Swap *SwapTerms
}

// SwapTerms are the 72 bytes that TransactSwap has after the public inputs, and that Transact
// does not have.
type SwapTerms struct {
	OutputMint, RecipientATA solana.PublicKey
	// MinOutput is in the output mint's smallest unit.
	MinOutput uint64
}

// Bytes returns output_mint ‖ recipient_ata ‖ min_output as u64 little-endian: 72 bytes.
func (s SwapTerms) Bytes() []byte {
	b := make([]byte, 0, 72)
	b = append(b, s.OutputMint[:]...)
	b = append(b, s.RecipientATA[:]...)
	return binary.LittleEndian.AppendUint64(b, s.MinOutput)
}

// Bytes encodes the destination: 32 bytes for a recipient, 72 bytes for a swap, none for a
// transfer.
func (d Destination) Bytes() []byte {
	switch {
	case d.Swap != nil:
		return d.Swap.Bytes()
	case d.Recipient.IsZero():
		return nil
	default:
		return d.Recipient.Bytes()
	}
}

// ExtDataHash returns the hash that binds the destination under sha256-31.
func ExtDataHash(d Destination) [32]byte {
	sum := sha256.Sum256(d.Bytes())
	var h [32]byte
	copy(h[1:], sum[:31])
	return h
}

// BindsDestination reports whether the public inputs bind the destination as the profile
// requires. It returns true if the profile has no formula, and for transfers and deposits, which
// have no destination.
func (p *Profile) BindsDestination(in *PublicInputs, d Destination) bool {
	if p.ExtData != ExtDataSHA256 || in.PublicAmount >= 0 {
		return true
	}
	return in.ExtDataHash == ExtDataHash(d)
}

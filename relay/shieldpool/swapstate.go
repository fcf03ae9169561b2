package shieldpool

import (
	"encoding/binary"
	"fmt"

	"github.com/gagliardetto/solana-go"
)

// SwapStateLength is the size of a swap state account's data in bytes.
const SwapStateLength = 161

// SwapState is the data of the account that holds a swap's lamports between its two legs.
type SwapState struct {
	Nullifier                [32]byte
	Lamports                 uint64
	OutputMint, RecipientATA solana.PublicKey
	// MinOutput is in the output mint's smallest unit.
	MinOutput uint64
	// CreatedSlot and TimeoutSlot bound the time for the swap: from TimeoutSlot on it can
	// be refunded.
	CreatedSlot, TimeoutSlot uint64
	Bump                     uint8
}

// ParseSwapState decodes a swap state account.
func ParseSwapState(data []byte) (*SwapState, error) {
	if len(data) < SwapStateLength {
		return nil, fmt.Errorf("swap state account has %d bytes, expected at least %d", len(data), SwapStateLength)
	}
	return &SwapState{
		Nullifier:    [32]byte(data),
		Lamports:     binary.LittleEndian.Uint64(data[32:]),
		OutputMint:   solana.PublicKeyFromBytes(data[40:72]),
		RecipientATA: solana.PublicKeyFromBytes(data[72:104]),
		MinOutput:    binary.LittleEndian.Uint64(data[104:]),
		CreatedSlot:  binary.LittleEndian.Uint64(data[112:]),
		TimeoutSlot:  binary.LittleEndian.Uint64(data[120:]),
		Bump:         data[160],
	}, nil
}

// Bytes encodes the account's data.
func (s *SwapState) Bytes() []byte {
	b := make([]byte, 0, SwapStateLength)
	b = append(b, s.Nullifier[:]...)
	b = binary.LittleEndian.AppendUint64(b, s.Lamports)
	b = append(b, s.OutputMint[:]...)
	b = append(b, s.RecipientATA[:]...)
	b = binary.LittleEndian.AppendUint64(b, s.MinOutput)
	b = binary.LittleEndian.AppendUint64(b, s.CreatedSlot)
	b = binary.LittleEndian.AppendUint64(b, s.TimeoutSlot)
	b = append(b, make([]byte, 32)...)
	return append(b, s.Bump)
}

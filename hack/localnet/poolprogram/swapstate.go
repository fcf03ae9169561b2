package poolprogram

import (
	"encoding/binary"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

// Offsets of a swap state account, as protocol.md lays them down.
const (
	swapLamportsAt   = 32
	swapOutputMintAt = 40
	swapRecipientAt  = 72
	swapMinOutputAt  = 104
	swapCreatedAt    = 112
	swapTimeoutAt    = 120
	swapReservedAt   = 128
	swapBumpAt       = 160
	swapStateSize    = 161
)

// swapState is the data of a swap state account.
type swapState struct {
	nullifier [32]byte
	// lamports are the swap's own, beside rent and whatever others sent.
	lamports                 uint64
	outputMint, recipientATA solana.PublicKey
	minOutput                uint64
	created, timeout         uint64
	// wrapped stands in the first reserved byte. The balances cannot tell it:
	// anybody may send lamports to the state, and wrapped SOL to its account.
	wrapped bool
	bump    uint8
}

func (s *swapState) bytes() []byte {
	b := make([]byte, swapStateSize)
	copy(b, s.nullifier[:])
	binary.LittleEndian.PutUint64(b[swapLamportsAt:], s.lamports)
	copy(b[swapOutputMintAt:], s.outputMint[:])
	copy(b[swapRecipientAt:], s.recipientATA[:])
	binary.LittleEndian.PutUint64(b[swapMinOutputAt:], s.minOutput)
	binary.LittleEndian.PutUint64(b[swapCreatedAt:], s.created)
	binary.LittleEndian.PutUint64(b[swapTimeoutAt:], s.timeout)
	if s.wrapped {
		b[swapReservedAt] = 1
	}
	b[swapBumpAt] = s.bump
	return b
}

// readSwapState gives UninitializedAccount when there is no such swap: it was
// never made, or it is settled. Of the program's accounts no other kind has the
// size of a state.
func readSwapState(v *bank.Invocation, account *bank.AccountRef) (*swapState, error) {
	if account.Owner() != v.ProgramID {
		return nil, refuse(v, bank.ErrUninitializedAccount, "there is no such swap: it is settled, or was never made")
	}
	if account.Length() != swapStateSize {
		return nil, refuse(v, bank.ErrInvalidAccountData, "the account is no swap's state")
	}
	b := account.Data()
	return &swapState{
		nullifier:    [32]byte(b),
		lamports:     binary.LittleEndian.Uint64(b[swapLamportsAt:]),
		outputMint:   solana.PublicKeyFromBytes(b[swapOutputMintAt:swapRecipientAt]),
		recipientATA: solana.PublicKeyFromBytes(b[swapRecipientAt:swapMinOutputAt]),
		minOutput:    binary.LittleEndian.Uint64(b[swapMinOutputAt:]),
		created:      binary.LittleEndian.Uint64(b[swapCreatedAt:]),
		timeout:      binary.LittleEndian.Uint64(b[swapTimeoutAt:]),
		wrapped:      b[swapReservedAt] == 1,
		bump:         b[swapBumpAt],
	}, nil
}

// closeAccount gives all that an account of the program holds to another and
// leaves nothing, not even for the rest of the transaction.
func closeAccount(account, to *bank.AccountRef) error {
	lamports := account.Lamports()
	if err := account.SubLamports(lamports); err != nil {
		return err
	}
	if err := to.AddLamports(lamports); err != nil {
		return err
	}
	if err := account.SetData(nil); err != nil {
		return err
	}
	return account.SetOwner(solana.SystemProgramID)
}

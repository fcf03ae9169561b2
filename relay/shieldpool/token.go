package shieldpool

import (
	"encoding/binary"
	"fmt"

	"github.com/gagliardetto/solana-go"
)

const (
	// TokenAccountLength is the size of the SPL Token program's token accounts, in
	// bytes (spl-token).
	TokenAccountLength = 165
	// TokenMintLength is the length of a mint account.
	TokenMintLength = 82
)

// AssociatedTokenAccount returns the address of the wallet's token account for a mint of
// the SPL Token program.
func AssociatedTokenAccount(wallet, mint solana.PublicKey) (solana.PublicKey, error) {
	address, _, err := solana.FindAssociatedTokenAddress(wallet, mint)
	if err != nil {
		return address, fmt.Errorf("derive associated token account: %w", err)
	}
	return address, nil
}

// TokenAccount is a token account of the SPL Token program.
type TokenAccount struct {
	Mint, Owner solana.PublicKey
	// Amount is in the mint's smallest unit.
	Amount uint64
	// Frozen says that the account cannot transfer; Native says that it holds wrapped SOL.
	Frozen, Native bool
}

// ParseTokenAccount decodes the data of an initialised token account. The caller has to
// check that the token program owns the account.
func ParseTokenAccount(data []byte) (*TokenAccount, error) {
	if len(data) != TokenAccountLength {
		return nil, fmt.Errorf("token account has %d bytes, expected %d", len(data), TokenAccountLength)
	}
	state := data[108]
	if state != 1 && state != 2 {
		return nil, fmt.Errorf("token account's state is %d, expected 1 (initialised) or 2 (frozen)", state)
	}
	return &TokenAccount{
		Mint: solana.PublicKeyFromBytes(data[:32]), Owner: solana.PublicKeyFromBytes(data[32:64]),
		Amount: binary.LittleEndian.Uint64(data[64:]), Frozen: state == 2, Native: binary.LittleEndian.Uint32(data[109:]) == 1,
	}, nil
}

// CheckTokenMint returns nil if data is an initialised mint of the SPL Token
// program.
func CheckTokenMint(data []byte) error {
	switch {
	case len(data) != TokenMintLength:
		return fmt.Errorf("mint has %d bytes, expected %d", len(data), TokenMintLength)
	case data[45] != 1:
		return fmt.Errorf("mint is not initialised")
	}
	return nil
}

package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// errInvalidLookupTable means that the configured lookup table cannot be used.
var errInvalidLookupTable = errors.New("--lookup-table is not usable")

// newLookupTable returns the configured lookup table, or nil if none is configured. Until its
// addresses are read from the chain, it has only the pool's addresses, which are enough to
// compute how many bytes of notes fit.
func newLookupTable(address solana.PublicKey, pool *shieldpool.Pool) *shieldpool.LookupTable {
	if address.IsZero() {
		return nil
	}
	return &shieldpool.LookupTable{Address: address, Addresses: pool.Constant()}
}

// corroboratedReader reads a finalized account. It returns nil when the account does not exist.
// If more than one endpoint is configured, two of them have to report the same.
type corroboratedReader interface {
	CorroboratedAccount(ctx context.Context, key solana.PublicKey) (*onchain.Account, error)
}

// readLookupTable reads the relay's own lookup table at the commitment finalized: a fork could
// still remove newer entries, and a transaction that uses a removed entry is lost. The process
// uses the result until it ends, so a single endpoint must not decide it. errInvalidLookupTable
// is permanent; other errors may be temporary.
func readLookupTable(ctx context.Context, chain corroboratedReader, t *shieldpool.LookupTable, pool *shieldpool.Pool) error {
	if t == nil {
		return nil
	}
	a, err := chain.CorroboratedAccount(ctx, t.Address)
	if err != nil {
		return fmt.Errorf("read lookup table: %w", err)
	}
	switch {
	case a == nil:
		return fmt.Errorf("%w: account %s does not exist (or is not finalized yet): create it, or leave the flag out", errInvalidLookupTable, t.Address)
	case !a.Owner.Equals(solana.AddressLookupTableProgramID):
		return fmt.Errorf("%w: account %s belongs to %s, expected the address lookup table program", errInvalidLookupTable, t.Address, a.Owner)
	}
	read, active, err := shieldpool.ParseLookupTable(t.Address, a.Data)
	if err != nil {
		return fmt.Errorf("%w: account %s: %w", errInvalidLookupTable, t.Address, err)
	}
	if !active {
		return fmt.Errorf("%w: %s is being deactivated: make another, or leave the flag out", errInvalidLookupTable, t.Address)
	}
	for _, key := range pool.Constant() {
		if !slices.Contains(read.Addresses, key) {
			return fmt.Errorf("%w: %s lacks %s: extend it with the pool %s, its merkle_tree %s, its treasury %s and the system program %s",
				errInvalidLookupTable, t.Address, key, pool.Address, pool.MerkleTree, pool.Treasury, solana.SystemProgramID)
		}
	}
	t.Addresses = read.Addresses
	return nil
}

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

// errBadTable means that the configured lookup table cannot be used.
var errBadTable = errors.New("--lookup-table is not usable")

// newTable returns the configured lookup table, nil for none. Until its addresses are read
// from the chain, it has the pool's own, which are enough to compute how many notes
// fit.
func newTable(address solana.PublicKey, pool *shieldpool.Pool) *shieldpool.LookupTable {
	if address.IsZero() {
		return nil
	}
	return &shieldpool.LookupTable{Address: address, Addresses: pool.Constant()}
}

// accountReader reads a finalized account, of which two endpoints report the same where
// several are configured; nil when it does not exist.
type accountReader interface {
	CorroboratedAccount(ctx context.Context, key solana.PublicKey) (*onchain.Account, error)
}

// readTable reads the relay's own lookup table at finalized, because a transaction that
// uses an index which a fork removes is lost. What it reads is used, or refused, until the
// process ends, so no single endpoint's word decides it. errBadTable is final, other errors
// are not.
func readTable(ctx context.Context, chain accountReader, t *shieldpool.LookupTable, pool *shieldpool.Pool) error {
	if t == nil {
		return nil
	}
	a, err := chain.CorroboratedAccount(ctx, t.Address)
	if err != nil {
		return fmt.Errorf("read lookup table: %w", err)
	}
	switch {
	case a == nil:
		return fmt.Errorf("%w: account %s does not exist (or is not finalized yet): create it, or leave the flag out", errBadTable, t.Address)
	case !a.Owner.Equals(solana.AddressLookupTableProgramID):
		return fmt.Errorf("%w: account %s belongs to %s, expected the address lookup table program", errBadTable, t.Address, a.Owner)
	}
	read, active, err := shieldpool.ParseLookupTable(t.Address, a.Data)
	if err != nil {
		return fmt.Errorf("%w: account %s: %w", errBadTable, t.Address, err)
	}
	if !active {
		return fmt.Errorf("%w: %s is being deactivated: make another, or leave the flag out", errBadTable, t.Address)
	}
	for _, key := range pool.Constant() {
		if !slices.Contains(read.Addresses, key) {
			return fmt.Errorf("%w: %s does not hold %s: extend it by the pool %s, its merkle_tree %s, its treasury %s and the system program %s",
				errBadTable, t.Address, key, pool.Address, pool.MerkleTree, pool.Treasury, solana.SystemProgramID)
		}
	}
	t.Addresses = read.Addresses
	return nil
}

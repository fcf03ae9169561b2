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

// accountReader reads accounts, all at one slot.
type accountReader interface {
	Accounts(ctx context.Context, keys []solana.PublicKey, commitment onchain.Commitment, minContextSlot uint64) ([]*onchain.Account, uint64, error)
}

// readTable reads the relay's own lookup table at finalized, because a transaction that
// uses an index which a fork removes is lost. errBadTable is final, other errors are
// not.
func readTable(ctx context.Context, chain accountReader, t *shieldpool.LookupTable, pool *shieldpool.Pool) error {
	if t == nil {
		return nil
	}
	accounts, _, err := chain.Accounts(ctx, []solana.PublicKey{t.Address}, onchain.Finalized, 0)
	if err != nil {
		return fmt.Errorf("read lookup table: %w", err)
	}
	a := accounts[0]
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

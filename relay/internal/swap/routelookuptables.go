package swap

import (
	"context"
	"fmt"
	"slices"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// readTables reads the lookup tables that the router names, and adds the relay's own.
func (s *Planner) readTables(ctx context.Context, e *execution) error {
	var keys []solana.PublicKey
	if s.table != nil {
		keys = append(keys, s.table.Address)
	}
	for _, key := range e.ix.LookupTables {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	accounts, _, err := s.chain.Accounts(ctx, keys, onchain.Confirmed, e.slot)
	if err != nil {
		return fmt.Errorf("read the lookup tables: %w", err)
	}
	for i, a := range accounts {
		t, err := tableOf(keys[i], a)
		if err != nil && s.table != nil && i == 0 {
			continue // the swap can do without the relay's own table
		}
		if err != nil {
			return err
		}
		e.tables = append(e.tables, t)
	}
	return nil
}

// tableOf decodes a lookup table that was read from the chain. Addresses that the router gives for
// a table are never used: with wrong ones, the transaction's indices would stand for other accounts
// than those that were checked. Addresses are only ever added to a table, so an index keeps its
// meaning.
func tableOf(key solana.PublicKey, a *onchain.Account) (shieldpool.LookupTable, error) {
	rejected := &rejectedByGuard{RejectedRoute{What: RejectedTable}}
	if a == nil || !a.Owner.Equals(solana.AddressLookupTableProgramID) {
		return shieldpool.LookupTable{}, rejected
	}
	t, active, err := shieldpool.ParseLookupTable(key, a.Data)
	if err != nil || !active || len(t.Addresses) > maxAddresses {
		return shieldpool.LookupTable{}, rejected
	}
	return t, nil
}

// maxAddresses is how many addresses a lookup table can hold (Solana).
const maxAddresses = 256

// worthwhileTables returns the tables that make a transaction with these accounts smaller. A table
// adds 34 bytes to the transaction, and each account found in the table saves 31.
func worthwhileTables(tables []shieldpool.LookupTable, accounts []*solana.AccountMeta) (out []shieldpool.LookupTable) {
	uncovered := map[solana.PublicKey]bool{}
	for _, a := range accounts {
		if !a.IsSigner {
			uncovered[a.PublicKey] = true
		}
	}
	for {
		best, most := -1, 1 // a table with one of the accounts saves nothing
		for i := range tables {
			n := 0
			for key := range uncovered {
				if slices.Contains(tables[i].Addresses, key) {
					n++
				}
			}
			if n > most {
				best, most = i, n
			}
		}
		if best < 0 {
			return out
		}
		for _, key := range tables[best].Addresses {
			delete(uncovered, key)
		}
		out = append(out, tables[best])
	}
}

package bank

import (
	"bytes"
	"math"
	"slices"

	bin "github.com/gagliardetto/binary"
	"github.com/gagliardetto/solana-go"
	addresslookuptable "github.com/gagliardetto/solana-go/programs/address-lookup-table"
	"github.com/gagliardetto/solana-go/rpc"
)

const (
	// maxLocks is the most accounts that one transaction may name.
	maxLocks = 64
	// tableType is the type index at the start of a lookup table's data.
	tableType = 1
)

// LookupTable is the account of an address lookup table, for Options.Accounts: this
// chain does not have the program that creates and extends lookup tables.
func LookupTable(addresses ...solana.PublicKey) Account {
	var data bytes.Buffer
	state := addresslookuptable.AddressLookupTableState{TypeIndex: tableType, DeactivationSlot: math.MaxUint64, Addresses: addresses}
	if err := state.MarshalWithEncoder(bin.NewBinEncoder(&data)); err != nil {
		panic(err) // cannot happen: writing to a buffer does not fail
	}
	return Account{Lamports: RentExemption(uint64(data.Len())), Data: data.Bytes(), Owner: solana.AddressLookupTableProgramID} //nolint:gosec // a length is not negative
}

// nothingLoaded has empty lists instead of nil: nodes answer with [], not null.
func nothingLoaded() rpc.LoadedAddresses {
	return rpc.LoadedAddresses{ReadOnly: solana.PublicKeySlice{}, Writable: solana.PublicKeySlice{}}
}

// Resolve returns the transaction with the accounts of its lookup tables at the
// level's block, or the error of a table that is missing or invalid. A transaction
// without lookups is returned unchanged.
func (v View) Resolve(tx *Transaction) (*Transaction, *TransactionError) {
	return v.bank.resolve(tx, v.block)
}

// resolve is Resolve at a block. It ignores addresses that tx already has from
// tables, because tx may have been resolved at another block. The caller holds mu.
func (b *Bank) resolve(tx *Transaction, at *Block) (*Transaction, *TransactionError) {
	if len(tx.AddressTableLookups) == 0 {
		return tx, nil
	}
	loaded := nothingLoaded()
	for i := range tx.AddressTableLookups {
		lookup := &tx.AddressTableLookups[i]
		table, err := b.table(lookup.AccountKey, at)
		if err != nil {
			return nil, err
		}
		if loaded.Writable, err = appendIndices(loaded.Writable, table, lookup.WritableIndexes); err != nil {
			return nil, err
		}
		if loaded.ReadOnly, err = appendIndices(loaded.ReadOnly, table, lookup.ReadonlyIndexes); err != nil {
			return nil, err
		}
	}
	message := *tx.Message
	static := len(message.AccountKeys)
	message.Loaded = loaded
	message.Keys = slices.Concat(message.AccountKeys, loaded.Writable, loaded.ReadOnly)
	message.Writable = make([]bool, len(message.Keys))
	copy(message.Writable, tx.Writable[:static])
	for i, key := range loaded.Writable {
		message.Writable[static+i] = !reserved(key)
	}
	out := *tx
	out.Message = &message
	return &out, nil
}

func (b *Bank) table(key solana.PublicKey, at *Block) (solana.PublicKeySlice, *TransactionError) {
	stored := b.accounts.at(key, at.Slot)
	switch {
	case stored == nil:
		return nil, newError(AddressLookupTableNotFound)
	case stored.Owner != solana.AddressLookupTableProgramID:
		return nil, newError(InvalidAddressLookupTableOwner)
	}
	table, err := addresslookuptable.DecodeAddressLookupTableState(stored.Data)
	if err != nil || table.TypeIndex != tableType {
		return nil, newError(InvalidAddressLookupTableData)
	}
	return table.Addresses, nil
}

func appendIndices(to, table solana.PublicKeySlice, indices []uint8) (solana.PublicKeySlice, *TransactionError) {
	for _, i := range indices {
		if int(i) >= len(table) {
			return nil, newError(InvalidAddressLookupTableIndex)
		}
		to = append(to, table[i])
	}
	return to, nil
}

// sanitizeLookups checks that every lookup of a message loads an account and that
// one byte can index all accounts. It returns how many accounts the lookups load.
func sanitizeLookups(m *solana.Message) (loaded int, err error) {
	for _, lookup := range m.AddressTableLookups {
		n := len(lookup.WritableIndexes) + len(lookup.ReadonlyIndexes)
		if n == 0 {
			return 0, newError(SanitizeFailure)
		}
		loaded += n
	}
	const maxKeys = 256 // an index is one byte on the wire
	if len(m.AccountKeys)+loaded > maxKeys {
		return 0, newError(SanitizeFailure)
	}
	return loaded, nil
}

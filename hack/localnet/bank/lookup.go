package bank

import (
	"slices"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/lookuptable/layout"
)

// maxLocks is the most accounts that one transaction may name.
const maxLocks = 64

// LoadedAddresses are the accounts that a transaction has from lookup tables,
// in the order of its lookups.
type LoadedAddresses struct {
	Writable, Readonly []solana.PublicKey
}

// Resolve gives the transaction with the accounts that its lookup tables hold
// at the level's block, or why they cannot be had. Without lookups it is the
// transaction itself.
func (v View) Resolve(tx *Transaction) (*Transaction, *TransactionError) {
	return v.bank.resolve(tx, v.block)
}

// resolve looks the accounts of tables up as of a block. It begins with the
// transaction's own keys, so that one which was resolved in another block is
// resolved anew. The caller holds mu.
func (b *Bank) resolve(tx *Transaction, at *Block) (*Transaction, *TransactionError) {
	if len(tx.AddressTableLookups) == 0 {
		return tx, nil
	}
	var loaded LoadedAddresses
	for i := range tx.AddressTableLookups {
		lookup := &tx.AddressTableLookups[i]
		table, err := b.table(lookup.AccountKey, at)
		if err != nil {
			return nil, err
		}
		if loaded.Writable, err = table.append(loaded.Writable, lookup.WritableIndexes); err != nil {
			return nil, err
		}
		if loaded.Readonly, err = table.append(loaded.Readonly, lookup.ReadonlyIndexes); err != nil {
			return nil, err
		}
	}
	message := *tx.Message
	static := len(message.AccountKeys)
	message.Loaded = loaded
	message.Keys = slices.Concat(message.AccountKeys, loaded.Writable, loaded.Readonly)
	message.Writable = make([]bool, len(message.Keys))
	copy(message.Writable, tx.Writable[:static])
	for i, key := range loaded.Writable {
		message.Writable[static+i] = !reserved(key)
	}
	out := *tx
	out.Message = &message
	return &out, nil
}

// table is a lookup table as it can be used in one block.
type table struct {
	*record
	usable int
}

func (b *Bank) table(key solana.PublicKey, at *Block) (*table, *TransactionError) {
	stored := b.accounts.at(key, at.Slot)
	switch {
	case stored == nil:
		return nil, refused(AddressLookupTableNotFound)
	case stored.owner != solana.AddressLookupTableProgramID:
		return nil, refused(InvalidAddressLookupTableOwner)
	}
	header, err := layout.Parse(stored.data.read(0, min(layout.HeaderSize, stored.data.length)), stored.data.length)
	if err != nil {
		return nil, refused(InvalidAddressLookupTableData)
	}
	if gone := header.DeactivationSlot; gone != layout.Never && gone != at.Slot {
		// It serves on while its slot is recent, so that what is under way lands.
		if _, recent := slices.BinarySearch(b.recentSlots(at), gone); !recent {
			return nil, refused(AddressLookupTableNotFound)
		}
	}
	return &table{stored, header.Usable(stored.data.length, at.Slot)}, nil
}

// append appends the addresses of indices.
func (t *table) append(to []solana.PublicKey, indices []uint8) ([]solana.PublicKey, *TransactionError) {
	for _, i := range indices {
		if int(i) >= t.usable {
			return nil, refused(InvalidAddressLookupTableIndex)
		}
		to = append(to, solana.PublicKeyFromBytes(t.data.read(layout.At(int(i)), solana.PublicKeyLength)))
	}
	return to, nil
}

// recentSlots gives the slots of the newest blocks below one, ascending: what
// the sysvar of slot hashes holds on a real chain. The caller holds mu.
func (b *Bank) recentSlots(below *Block) []uint64 {
	end := b.chain.position(below)
	blocks := b.chain[max(0, end-layout.RecentSlots):end]
	slots := make([]uint64, len(blocks))
	for i, block := range blocks {
		slots[i] = block.Slot
	}
	return slots
}

// recentFor gives the recent slots when the transaction names the program that
// asks for them, and saves the others the work.
func (b *Bank) recentFor(tx *Transaction, at *Block) []uint64 {
	if !slices.Contains(tx.Keys, solana.AddressLookupTableProgramID) {
		return nil
	}
	return b.recentSlots(at)
}

// RecentSlot gives the number of blocks from a slot with a block to the open
// one, 1 for its parent, and whether it is one of the newest 512. It is for the
// lookup table program alone: a transaction that does not name that program
// finds no slot recent.
func (v *Invocation) RecentSlot(slot uint64) (blocks int, recent bool) {
	i, recent := slices.BinarySearch(v.x.recent, slot)
	return len(v.x.recent) - i, recent
}

// sanitizeLookups checks that the lookups of a message are whole, and gives how
// many accounts they load.
func sanitizeLookups(m *solana.Message) (loaded int, err error) {
	for _, lookup := range m.AddressTableLookups {
		n := len(lookup.WritableIndexes) + len(lookup.ReadonlyIndexes)
		if n == 0 {
			return 0, refused(SanitizeFailure)
		}
		loaded += n
	}
	const most = 256 // an index is one byte on the wire
	if len(m.AccountKeys)+loaded > most {
		return 0, refused(SanitizeFailure)
	}
	return loaded, nil
}

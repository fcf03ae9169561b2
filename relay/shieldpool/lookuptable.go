package shieldpool

import (
	"encoding/binary"
	"fmt"

	"github.com/gagliardetto/solana-go"
)

const (
	// lookupTableHeader is the number of bytes before the addresses of a lookup table account.
	// lookupTableTag is the value of the first four bytes (address-lookup-table program).
	lookupTableHeader = 56
	lookupTableTag    = 1
)

// LookupTable is an address lookup table on the chain that shortens the relay's
// transactions.
type LookupTable struct {
	Address   solana.PublicKey
	Addresses solana.PublicKeySlice
}

// Constant returns the addresses that every transaction of the pool contains. The relay's lookup
// table has to contain them.
func (p *Pool) Constant() solana.PublicKeySlice {
	return solana.PublicKeySlice{p.Address, p.MerkleTree, p.Treasury, solana.SystemProgramID}
}

// ParseLookupTable decodes an address lookup table account. active is false once the deactivation
// of the table has started.
func ParseLookupTable(address solana.PublicKey, data []byte) (t LookupTable, active bool, err error) {
	switch {
	case len(data) < lookupTableHeader || (len(data)-lookupTableHeader)%32 != 0:
		return t, false, fmt.Errorf("lookup table has %d bytes, expected %d and a multiple of 32", len(data), lookupTableHeader)
	case binary.LittleEndian.Uint32(data) != lookupTableTag:
		return t, false, fmt.Errorf("lookup table begins with %d, expected %d (initialised)", binary.LittleEndian.Uint32(data), lookupTableTag)
	}
	t.Address = address
	for at := lookupTableHeader; at < len(data); at += 32 {
		t.Addresses = append(t.Addresses, solana.PublicKeyFromBytes(data[at:at+32]))
	}
	const notDeactivated = ^uint64(0)
	return t, binary.LittleEndian.Uint64(data[4:]) == notDeactivated, nil
}

// Package layout reads and writes an address lookup table as its program
// stores it: 56 bytes of header, integers little-endian, and behind them up to
// 256 addresses of 32 bytes.
package layout

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/gagliardetto/solana-go"
)

const (
	// HeaderSize is where the addresses begin, in bytes.
	HeaderSize = 56
	// MaxAddresses is the most that one table holds.
	MaxAddresses = 256
	// Never is the deactivation slot of a table that is active.
	Never uint64 = math.MaxUint64
	// RecentSlots is the number of blocks for which a slot counts as recent, and
	// for which a deactivated table still serves.
	RecentSlots = 512
)

// Where the fields of the header are.
const (
	kindAt       = 0
	deactivation = 4
	lastExtended = 12
	lastStart    = 20
	authorityTag = 21
	authorityAt  = 22
	kindTable    = 1
)

// What data can be instead of a table.
var (
	// ErrUninitialized: the data is a table's that was never made.
	ErrUninitialized = errors.New("lookup table: not initialised")
	// ErrInvalid: the data is no table's.
	ErrInvalid = errors.New("lookup table: not a table's data")
)

// Header is what a table holds beside its addresses.
type Header struct {
	// DeactivationSlot is when the table was deactivated, or Never.
	DeactivationSlot uint64
	// LastExtendedSlot is when addresses were added last, and LastExtendedStart
	// the index of the first of them.
	LastExtendedSlot  uint64
	LastExtendedStart uint8
	// Authority may change the table; nil when it is frozen.
	Authority *solana.PublicKey
}

// Parse reads a header from the first HeaderSize bytes of a table of size bytes.
// The error is ErrUninitialized or wraps ErrInvalid.
func Parse(header []byte, size int) (*Header, error) {
	switch {
	case len(header) < HeaderSize:
		return nil, fmt.Errorf("%w: got %d bytes of header, want %d", ErrInvalid, len(header), HeaderSize)
	case binary.LittleEndian.Uint32(header[kindAt:]) == 0:
		return nil, ErrUninitialized
	case binary.LittleEndian.Uint32(header[kindAt:]) != kindTable:
		return nil, fmt.Errorf("%w: unknown kind", ErrInvalid)
	case (size-HeaderSize)%solana.PublicKeyLength != 0:
		return nil, fmt.Errorf("%w: %d bytes of addresses are no multiple of %d", ErrInvalid, size-HeaderSize, solana.PublicKeyLength)
	case header[authorityTag] > 1:
		return nil, fmt.Errorf("%w: authority tag is %d, want 0 or 1", ErrInvalid, header[authorityTag])
	}
	h := &Header{
		DeactivationSlot:  binary.LittleEndian.Uint64(header[deactivation:]),
		LastExtendedSlot:  binary.LittleEndian.Uint64(header[lastExtended:]),
		LastExtendedStart: header[lastStart],
	}
	if header[authorityTag] == 1 {
		key := solana.PublicKeyFromBytes(header[authorityAt : authorityAt+solana.PublicKeyLength])
		h.Authority = &key
	}
	return h, nil
}

// Bytes writes the header.
func (h *Header) Bytes() []byte {
	data := make([]byte, HeaderSize)
	binary.LittleEndian.PutUint32(data[kindAt:], kindTable)
	binary.LittleEndian.PutUint64(data[deactivation:], h.DeactivationSlot)
	binary.LittleEndian.PutUint64(data[lastExtended:], h.LastExtendedSlot)
	data[lastStart] = h.LastExtendedStart
	if h.Authority != nil {
		data[authorityTag] = 1
		copy(data[authorityAt:], h.Authority[:])
	}
	return data
}

// Size gives the bytes of a table with so many addresses.
func Size(addresses int) int { return HeaderSize + addresses*solana.PublicKeyLength }

// Addresses counts the addresses of a table of size bytes.
func Addresses(size int) int { return (size - HeaderSize) / solana.PublicKeyLength }

// At is where the address of an index is.
func At(index int) int { return HeaderSize + index*solana.PublicKeyLength }

// Usable counts the addresses that a transaction may look up at a slot: those
// that were added in the same slot are not among them.
func (h *Header) Usable(size int, slot uint64) int {
	if slot > h.LastExtendedSlot {
		return Addresses(size)
	}
	return int(h.LastExtendedStart)
}

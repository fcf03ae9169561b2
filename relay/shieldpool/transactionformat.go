package shieldpool

import "github.com/gagliardetto/solana-go"

// Format is the format of a transaction's bytes.
type Format string

// The formats.
const (
	// Legacy contains all addresses in full.
	Legacy Format = "legacy"
	// V0 may refer to addresses in lookup tables.
	V0 Format = "v0"
	// V1 allows larger transactions, has no lookup tables, and has the compute budget in its
	// header instead of in instructions (SIMD-0385, SIMD-0296).
	V1 Format = "v1"
)

const (
	// MaxTransactionSize is the largest size of a serialised transaction in the formats before
	// V1, in bytes (Solana: IPv6 MTU minus headers).
	MaxTransactionSize = 1232
	// MaxTransactionSizeV1 is the largest size of a serialised transaction of V1, in bytes.
	MaxTransactionSizeV1 = solana.MaxTransactionSizeV1
	// MaxAddresses is the largest number of addresses of a transaction, in every format.
	// Addresses from lookup tables count as well.
	MaxAddresses = solana.MaxAddressesV1

	// firstByteV1 is the first byte of every V1 transaction. A transaction of another format
	// starts with the number of its signatures, which is below versionBit. In v0, the first byte
	// of the message has versionBit.
	firstByteV1 = 0x81
	versionBit  = 0x80
)

// Formats returns the formats that the relay's transactions may have now, the preferred one first.
type Formats func() []Format

// OlderFormat is the format of transactions before V1: v0 with a lookup table, legacy without.
func OlderFormat(table *LookupTable) Format {
	if table != nil {
		return V0
	}
	return Legacy
}

// MaxSize is the largest serialised transaction of the format, in bytes.
func (f Format) MaxSize() int {
	if f == V1 {
		return MaxTransactionSizeV1
	}
	return MaxTransactionSize
}

// PoolInstruction is the index of the pool's instruction in the relay's transactions of the
// formats before V1: it follows the two compute-budget instructions. See Format.PoolInstruction.
const PoolInstruction = 2

// PoolInstruction is the index of the pool's instruction in the relay's transactions of the
// format.
func (f Format) PoolInstruction() int {
	if f == V1 {
		return 0
	}
	return PoolInstruction
}

// FormatOf returns the format of a serialised transaction.
func FormatOf(raw []byte) Format {
	if len(raw) == 0 {
		return Legacy
	}
	if raw[0] == firstByteV1 {
		return V1
	}
	if message := 1 + int(raw[0])*solana.SignatureLength; message < len(raw) && raw[message]&versionBit != 0 {
		return V0
	}
	return Legacy
}

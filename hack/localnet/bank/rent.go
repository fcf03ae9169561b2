package bank

import (
	"encoding/binary"
	"math"

	"github.com/gagliardetto/solana-go"
)

// Rent is the rate of rent in lamports a byte. An account's minimum balance is the rate for
// each byte of its data and for 128 bytes of overhead (SIMD-0194).
type Rent uint64

// DefaultRent is mainnet's rate since epoch 1033 (SIMD-0437).
const DefaultRent Rent = 5080

const (
	rentOverhead    = 128
	rentBurnPercent = 50
)

// Exemption is the minimum balance in lamports of an account with size bytes of data.
func (r Rent) Exemption(size uint64) uint64 { return (rentOverhead + size) * uint64(r) }

// RentExemption is the minimum balance at the default rate, for accounts at genesis.
func RentExemption(size uint64) uint64 { return DefaultRent.Exemption(size) }

// SetRent changes the rate from the next block on. On a real cluster it changes at the
// start of an epoch.
func (b *Bank) SetRent(r Rent) {
	b.leaderMu.Lock()
	defer b.leaderMu.Unlock()
	b.nextRent = r
}

// sysvar is the account of the rent sysvar: the rate, the exemption threshold of 1.0 and the
// burned share.
func (r Rent) sysvar() *Account {
	data := binary.LittleEndian.AppendUint64(nil, uint64(r))
	data = binary.LittleEndian.AppendUint64(data, math.Float64bits(1))
	data = append(data, rentBurnPercent)
	return &Account{
		Lamports: r.Exemption(uint64(len(data))), Data: data,
		Owner: solana.MustPublicKeyFromBase58("Sysvar1111111111111111111111111111111111111"),
	}
}

// underfunded reports whether a balance is too low for the account, whose balance and data
// size were before those of the transaction. An account that does not grow may stay below a
// minimum that has risen (SIMD-0392).
func (r Rent) underfunded(now, before *Account) bool {
	least := r.Exemption(uint64(len(now.Data)))
	if before.Lamports > 0 && len(now.Data) <= len(before.Data) {
		least = min(least, before.Lamports)
	}
	return now.Lamports > 0 && now.Lamports < least
}

package rpc

import (
	"encoding/binary"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
)

// The system program's instructions that move lamports or allocate accounts (SDK,
// SystemInstruction).
const (
	systemCreate         = 0
	systemTransfer       = 2
	systemCreateWithSeed = 3
	systemAllocate       = 8
	systemCreatePrefund  = 13
)

// paidForAccounts is what an account paid for accounts that the transaction created, in
// lamports. Only the system program takes lamports from a wallet, so the sum is exact. An
// address that had lamports is topped up, allocated and assigned instead of created.
func (t *transaction) paidForAccounts(payer solana.PublicKey) (lamports uint64) {
	if t.Failed {
		return 0
	}
	paid, created := map[solana.PublicKey]uint64{}, map[solana.PublicKey]bool{}
	for _, ix := range t.Instructions {
		if !ix.ProgramID.Equals(solana.SystemProgramID) || len(ix.Data) < 4 {
			continue
		}
		from, to, amount, creates := systemCall(ix)
		created[to] = created[to] || creates
		if from.Equals(payer) {
			paid[to] += amount
		}
	}
	for to, amount := range paid {
		if created[to] {
			lamports += amount
		}
	}
	return lamports
}

// systemCall decodes a call of the system program: who pays how much to whom, and whether
// that one is created. Calls that do neither pay nothing.
func systemCall(ix onchain.Instruction) (from, to solana.PublicKey, lamports uint64, creates bool) {
	tag, args := binary.LittleEndian.Uint32(ix.Data), ix.Data[4:]
	switch {
	case tag == systemAllocate && len(ix.Accounts) > 0:
		return from, ix.Accounts[0], 0, true
	case tag == systemCreateWithSeed && len(args) >= 40 && len(ix.Accounts) > 1:
		// base 32, seed with its length in 8, then lamports
		seed := binary.LittleEndian.Uint64(args[32:])
		if rest := args[40:]; uint64(len(rest)) >= 8 && seed <= uint64(len(rest))-8 {
			return ix.Accounts[0], ix.Accounts[1], binary.LittleEndian.Uint64(rest[seed:]), true
		}
	case len(args) < 8 || len(ix.Accounts) < 2:
	case tag == systemCreatePrefund: // the new account comes first
		return ix.Accounts[1], ix.Accounts[0], binary.LittleEndian.Uint64(args), true
	case tag == systemCreate, tag == systemTransfer:
		return ix.Accounts[0], ix.Accounts[1], binary.LittleEndian.Uint64(args), tag == systemCreate
	}
	return from, to, 0, false
}

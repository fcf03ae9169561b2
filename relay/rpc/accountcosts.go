package rpc

import (
	"encoding/binary"
	"slices"

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

// accountCosts returns how many lamports the payer paid for accounts that the transaction
// created, and the data sizes of these accounts. Only the system program takes lamports from a
// wallet, so the sum is exact. An address that already has lamports is topped up, allocated and
// assigned instead of created, so an allocation counts as a creation.
func (t *transaction) accountCosts(payer solana.PublicKey) (lamports uint64, sizes []uint64) {
	if t.Failed {
		return 0, nil
	}
	paid, created := map[solana.PublicKey]uint64{}, map[solana.PublicKey]uint64{}
	for _, ix := range t.Instructions {
		if !ix.ProgramID.Equals(solana.SystemProgramID) || len(ix.Data) < 4 {
			continue
		}
		c := decodeSystemCall(ix)
		if c.creates {
			created[c.to] = c.size
		}
		if c.from.Equals(payer) {
			paid[c.to] += c.lamports
		}
	}
	for to, amount := range paid {
		if size, wasCreated := created[to]; wasCreated {
			lamports += amount
			sizes = append(sizes, size)
		}
	}
	slices.Sort(sizes)
	return lamports, sizes
}

// systemCall is a call of the system program. It moves lamports from one account to another. If
// creates is set, it also creates the receiving account, with data of size bytes.
type systemCall struct {
	from, to       solana.PublicKey
	lamports, size uint64
	creates        bool
}

// decodeSystemCall decodes a call of the system program; zero if it neither pays nor creates.
func decodeSystemCall(ix onchain.Instruction) systemCall {
	tag, args := binary.LittleEndian.Uint32(ix.Data), ix.Data[4:]
	number := func(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }
	switch {
	case tag == systemAllocate && len(ix.Accounts) > 0 && len(args) >= 8:
		return systemCall{to: ix.Accounts[0], size: number(args), creates: true}
	case tag == systemCreateWithSeed && len(args) >= 40 && len(ix.Accounts) > 1:
		// Arguments: base (32 bytes), length of the seed (8), seed, lamports (8), space (8).
		seed := number(args[32:])
		if rest := args[40:]; uint64(len(rest)) >= 16 && seed <= uint64(len(rest))-16 {
			return systemCall{ix.Accounts[0], ix.Accounts[1], number(rest[seed:]), number(rest[seed+8:]), true}
		}
	case tag == systemTransfer && len(args) >= 8 && len(ix.Accounts) > 1:
		return systemCall{from: ix.Accounts[0], to: ix.Accounts[1], lamports: number(args)}
	case len(args) < 16 || len(ix.Accounts) < 2:
	case tag == systemCreatePrefund: // the new account comes first
		return systemCall{ix.Accounts[1], ix.Accounts[0], number(args), number(args[8:]), true}
	case tag == systemCreate:
		return systemCall{ix.Accounts[0], ix.Accounts[1], number(args), number(args[8:]), true}
	}
	return systemCall{}
}

package lookuptable

import (
	"encoding/binary"
	"fmt"

	"github.com/gagliardetto/solana-go"
)

// MostInOne is the number of addresses that one ExtendLookupTable can add
// within a transaction of two signatures.
const MostInOne = 20

// Address gives the address of the table that belongs to an authority and a
// slot, and its bump. The slot must be recent when the table is made.
func Address(authority solana.PublicKey, recentSlot uint64) (solana.PublicKey, uint8, error) {
	return solana.FindProgramAddress([][]byte{
		authority[:], binary.LittleEndian.AppendUint64(nil, recentSlot),
	}, solana.AddressLookupTableProgramID)
}

// Create builds the instruction that makes an empty table, and gives its
// address.
func Create(authority, payer solana.PublicKey, recentSlot uint64) (solana.Instruction, solana.PublicKey, error) {
	address, bump, err := Address(authority, recentSlot)
	if err != nil {
		return nil, solana.PublicKey{}, fmt.Errorf("derive the lookup table's address: %w", err)
	}
	return instruction(tagCreate, append(binary.LittleEndian.AppendUint64(nil, recentSlot), bump),
		solana.Meta(address).WRITE(), solana.Meta(authority), solana.Meta(payer).SIGNER().WRITE(),
		solana.Meta(solana.SystemProgramID)), address, nil
}

// Extend builds the instruction that adds addresses to a table, usable from
// the next slot on.
func Extend(table, authority, payer solana.PublicKey, addresses []solana.PublicKey) solana.Instruction {
	data := binary.LittleEndian.AppendUint64(nil, uint64(len(addresses)))
	for _, key := range addresses {
		data = append(data, key[:]...)
	}
	return instruction(tagExtend, data, solana.Meta(table).WRITE(), solana.Meta(authority).SIGNER(),
		solana.Meta(payer).SIGNER().WRITE(), solana.Meta(solana.SystemProgramID))
}

// Freeze builds the instruction after which nobody can change a table.
func Freeze(table, authority solana.PublicKey) solana.Instruction {
	return instruction(tagFreeze, nil, solana.Meta(table).WRITE(), solana.Meta(authority).SIGNER())
}

// Deactivate builds the instruction after which a table serves for 512 blocks
// more.
func Deactivate(table, authority solana.PublicKey) solana.Instruction {
	return instruction(tagDeactivate, nil, solana.Meta(table).WRITE(), solana.Meta(authority).SIGNER())
}

// Close builds the instruction that gives the lamports of a deactivated table
// to a recipient.
func Close(table, authority, recipient solana.PublicKey) solana.Instruction {
	return instruction(tagClose, nil, solana.Meta(table).WRITE(), solana.Meta(authority).SIGNER(),
		solana.Meta(recipient).WRITE())
}

func instruction(tag uint32, args []byte, accounts ...*solana.AccountMeta) solana.Instruction {
	return solana.NewInstruction(solana.AddressLookupTableProgramID, accounts,
		append(binary.LittleEndian.AppendUint32(nil, tag), args...))
}

// Package lookuptable is the Address Lookup Table program of the local chain,
// with the instructions, accounts and errors of the real one, and builders for
// its instructions. Package bank looks addresses up.
package lookuptable

import (
	"encoding/binary"
	"errors"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/lookuptable/layout"
)

// ErrReadonlyDataModified is the program's own error for a table that the
// instruction passes as read-only.
const ErrReadonlyDataModified bank.CustomError = 10

// errSeeds: no address derives from the seeds that were given.
const errSeeds bank.CustomError = 1

// The tags of the instructions, of four bytes.
const (
	tagCreate     = 0
	tagFreeze     = 1
	tagExtend     = 2
	tagDeactivate = 3
	tagClose      = 4

	tagSize = 4
	// maxData is the most data that an instruction may have.
	maxData = bank.MaxTransactionSize
	// maxNew is the most addresses that fit in it.
	maxNew = (maxData - tagSize - 8) / solana.PublicKeyLength

	// units is what an instruction costs beside those that it invokes: a model.
	units = 3_000
)

// Program is the Address Lookup Table program.
func Program() bank.Program {
	return bank.Program{ID: solana.AddressLookupTableProgramID, Account: bank.ProgramAccount(), Process: process}
}

// Table is the account of a table, to be put on the chain at genesis. All its
// addresses are usable from slot 1 on; nobody can change it.
func Table(addresses []solana.PublicKey) bank.Account {
	header := layout.Header{DeactivationSlot: layout.Never}
	data := header.Bytes()
	for _, key := range addresses {
		data = append(data, key[:]...)
	}
	return bank.Account{
		Lamports: bank.RentExemption(uint64(len(data))), Data: data, Owner: solana.AddressLookupTableProgramID,
	}
}

func process(v *bank.Invocation) error {
	if len(v.Data) < tagSize || len(v.Data) > maxData {
		return bank.ErrInvalidInstructionData
	}
	if err := v.Consume(units); err != nil {
		return err
	}
	args := v.Data[tagSize:]
	switch binary.LittleEndian.Uint32(v.Data) {
	case tagCreate:
		const size = 9
		if len(args) < size {
			return bank.ErrInvalidInstructionData
		}
		v.Log("Program log: Instruction: CreateLookupTable")
		return create(v, binary.LittleEndian.Uint64(args), args[size-1])
	case tagFreeze:
		v.Log("Program log: Instruction: FreezeLookupTable")
		return freeze(v)
	case tagExtend:
		addresses, ok := newAddresses(args)
		if !ok {
			return bank.ErrInvalidInstructionData
		}
		v.Log("Program log: Instruction: ExtendLookupTable")
		return extend(v, addresses)
	case tagDeactivate:
		v.Log("Program log: Instruction: DeactivateLookupTable")
		return deactivate(v)
	case tagClose:
		v.Log("Program log: Instruction: CloseLookupTable")
		return closeTable(v)
	default:
		return bank.ErrInvalidInstructionData
	}
}

// newAddresses reads the addresses of ExtendLookupTable as their bytes.
func newAddresses(args []byte) (addresses []byte, ok bool) {
	const count = 8
	if len(args) < count {
		return nil, false
	}
	n := binary.LittleEndian.Uint64(args)
	if n > maxNew || len(args)-count < int(n)*solana.PublicKeyLength {
		return nil, false
	}
	return args[count : count+n*solana.PublicKeyLength], true
}

// create makes an empty table at the address that belongs to its authority and
// a recent slot: accounts table, authority, payer, system program.
func create(v *bank.Invocation, recentSlot uint64, bump uint8) error {
	var table, authority, payer *bank.AccountRef
	if err := take(v, &table, &authority, &payer); err != nil {
		return err
	}
	if !payer.IsSigner() {
		return refuse(v, bank.ErrMissingRequiredSignature, "Payer account must be a signer")
	}
	if _, recent := v.RecentSlot(recentSlot); !recent {
		v.Log("Program log: %d is not a recent slot", recentSlot)
		return bank.ErrInvalidInstructionData
	}
	of := authority.Key()
	seeds := [][]byte{of[:], binary.LittleEndian.AppendUint64(nil, recentSlot), {bump}}
	address, err := solana.CreateProgramAddress(seeds, v.ProgramID)
	if err != nil {
		return errSeeds
	}
	if address != table.Key() {
		v.Log("Program log: Table address must match derived address: %s", address)
		return bank.ErrInvalidArgument
	}
	if table.Owner() == v.ProgramID {
		return nil // it is there already
	}
	if err := payRent(v, table, payer, layout.HeaderSize); err != nil {
		return err
	}
	if err := v.Invoke(system.NewAllocateInstruction(layout.HeaderSize, address).Build(), seeds); err != nil {
		return err
	}
	if err := v.Invoke(system.NewAssignInstruction(v.ProgramID, address).Build(), seeds); err != nil {
		return err
	}
	header := layout.Header{DeactivationSlot: layout.Never, Authority: &of}
	return table.SetData(header.Bytes())
}

// payRent moves to the table what it lacks of the rent for its size.
func payRent(v *bank.Invocation, table, payer *bank.AccountRef, size int) error {
	rent := bank.RentExemption(uint64(size)) //nolint:gosec // a size is not negative
	missing := rent - min(rent, table.Lamports())
	if missing == 0 {
		return nil
	}
	return v.Invoke(system.NewTransferInstruction(missing, payer.Key(), table.Key()).Build())
}

// extend adds addresses: accounts table, authority and, when rent is missing,
// payer and system program.
func extend(v *bank.Invocation, addresses []byte) error {
	table, header, err := open(v, "Lookup table is frozen")
	if err != nil {
		return err
	}
	n := layout.Addresses(table.Length())
	switch added := len(addresses) / solana.PublicKeyLength; {
	case header.DeactivationSlot != layout.Never:
		return refuse(v, bank.ErrInvalidArgument, "Deactivated tables cannot be extended")
	case n >= layout.MaxAddresses:
		return refuse(v, bank.ErrInvalidArgument, "Lookup table is full and cannot contain more addresses")
	case added == 0:
		return refuse(v, bank.ErrInvalidInstructionData, "Must extend with at least one address")
	case n+added > layout.MaxAddresses:
		v.Log("Program log: Extended lookup table length %d would exceed max capacity of %d", n+added, layout.MaxAddresses)
		return bank.ErrInvalidInstructionData
	}
	if header.LastExtendedSlot != v.Slot() {
		header.LastExtendedSlot, header.LastExtendedStart = v.Slot(), uint8(n) //nolint:gosec // below MaxAddresses
	}
	if !table.IsWritable() {
		return ErrReadonlyDataModified
	}
	old := table.Data()[layout.HeaderSize:]
	data := append(append(header.Bytes(), old...), addresses...)
	if err := table.SetData(data); err != nil {
		return err
	}
	if table.Lamports() >= bank.RentExemption(uint64(len(data))) {
		return nil
	}
	const payerAt = 2
	payer, err := v.Account(payerAt)
	if err != nil {
		return err
	}
	if !payer.IsSigner() {
		return refuse(v, bank.ErrMissingRequiredSignature, "Payer account must be a signer")
	}
	return payRent(v, table, payer, len(data))
}

// freeze takes the table's authority away: accounts table, authority.
func freeze(v *bank.Invocation) error {
	table, header, err := open(v, "Lookup table is already frozen")
	switch {
	case err != nil:
		return err
	case header.DeactivationSlot != layout.Never:
		return refuse(v, bank.ErrInvalidArgument, "Deactivated tables cannot be frozen")
	case layout.Addresses(table.Length()) == 0:
		return refuse(v, bank.ErrInvalidInstructionData, "Empty lookup tables cannot be frozen")
	}
	header.Authority = nil
	return setHeader(table, header)
}

// deactivate ends the use of the table once its slot is not recent any more:
// accounts table, authority.
func deactivate(v *bank.Invocation) error {
	table, header, err := open(v, "Lookup table is frozen")
	switch {
	case err != nil:
		return err
	case header.DeactivationSlot != layout.Never:
		return refuse(v, bank.ErrInvalidArgument, "Lookup table is already deactivated")
	}
	header.DeactivationSlot = v.Slot()
	return setHeader(table, header)
}

// closeTable gives the lamports of a table away that was deactivated long ago:
// accounts table, authority, recipient.
func closeTable(v *bank.Invocation) error {
	table, header, err := open(v, "Lookup table is frozen")
	if err != nil {
		return err
	}
	const recipientAt = 2
	recipient, err := v.Account(recipientAt)
	if err != nil {
		return err
	}
	if recipient.Key() == table.Key() {
		return refuse(v, bank.ErrInvalidArgument, "Lookup table cannot be the recipient of reclaimed lamports")
	}
	if header.DeactivationSlot == layout.Never {
		return refuse(v, bank.ErrInvalidArgument, "Lookup table is not deactivated")
	}
	blocks, recent := v.RecentSlot(header.DeactivationSlot)
	if now := header.DeactivationSlot == v.Slot(); now || recent {
		if now {
			blocks = 0
		}
		v.Log("Program log: Table cannot be closed until it's fully deactivated in %d blocks", layout.RecentSlots+1-blocks)
		return bank.ErrInvalidArgument
	}
	if !table.IsWritable() {
		return ErrReadonlyDataModified
	}
	lamports := table.Lamports()
	if err := table.SubLamports(lamports); err != nil {
		return err
	}
	if err := recipient.AddLamports(lamports); err != nil {
		return err
	}
	return table.SetData(nil)
}

// open reads the table of an instruction that begins with table and authority.
func open(v *bank.Invocation, frozen string) (*bank.AccountRef, *layout.Header, error) {
	var table, authority *bank.AccountRef
	if err := take(v, &table); err != nil {
		return nil, nil, err
	}
	if table.Owner() != v.ProgramID {
		return nil, nil, refuse(v, bank.ErrInvalidAccountOwner, "Lookup table owner should be the Address Lookup Table program")
	}
	if err := take(v, &table, &authority); err != nil {
		return nil, nil, err
	}
	if !authority.IsSigner() {
		return nil, nil, refuse(v, bank.ErrMissingRequiredSignature, "Authority account must be a signer")
	}
	data := table.Data()
	header, err := layout.Parse(data[:min(len(data), layout.HeaderSize)], len(data))
	switch {
	case errors.Is(err, layout.ErrUninitialized):
		return nil, nil, bank.ErrUninitializedAccount
	case err != nil:
		return nil, nil, bank.ErrInvalidAccountData
	case header.Authority == nil:
		return nil, nil, refuse(v, bank.ErrImmutable, frozen)
	case *header.Authority != authority.Key():
		return nil, nil, refuse(v, bank.ErrIncorrectAuthority, "Incorrect lookup table authority")
	}
	return table, header, nil
}

func setHeader(table *bank.AccountRef, header *layout.Header) error {
	return table.SetData(append(header.Bytes(), table.Data()[layout.HeaderSize:]...))
}

// take gives the instruction's first accounts.
func take(v *bank.Invocation, to ...**bank.AccountRef) error {
	for i, t := range to {
		var err error
		if *t, err = v.Account(i); err != nil {
			return err
		}
	}
	return nil
}

func refuse(v *bank.Invocation, err error, reason string) error {
	v.Log("Program log: " + reason)
	return err
}

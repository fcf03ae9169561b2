package bank

import (
	"encoding/binary"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
)

// The system program's instructions that this chain knows, and its errors.
const (
	systemCreateAccount = 0
	systemAssign        = 1
	systemTransfer      = 2
	systemAllocate      = 8

	errAccountAlreadyInUse       CustomError = 0
	errResultWithNegativeLamport CustomError = 1
	errInvalidDataLength         CustomError = 3
)

// SystemProgram is the program that owns wallets. It creates accounts, moves
// lamports, allocates data and assigns owners. Its instructions with seeds and
// nonces are not part of this chain and fail with InvalidInstructionData.
func SystemProgram() Program {
	return Program{
		ID:      solana.SystemProgramID,
		Builtin: true,
		Account: nativeAccount("system_program"),
		Process: processSystem,
	}
}

func processSystem(v *Invocation) error {
	if err := v.Consume(builtinUnits); err != nil {
		return err
	}
	if len(v.Data) < 4 {
		return ErrInvalidInstructionData
	}
	tag, args := binary.LittleEndian.Uint32(v.Data), v.Data[4:]
	if least, known := map[uint32]int{systemCreateAccount: 48, systemAssign: 32, systemTransfer: 8, systemAllocate: 8}[tag]; !known || len(args) < least {
		return ErrInvalidInstructionData
	}
	account, err := v.Account(0)
	if err != nil {
		return err
	}
	switch tag {
	case systemCreateAccount:
		return createAccount(v, binary.LittleEndian.Uint64(args), binary.LittleEndian.Uint64(args[8:]), solana.PublicKeyFromBytes(args[16:48]))
	case systemAssign:
		return assign(v, account, solana.PublicKeyFromBytes(args[:32]))
	case systemTransfer:
		return transfer(v, binary.LittleEndian.Uint64(args))
	default:
		return allocate(v, account, binary.LittleEndian.Uint64(args))
	}
}

func createAccount(v *Invocation, lamports, space uint64, owner solana.PublicKey) error {
	to, err := v.Account(1)
	if err != nil {
		return err
	}
	if to.Lamports() > 0 {
		v.Log("Create Account: account Address { address: %s, base: None } already in use", to.Key())
		return errAccountAlreadyInUse
	}
	if err := allocate(v, to, space); err != nil {
		return err
	}
	if err := assign(v, to, owner); err != nil {
		return err
	}
	return transfer(v, lamports)
}

func allocate(v *Invocation, account *AccountRef, space uint64) error {
	if !account.IsSigner() {
		v.Log("Allocate: 'to' account Address { address: %s, base: None } must sign", account.Key())
		return ErrMissingRequiredSignature
	}
	if account.Length() > 0 || account.Owner() != solana.SystemProgramID {
		v.Log("Allocate: account Address { address: %s, base: None } already in use", account.Key())
		return errAccountAlreadyInUse
	}
	if space > MaxAccountData {
		v.Log("Allocate: requested %d, max allowed %d", space, MaxAccountData)
		return errInvalidDataLength
	}
	return account.SetData(make([]byte, space))
}

func assign(v *Invocation, account *AccountRef, owner solana.PublicKey) error {
	if account.Owner() == owner {
		return nil
	}
	if !account.IsSigner() {
		v.Log("Assign: account Address { address: %s, base: None } must sign", account.Key())
		return ErrMissingRequiredSignature
	}
	return account.SetOwner(owner)
}

// transfer moves lamports from the instruction's first account to its second.
func transfer(v *Invocation, lamports uint64) error {
	accounts, err := v.Take(2)
	if err != nil {
		return err
	}
	from, to := accounts[0], accounts[1]
	if !from.IsSigner() {
		v.Log("Transfer: `from` account %s must sign", from.Key())
		return ErrMissingRequiredSignature
	}
	if from.Length() > 0 {
		v.Log("Transfer: `from` must not carry data")
		return ErrInvalidArgument
	}
	if lamports > from.Lamports() {
		v.Log("Transfer: insufficient lamports %d, need %d", from.Lamports(), lamports)
		return errResultWithNegativeLamport
	}
	return from.MoveLamports(to, lamports)
}

// CreateAccount invokes the system program to create a rent-exempt account with
// size bytes of zeros and a given owner, at the program address of the seeds. The
// payer pays the rent. If the address already has lamports, which anybody can send,
// CreateAccount adds the missing rent, allocates and assigns instead.
func (v *Invocation) CreateAccount(payer, account *AccountRef, size uint64, owner solana.PublicKey, seeds [][]byte) error {
	rent, at := v.Rent().Exemption(size), account.Key()
	if account.Lamports() == 0 {
		return v.Invoke(system.NewCreateAccountInstruction(rent, size, owner, payer.Key(), at).Build(), seeds)
	}
	if missing := rent - min(rent, account.Lamports()); missing > 0 {
		if err := v.Invoke(system.NewTransferInstruction(missing, payer.Key(), at).Build()); err != nil {
			return err
		}
	}
	if err := v.Invoke(system.NewAllocateInstruction(size, at).Build(), seeds); err != nil {
		return err
	}
	return v.Invoke(system.NewAssignInstruction(owner, at).Build(), seeds)
}

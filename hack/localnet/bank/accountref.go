package bank

import (
	"math"
	"slices"

	"github.com/gagliardetto/solana-go"
)

// AccountRef is an account as one instruction may use it. Its setters enforce
// the chain's rules: a program changes only accounts that it owns and that the
// instruction passes as writable. A program may also add lamports to writable
// accounts of other owners.
type AccountRef struct {
	invocation *Invocation
	rights     instructionAccount
	work       *workAccount
}

// Key is the account's address.
func (a *AccountRef) Key() solana.PublicKey { return a.work.key }

// IsSigner reports whether the account signed, or the caller signs for it.
func (a *AccountRef) IsSigner() bool { return a.rights.signer }

// IsWritable reports whether the instruction passes the account as writable.
func (a *AccountRef) IsWritable() bool { return a.rights.writable }

// Lamports is the balance.
func (a *AccountRef) Lamports() uint64 { return a.work.Lamports }

// Owner is the program that owns the account.
func (a *AccountRef) Owner() solana.PublicKey { return a.work.Owner }

// Length is the size of the account's data in bytes.
func (a *AccountRef) Length() int { return len(a.work.Data) }

// Data is the account's data, not to be changed.
func (a *AccountRef) Data() []byte {
	a.work.applyDeferred()
	return a.work.Data
}

func (a *AccountRef) owned() bool { return a.work.Owner == a.invocation.ProgramID }

// AddLamports credits the account.
func (a *AccountRef) AddLamports(n uint64) error {
	if n > math.MaxUint64-a.work.Lamports {
		return ErrArithmeticOverflow
	}
	if !a.rights.writable {
		return ErrReadonlyLamportChange
	}
	a.work.Lamports += n
	return nil
}

// SubLamports debits the account, which the running program must own.
func (a *AccountRef) SubLamports(n uint64) error {
	if n > a.work.Lamports {
		return ErrArithmeticOverflow
	}
	if !a.owned() {
		return ErrExternalAccountLamportSpend
	}
	if !a.rights.writable {
		return ErrReadonlyLamportChange
	}
	a.work.Lamports -= n
	return nil
}

// MoveLamports debits the account, which the running program must own, and credits another.
func (a *AccountRef) MoveLamports(to *AccountRef, n uint64) error {
	if err := a.SubLamports(n); err != nil {
		return err
	}
	return to.AddLamports(n)
}

// Close moves all lamports to another account. It clears data and owner, so that later
// instructions of the transaction find no account.
func (a *AccountRef) Close(to *AccountRef) error {
	if err := a.MoveLamports(to, a.Lamports()); err != nil {
		return err
	}
	if err := a.SetData(nil); err != nil {
		return err
	}
	return a.SetOwner(solana.SystemProgramID)
}

// SetData replaces the data of an account that the running program owns. The
// slice belongs to the chain afterwards.
func (a *AccountRef) SetData(data []byte) error {
	if !a.owned() && len(data) != a.Length() {
		return ErrAccountDataSizeChanged
	}
	if err := a.checkChangeable(); err != nil {
		return err
	}
	if len(data) > MaxAccountData {
		return ErrInvalidRealloc
	}
	a.work.Data, a.work.deferred = data, nil
	return nil
}

// SetDataLater is SetData with the result of compute, of the present length, once the data
// is read or committed. A simulation that does not read the data never calls compute.
func (a *AccountRef) SetDataLater(compute func() []byte) error {
	if err := a.checkChangeable(); err != nil {
		return err
	}
	a.work.deferred = compute
	return nil
}

// checkChangeable returns the error of a data change that the rules forbid, or nil.
func (a *AccountRef) checkChangeable() error {
	if !a.rights.writable {
		return ErrReadonlyDataModified
	}
	if !a.owned() {
		return ErrExternalAccountDataModified
	}
	return nil
}

// SetOwner transfers the account to another program. Its data must be all zero.
func (a *AccountRef) SetOwner(owner solana.PublicKey) error {
	if !a.owned() || !a.rights.writable || slices.ContainsFunc(a.Data(), func(b byte) bool { return b != 0 }) {
		return ErrModifiedProgramID
	}
	a.work.Owner = owner
	return nil
}

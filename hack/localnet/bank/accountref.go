package bank

import (
	"math"

	"github.com/gagliardetto/solana-go"
)

// AccountRef is an account as one instruction may use it. Its setters refuse
// what the chain refuses: a program changes only accounts that it owns and
// that the instruction passes as writable; lamports may also be added to
// accounts of others.
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

// Data is the account's data, not to be changed in place.
func (a *AccountRef) Data() []byte { return a.work.Data }

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

// SetData replaces the data of an account that the running program owns. The
// slice belongs to the chain afterwards.
func (a *AccountRef) SetData(data []byte) error {
	switch {
	case !a.owned() && len(data) != len(a.work.Data):
		return ErrAccountDataSizeChanged
	case !a.rights.writable:
		return ErrReadonlyDataModified
	case !a.owned():
		return ErrExternalAccountDataModified
	case len(data) > MaxAccountData:
		return ErrInvalidRealloc
	}
	a.work.Data = data
	return nil
}

// SetOwner gives the account to another program. Its data must be all zero.
func (a *AccountRef) SetOwner(owner solana.PublicKey) error {
	if !a.owned() || !a.rights.writable {
		return ErrModifiedProgramID
	}
	for _, b := range a.work.Data {
		if b != 0 {
			return ErrModifiedProgramID
		}
	}
	a.work.Owner = owner
	return nil
}

package txmgr

import (
	"context"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

// reserveWithTip reserves the cost of a transaction with its tip. A tip holds no transaction back:
// when it has no room, or the caps or the payers do not allow it, reserveWithTip reserves nothing,
// drops the tip and returns false.
func (m *Manager) reserveWithTip(ctx context.Context, t *transaction) bool {
	if t.hasRoom() && m.reserve(ctx, t) == nil {
		return true
	}
	t.dropTip()
	return false
}

// hasRoom reports whether the transaction is small enough together with its tip. A draft that
// cannot be built at all fails later, when the attempt is made.
func (t *transaction) hasRoom() bool {
	if t.draft.Fits != nil {
		return t.draft.Fits(t.compute)
	}
	anyPayer := solana.PublicKey{0: 0xfe} // the size is the same for every payer
	tx, err := t.draft.Build(anyPayer, t.compute, solana.Hash{})
	if err != nil {
		return false
	}
	tx.Signatures = make([]solana.Signature, tx.Message.Header.NumRequiredSignatures)
	raw, err := tx.MarshalBinary()
	return err == nil && len(raw) <= t.compute.Format.MaxSize()
}

// dropTip makes the transaction one without a lane.
func (t *transaction) dropTip() { t.lane, t.compute.Tip = "", shieldpool.Tip{} }

// causedByTip reports whether an error of a transaction with a tip is that of the tip: its transfer
// failed, or left the tip's account below its minimum balance.
func causedByTip(tx *solana.Transaction, err *shieldpool.TransactionError) bool {
	last := len(tx.Message.Instructions) - 1
	switch {
	case last < 0 || err == nil:
		return false
	case err.Kind == "InstructionError":
		return err.Instruction == last
	default:
		tip := tx.Message.Instructions[last]
		return err.Kind == "InsufficientFundsForRent" && len(tip.Accounts) > 1 && err.Account == int(tip.Accounts[1])
	}
}

// failsByTip reports whether an error of a simulation is that of the transaction's tip.
func (m *Manager) failsByTip(t *transaction, failure *shieldpool.TransactionError) bool {
	tx, err := t.draft.Build(t.payer.PublicKey(), t.compute, solana.Hash{})
	return err == nil && causedByTip(tx, failure)
}

// classOf returns the class of the failure of an attempt. A failure of its tip is transient: the
// next attempt is simulated with its tip, and offers none if that fails.
func (m *Manager) classOf(a *Attempt, failure *shieldpool.TransactionError) shieldpool.Class {
	if a.Tip > 0 {
		if tx, err := solana.TransactionFromBytes(a.Raw); err == nil && causedByTip(tx, failure) {
			return shieldpool.ClassTransient
		}
	}
	return m.Class(a.Purpose, a.Format(), failure)
}

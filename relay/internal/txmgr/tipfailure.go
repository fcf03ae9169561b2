package txmgr

import (
	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

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

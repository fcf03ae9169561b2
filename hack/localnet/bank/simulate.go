package bank

import (
	"crypto/sha256"

	"github.com/gagliardetto/solana-go"
)

// Simulation is what a transaction would do.
type Simulation struct {
	// Slot is the slot that it was simulated on.
	Slot uint64
	Meta Meta
	// Blockhash and LastValidHeight are the replacement, when one was asked for.
	Blockhash       solana.Hash
	LastValidHeight uint64

	accounts []workAccount
	view     View
}

// Account gives an account as the transaction would leave it; nil when there
// would be none. Like View it serves only inside the function that received it.
func (s *Simulation) Account(key solana.PublicKey) *Account {
	for i := range s.accounts {
		if s.accounts[i].key != key {
			continue
		}
		if s.accounts[i].Lamports == 0 {
			return nil
		}
		return &s.accounts[i].Account
	}
	return s.view.Account(key)
}

// Simulate runs a transaction on the state at a commitment level, changes
// nothing and calls fn with the result. Signatures are not looked at. With
// replaceBlockhash the level's latest blockhash takes the place of its own.
func (b *Bank) Simulate(tx *Transaction, c Commitment, replaceBlockhash bool, fn func(*Simulation)) {
	b.Read(c, func(v View) {
		s := &Simulation{Slot: v.Slot(), view: v}
		if replaceBlockhash {
			s.Blockhash, s.LastValidHeight = v.LatestBlockhash()
			tx = tx.withBlockhash(s.Blockhash)
		}
		out := b.execute(tx, v.block)
		s.Meta, s.accounts = out.meta, out.accounts
		fn(s)
	})
}

// withBlockhash gives a copy with another blockhash, fit for simulation alone:
// its bytes stay what they were.
func (t *Transaction) withBlockhash(hash solana.Hash) *Transaction {
	message := *t.Message
	message.RecentBlockhash = hash
	out := *t
	out.Message = &message
	out.hash = [sha256.Size]byte{}
	return &out
}

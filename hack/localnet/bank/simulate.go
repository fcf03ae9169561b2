package bank

import (
	"crypto/sha256"

	"github.com/gagliardetto/solana-go"
)

// Simulation is what a transaction would do. It is for one goroutine.
type Simulation struct {
	// Slot is the slot that it was simulated on.
	Slot uint64
	Meta Meta
	// Blockhash and LastValidHeight are the replacement, when one was asked for.
	Blockhash       solana.Hash
	LastValidHeight uint64

	accounts []workAccount
	bank     *Bank
}

// Account gives an account as the transaction would leave it; nil when there
// would be none.
func (s *Simulation) Account(key solana.PublicKey) *Account {
	for i := range s.accounts {
		if s.accounts[i].key != key {
			continue
		}
		if s.accounts[i].lamports == 0 {
			return nil
		}
		s.accounts[i].settle()
		return s.accounts[i].account()
	}
	s.bank.mu.RLock()
	defer s.bank.mu.RUnlock()
	return s.bank.accounts.at(key, s.Slot).account()
}

// Simulate runs a transaction on the state that the node has at a commitment
// level, changes nothing and calls fn with the result. Signatures are not
// looked at. With replaceBlockhash the level's latest blockhash takes the place
// of its own. Simulations run beside each other and hold up nothing else.
func (n Node) Simulate(tx *Transaction, c Commitment, replaceBlockhash bool, fn func(*Simulation)) {
	s := &Simulation{bank: n.bank}
	var job *job
	var refusal *TransactionError
	n.Read(c, func(v View) {
		s.Slot = v.Slot()
		if replaceBlockhash {
			s.Blockhash, s.LastValidHeight = v.LatestBlockhash()
			tx = tx.withBlockhash(s.Blockhash)
		}
		job, refusal = n.bank.prepare(tx, v.block)
	})
	out := unprocessable(refusal)
	if refusal == nil {
		out = job.run()
	}
	s.Meta, s.accounts = out.meta, out.accounts
	fn(s)
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

package bank

import (
	"crypto/sha256"

	"github.com/gagliardetto/solana-go"
)

// Simulation is the result of a simulated transaction.
type Simulation struct {
	// Slot is the slot of the state that the simulation ran on.
	Slot uint64
	Meta Meta
	// Blockhash and LastValidHeight describe the replacement blockhash. They are
	// zero without a replacement.
	Blockhash       solana.Hash
	LastValidHeight uint64
}

// Simulate runs a transaction on the node's state at a commitment level and
// changes nothing. Signatures are not verified. replaceBlockhash replaces the
// transaction's blockhash with the level's latest. Simulations run concurrently and
// block no other call.
func (n Node) Simulate(tx *Transaction, c Commitment, replaceBlockhash bool) *Simulation {
	s := &Simulation{}
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
	s.Meta = out.meta
	return s
}

// withBlockhash returns a copy with another blockhash, for simulation only: the
// serialized bytes keep the old blockhash.
func (t *Transaction) withBlockhash(hash solana.Hash) *Transaction {
	message := *t.Message
	message.RecentBlockhash = hash
	out := *t
	out.Message = &message
	out.hash = [sha256.Size]byte{}
	return &out
}

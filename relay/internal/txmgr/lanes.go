package txmgr

import (
	"context"

	"github.com/gagliardetto/solana-go"
)

// Lane is a service that puts transactions on the chain for a tip. A transaction with a lane's tip
// goes to the submit endpoints as every other one does, and to the lane besides.
type Lane struct {
	Name string
	// Accounts receive tips; each transaction tips one of them. There is at least one.
	Accounts []solana.PublicKey
	// MinTip is a job's first tip, in lamports. Each tip in vain doubles the next, up to MaxTip.
	MinTip, MaxTip uint64
	// Always is true if all transactions pay the tip, not only urgent ones.
	Always bool
}

// sendLane sends an attempt to its lane, if it has one.
func (m *Manager) sendLane(ctx context.Context, a *Attempt, first bool) {
	if a.Lane != "" {
		m.Chain.SendLane(context.WithoutCancel(ctx), a.Lane, a.Raw, first)
	}
}

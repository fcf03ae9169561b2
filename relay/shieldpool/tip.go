package shieldpool

import (
	"slices"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
)

// Tip is a transfer of lamports from the fee payer to a lane. It is paid only if the transaction
// succeeds.
type Tip struct {
	To       solana.PublicKey
	Lamports uint64
}

// withTip returns the instructions, followed by the transfer of the tip if there is one. The tip
// comes last, so that it changes no other instruction's index.
func (c Compute) withTip(payer solana.PublicKey, instructions []solana.Instruction) []solana.Instruction {
	if c.Tip.Lamports == 0 {
		return instructions
	}
	return append(slices.Clone(instructions), system.NewTransferInstruction(c.Tip.Lamports, payer, c.Tip.To).Build())
}

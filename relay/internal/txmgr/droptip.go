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
// cannot be built at all is told when the attempt is made.
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

package txmgr

import (
	"context"
	"fmt"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Sign builds and signs the transaction with a recent blockhash. It sets the attempt's Fee,
// but no other cost.
func Sign(ctx context.Context, chain interface {
	LatestBlockhash(ctx context.Context) (onchain.Blockhash, error)
}, build Build, payer Payer, compute shieldpool.Compute,
) (*Attempt, error) {
	hash, err := chain.LatestBlockhash(ctx)
	if err != nil {
		return nil, fmt.Errorf("read a blockhash: %w", err)
	}
	tx, err := build(payer.PublicKey(), compute, hash.Hash)
	if err != nil {
		return nil, err
	}
	message, err := tx.Message.MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	signature, err := payer.Sign(ctx, message)
	if err != nil {
		return nil, fmt.Errorf("sign transaction: %w", err)
	}
	tx.Signatures = append(tx.Signatures[:0], signature)
	raw, err := tx.MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("encode transaction: %w", err)
	}
	return &Attempt{
		Signature: signature, Raw: raw, FeePayer: payer.PublicKey(), Blockhash: hash.Hash, BlockhashSlot: hash.Slot,
		LastValidBlockHeight: hash.LastValidBlockHeight, Fee: compute.Fee(),
	}, nil
}

func (m *Manager) sign(ctx context.Context, t *transaction) (*Attempt, error) {
	began := m.Now()
	a, err := Sign(ctx, m.Chain, t.draft.Build, t.payer, t.compute)
	if err != nil {
		return nil, err
	}
	m.Observer.Stage("sign", m.Now().Sub(began))
	a.CreatedAt, a.Purpose, a.SecondLegCost = began, t.draft.Purpose, t.secondLeg
	a.Lane, a.Tip = t.lane, t.compute.Tip.Lamports
	a.Cost = t.rent + a.Fee + a.Tip
	return a, nil
}

package rpc

import (
	"context"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
)

// Balance reads an account's confirmed lamports, and returns the slot of the reading too. The slot
// is not before minContextSlot. An account that does not exist has 0.
func (c *Client) Balance(ctx context.Context, key solana.PublicKey, minContextSlot uint64) (lamports, slot uint64, err error) {
	const method = "getBalance"
	result, err := read[atSlot[uint64]](ctx, c, method, key, committed(onchain.Confirmed).notBefore(minContextSlot))
	if err == nil {
		err = onchain.CheckSlot(method, result.Slot, minContextSlot)
	}
	if err != nil {
		return 0, 0, err
	}
	return result.Value, result.Slot, nil
}

// Balances reads the confirmed lamports of up to 100 accounts at one slot, in the order of the
// keys, and returns that slot. An account that does not exist has 0.
func (c *Client) Balances(ctx context.Context, keys []solana.PublicKey) (lamports []uint64, slot uint64, err error) {
	accounts, slot, err := c.accounts(ctx, keys, withoutData(onchain.Confirmed))
	if err != nil {
		return nil, 0, err
	}
	lamports = make([]uint64, len(accounts))
	for i, a := range accounts {
		if a != nil {
			lamports[i] = a.Lamports
		}
	}
	return lamports, slot, nil
}

package chain

import (
	"context"
	"slices"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
)

// maxTogether is the largest number of inspections that share a call: each reads three accounts at
// most, and a call reads 100.
const maxTogether = 33

// readTogether reads accounts at one slot, and returns that slot. Under load it shares a call with
// others, unless the caller needs a slot.
func (p *PoolReader) readTogether(ctx context.Context, keys []solana.PublicKey, minContextSlot uint64) ([]*onchain.Account, uint64, error) {
	if minContextSlot > 0 {
		return p.accounts.Owners(ctx, keys, onchain.Confirmed, minContextSlot)
	}
	read, err := p.together.Do(ctx, keys)
	return read.value, read.slot, err
}

// readAccounts reads the accounts of several calls. It reads no data, because clients choose the recipients,
// and a few large accounts would make an answer too long for all.
func (p *PoolReader) readAccounts(ctx context.Context, calls [][]solana.PublicKey) ([]slotted[[]*onchain.Account], error) {
	accounts, slot, err := p.accounts.Owners(ctx, slices.Concat(calls...), onchain.Confirmed, 0)
	if err != nil {
		return nil, err
	}
	out := make([]slotted[[]*onchain.Account], len(calls))
	for i, keys := range calls {
		out[i], accounts = slotted[[]*onchain.Account]{accounts[:len(keys)], slot}, accounts[len(keys):]
	}
	return out, nil
}

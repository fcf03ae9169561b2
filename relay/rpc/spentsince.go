package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
)

// ErrNoRate reports that the history does not show how fast an account's lamports are spent.
var ErrNoRate = errors.New("the history does not show how fast the balance is spent")

// SpentSince returns by how much an account's balance has fallen between two slots, since and now,
// and how many slots that took. lamports is the balance at slot now. SpentSince reads only one page
// of the account's history: if the page does not go back to since, the period starts at the oldest
// transaction of the page. The fall is measured from the oldest finalized transaction of the
// period. SpentSince returns ErrNoRate when there is no such transaction, or when the balance did
// not fall.
func (c *Client) SpentSince(ctx context.Context, account solana.PublicKey, lamports, since, now uint64) (spent, slots uint64, err error) {
	infos, err := c.SignaturesFor(ctx, account, onchain.Finalized, solana.Signature{}, solana.Signature{}, historyPage)
	if err != nil {
		return 0, 0, err
	}
	begin := since
	if len(infos) == historyPage {
		begin = max(begin, infos[len(infos)-1].Slot)
	}
	infos = slices.DeleteFunc(infos, func(i onchain.SignatureInfo) bool { return i.Slot <= since })
	if len(infos) == 0 || now <= begin {
		return 0, 0, ErrNoRate
	}
	oldest, err := c.Payment(ctx, infos[len(infos)-1].Signature, account)
	if err != nil {
		return 0, 0, fmt.Errorf("read the oldest transaction of the period: %w", err)
	}
	if oldest == nil || oldest.After <= lamports {
		return 0, 0, ErrNoRate
	}
	return oldest.After - lamports, now - begin, nil
}

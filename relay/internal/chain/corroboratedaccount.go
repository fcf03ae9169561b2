package chain

import (
	"bytes"
	"context"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/onchain"
)

// CorroboratedAccount reads a finalized account, nil when it does not exist. If several endpoints
// can be asked, two of them have to report the same owner and the same data; until they do,
// CorroboratedAccount fails with the kind unverified.
func (e *Endpoints) CorroboratedAccount(ctx context.Context, key solana.PublicKey) (*onchain.Account, error) {
	q := query[*AccountAt]{
		method: "getMultipleAccounts", urgency: outbound.Read, roles: []Role{RoleRead}, unconfirmed: true,
		do: func(ctx context.Context, source askedEndpoint) (*AccountAt, error) {
			accounts, slot, err := source.Accounts(ctx, []solana.PublicKey{key}, onchain.Finalized, 0)
			if err != nil {
				return nil, err
			}
			return &AccountAt{Account: accounts[0], Slot: slot}, nil
		},
		slot: func(a *AccountAt) uint64 { return a.Slot },
	}
	first, origin, err := askWithIndex(ctx, e, q)
	if err != nil {
		return nil, err
	}
	if e.hasOther(origin) {
		first, err = corroborate(ctx, e, q, first, origin, sameAccount, func(*endpoint) bool { return false })
		if err != nil {
			return nil, err
		}
	}
	return first.Account, nil
}

func sameAccount(a, b *AccountAt) bool {
	if a.Account == nil || b.Account == nil {
		return a.Account == b.Account
	}
	return a.Account.Owner.Equals(b.Account.Owner) && bytes.Equal(a.Account.Data, b.Account.Data)
}

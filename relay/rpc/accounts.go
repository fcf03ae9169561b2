package rpc

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
)

// MaxAccounts is how many accounts one Accounts call may ask for (Agave).
const MaxAccounts = 100

// wireAccount is an account in base64, as getMultipleAccounts returns it.
type wireAccount struct {
	Owner    *solana.PublicKey `json:"owner"`
	Lamports *uint64           `json:"lamports"`
	Data     []string          `json:"data"`
	// Executable is a pointer, so that an answer without this member is refused. If a missing
	// member counted as false, a program would seem to be missing.
	Executable *bool `json:"executable"`
}

func (w *wireAccount) account() (*onchain.Account, error) {
	if w.Owner == nil || w.Lamports == nil || w.Executable == nil || len(w.Data) != 2 || w.Data[1] != "base64" {
		return nil, errors.New("owner, lamports, executable or base64 data are missing")
	}
	data, err := base64.StdEncoding.DecodeString(w.Data[0])
	if err != nil {
		return nil, errors.New("data is not base64")
	}
	return &onchain.Account{Owner: *w.Owner, Lamports: *w.Lamports, Data: data, Executable: *w.Executable}, nil
}

// Accounts reads up to 100 accounts at one slot, and returns that slot. The slot is not before
// minContextSlot. The entry of an account that does not exist is nil.
func (c *Client) Accounts(ctx context.Context, keys []solana.PublicKey, commitment onchain.Commitment, minContextSlot uint64) ([]*onchain.Account, uint64, error) {
	return c.accountsNotBefore(ctx, keys, config{"encoding": "base64", "commitment": commitment}, minContextSlot)
}

// Owners reads as Accounts does, but without the accounts' data, of which each may have 10 MB.
func (c *Client) Owners(ctx context.Context, keys []solana.PublicKey, commitment onchain.Commitment, minContextSlot uint64) ([]*onchain.Account, uint64, error) {
	return c.accountsNotBefore(ctx, keys, withoutData(commitment), minContextSlot)
}

func withoutData(commitment onchain.Commitment) config {
	return config{"encoding": "base64", "commitment": commitment, "dataSlice": map[string]int{"offset": 0, "length": 0}}
}

func (c *Client) accountsNotBefore(ctx context.Context, keys []solana.PublicKey, conf config, minContextSlot uint64) ([]*onchain.Account, uint64, error) {
	accounts, slot, err := c.accounts(ctx, keys, conf.notBefore(minContextSlot))
	if err == nil {
		err = onchain.CheckSlot("getMultipleAccounts", slot, minContextSlot)
	}
	if err != nil {
		return nil, 0, err
	}
	return accounts, slot, nil
}

func (c *Client) accounts(ctx context.Context, keys []solana.PublicKey, conf config) ([]*onchain.Account, uint64, error) {
	const method = "getMultipleAccounts"
	if len(keys) > MaxAccounts {
		return nil, 0, fmt.Errorf("%s: expected at most %d accounts, received %d", method, MaxAccounts, len(keys))
	}
	result, err := read[atSlot[[]*wireAccount]](ctx, c, method, keys, conf)
	if err != nil {
		return nil, 0, err
	}
	if len(result.Value) != len(keys) {
		return nil, 0, onchain.Malformed(method, "%d accounts, expected %d", len(result.Value), len(keys))
	}
	accounts := make([]*onchain.Account, len(keys))
	for i, w := range result.Value {
		if w == nil {
			continue
		}
		if accounts[i], err = w.account(); err != nil {
			return nil, 0, onchain.Malformed(method, "account %d: %v", i, err)
		}
	}
	return accounts, result.Slot, nil
}

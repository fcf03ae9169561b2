package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/poolcheck"
)

// Landed reads the newest successful transactions that name the address, newest first,
// until enough returns true.
func (c *Client) Landed(ctx context.Context, address solana.PublicKey, limit int, enough func([]poolcheck.Landed) bool) ([]poolcheck.Landed, error) {
	infos, err := c.SignaturesFor(ctx, address, onchain.Confirmed, solana.Signature{}, solana.Signature{}, limit)
	if err != nil {
		return nil, err
	}
	var out []poolcheck.Landed
	for _, info := range infos {
		if info.Failed {
			continue
		}
		tx, err := c.readListed(ctx, info)
		if err != nil {
			return out, err
		}
		landed := poolcheck.Landed{Signature: info.Signature, FeePayer: tx.FeePayer}
		for _, ix := range tx.Instructions {
			landed.Instructions = append(landed.Instructions, poolcheck.Instruction{Program: ix.ProgramID, Accounts: ix.Accounts, Data: ix.Data})
		}
		if out = append(out, landed); enough(out) {
			break
		}
	}
	return out, nil
}

// Version reads the release of the validator that the endpoint runs, such as 2.3.0.
func (c *Client) Version(ctx context.Context) (string, error) {
	const method = "getVersion"
	result, err := read[struct {
		Core string `json:"solana-core"`
	}](ctx, c, method)
	if err != nil {
		return "", err
	}
	if result.Core == "" || len(result.Core) > 64 {
		return "", onchain.Malformed(method, "solana-core has %d characters, expected 1 to 64", len(result.Core))
	}
	return result.Core, nil
}

// ErrNoRate reports that the history does not show how fast an account's lamports are spent.
var ErrNoRate = errors.New("the history does not show how fast the balance is spent")

// SpentSince returns by how much an account's balance has fallen since its oldest finalized
// transaction after the slot since, and over how many slots. It reads one page of the
// account's history. lamports is the current balance, and now the current slot. It returns
// ErrNoRate when there is no such transaction, or when the balance did not fall.
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
	first, err := c.Payment(ctx, infos[len(infos)-1].Signature, account)
	if err != nil {
		return 0, 0, fmt.Errorf("read the oldest transaction of the last hour: %w", err)
	}
	if first == nil || first.After <= lamports {
		return 0, 0, ErrNoRate
	}
	return first.After - lamports, now - begin, nil
}

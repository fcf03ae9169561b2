package rpc

import (
	"context"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/poolcheck"
)

// Landed lists the newest transactions that name the address, at most limit. It reads the
// successful ones of these, newest first, until enough returns true.
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

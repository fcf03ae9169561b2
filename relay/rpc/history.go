package rpc

import (
	"context"

	"github.com/gagliardetto/solana-go"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/relaypool/relaypool/relay/onchain"
)

const (
	// maxHistory bounds the transactions that are listed for one address. A bound is needed,
	// because anybody can lengthen the list of a nullifier's address, for 5000 lamports a
	// transaction.
	maxHistory = 100_000
	// historyPage is the largest page of getSignaturesForAddress.
	historyPage = 1000
)

// SignaturesFor lists the confirmed or finalized transactions that name the address, newest first;
// transactions of one slot have no order. before and until are signatures: only transactions older
// than the first and newer than the second are listed. A zero signature sets no bound. At most
// limit (1 to 1000) are returned; 0 means 1000.
func (c *Client) SignaturesFor(ctx context.Context, address solana.PublicKey, commitment onchain.Commitment, before, until solana.Signature, limit int) ([]onchain.SignatureInfo, error) {
	const method = "getSignaturesForAddress"
	conf := committed(commitment)
	if !before.IsZero() {
		conf["before"] = before
	}
	if !until.IsZero() {
		conf["until"] = until
	}
	if limit > 0 {
		conf["limit"] = limit
	}
	result, err := read[[]struct {
		Signature solana.Signature `json:"signature"`
		Slot      *uint64          `json:"slot"`
		// Confirmation is null in the answers of some archives.
		Confirmation *onchain.Commitment `json:"confirmationStatus"`
		Err          jsontext.Value      `json:"err"`
	}](ctx, c, method, address, conf)
	if err != nil {
		return nil, err
	}
	infos := make([]onchain.SignatureInfo, len(result))
	for i, r := range result {
		if r.Slot == nil || r.Signature.IsZero() {
			return nil, onchain.Malformed(method, "entry %d has no signature or no slot", i)
		}
		infos[i] = onchain.SignatureInfo{Signature: r.Signature, Slot: *r.Slot, Failed: len(r.Err) > 0 && !isNull(r.Err)}
		if r.Confirmation != nil && r.Confirmation.AtLeast(onchain.Processed) {
			infos[i].Confirmation = *r.Confirmation
		}
	}
	return infos, nil
}

// listSuccessful lists all successful transactions that name the address, newest first.
func (c *Client) listSuccessful(ctx context.Context, address solana.PublicKey) ([]onchain.SignatureInfo, error) {
	var out []onchain.SignatureInfo
	var before solana.Signature
	for listed := 0; listed < maxHistory; {
		page, err := c.SignaturesFor(ctx, address, onchain.Confirmed, before, solana.Signature{}, historyPage)
		if err != nil || len(page) == 0 {
			return out, err
		}
		for _, info := range page {
			if !info.Failed {
				out = append(out, info)
			}
		}
		listed, before = listed+len(page), page[len(page)-1].Signature
	}
	return nil, onchain.Malformed("getSignaturesForAddress", "more than %d transactions name the address", maxHistory)
}

// readListed reads a transaction that the endpoint lists as confirmed.
func (c *Client) readListed(ctx context.Context, info onchain.SignatureInfo) (*transaction, error) {
	tx, err := c.transaction(ctx, info.Signature, onchain.Confirmed)
	if err == nil && tx == nil {
		// The endpoint's indexes disagree, so the transaction may exist.
		err = &onchain.Unavailable{Method: "getTransaction", Kind: onchain.KindNotYet, Detail: "the endpoint does not find a transaction that it lists"}
	}
	return tx, err
}

// confirmation returns Finalized or Confirmed for a transaction from a list that was read at
// Confirmed. A lower level in the list is taken as Confirmed. Some archives list no level;
// confirmation then asks whether the transaction is finalized.
func (c *Client) confirmation(ctx context.Context, info onchain.SignatureInfo) (onchain.Commitment, error) {
	switch {
	case info.Confirmation.AtLeast(onchain.Finalized):
		return onchain.Finalized, nil
	case info.Confirmation.AtLeast(onchain.Processed):
		return onchain.Confirmed, nil
	}
	tx, err := c.transaction(ctx, info.Signature, onchain.Finalized)
	if err != nil || tx == nil {
		return onchain.Confirmed, err
	}
	return onchain.Finalized, nil
}

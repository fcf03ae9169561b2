package rpc

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
)

// Limits of the RPC methods (Agave).
const (
	// MaxAccounts is how many accounts one Accounts call may ask for.
	MaxAccounts = 100
	// MaxStatuses is how many signatures one Statuses call may ask for.
	MaxStatuses = 256
)

// atSlot is a result with the slot at which it was read. Decoding fails if the slot or the value is
// missing, because a missing value is unknown, not zero.
type atSlot[T any] struct {
	Slot  uint64
	Value T
}

func (a *atSlot[T]) UnmarshalJSON(b []byte) error {
	var raw struct {
		Context struct {
			Slot *uint64 `json:"slot"`
		} `json:"context"`
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		return err
	}
	if raw.Context.Slot == nil || raw.Value == nil || isNull(raw.Value) {
		return errors.New("context slot or value is missing")
	}
	a.Slot = *raw.Context.Slot
	return json.Unmarshal(raw.Value, &a.Value)
}

type config map[string]any

func committed(c onchain.Commitment) config { return config{"commitment": c} }

// notBefore makes a node refuse the call if it has not reached the slot; 0 accepts any node.
func (c config) notBefore(slot uint64) config {
	if slot > 0 {
		c["minContextSlot"] = slot
	}
	return c
}

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
	accounts, slot, err := c.accounts(ctx, keys, config{"encoding": "base64", "commitment": commitment}.notBefore(minContextSlot))
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
	accounts, slot, err := c.accounts(ctx, keys, config{
		"encoding": "base64", "commitment": onchain.Confirmed, "dataSlice": map[string]int{"offset": 0, "length": 0},
	})
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

// LatestBlockhash reads the newest confirmed blockhash.
func (c *Client) LatestBlockhash(ctx context.Context) (onchain.Blockhash, error) {
	const method = "getLatestBlockhash"
	type value struct {
		Blockhash            solana.Hash `json:"blockhash"`
		LastValidBlockHeight uint64      `json:"lastValidBlockHeight"`
	}
	result, err := read[atSlot[value]](ctx, c, method, committed(onchain.Confirmed))
	if err != nil {
		return onchain.Blockhash{}, err
	}
	if result.Value.Blockhash.IsZero() || result.Value.LastValidBlockHeight == 0 {
		return onchain.Blockhash{}, onchain.Malformed(method, "blockhash or lastValidBlockHeight is missing")
	}
	return onchain.Blockhash{
		Hash: result.Value.Blockhash, Slot: result.Slot,
		LastValidBlockHeight: result.Value.LastValidBlockHeight,
	}, nil
}

// Newest reads the newest block of the commitment.
func (c *Client) Newest(ctx context.Context, commitment onchain.Commitment) (onchain.Tip, error) {
	const method = "getEpochInfo"
	result, err := read[struct {
		Slot   *uint64 `json:"absoluteSlot"`
		Height *uint64 `json:"blockHeight"`
	}](ctx, c, method, committed(commitment))
	switch {
	case err != nil:
		return onchain.Tip{}, err
	case result.Slot == nil || result.Height == nil || *result.Height > *result.Slot:
		return onchain.Tip{}, onchain.Malformed(method, "absoluteSlot or blockHeight is missing, or the height is above the slot")
	}
	return onchain.Tip{Slot: *result.Slot, Height: *result.Height}, nil
}

// Slot reads the newest slot of the commitment.
func (c *Client) Slot(ctx context.Context, commitment onchain.Commitment) (uint64, error) {
	return read[uint64](ctx, c, "getSlot", committed(commitment))
}

// FirstAvailable reads the slot of the oldest block that the endpoint still has.
func (c *Client) FirstAvailable(ctx context.Context) (uint64, error) {
	return read[uint64](ctx, c, "getFirstAvailableBlock")
}

// GenesisHash reads the hash that identifies the cluster. A zero hash is refused, because it
// stands for an unknown one.
func (c *Client) GenesisHash(ctx context.Context) (solana.Hash, error) {
	const method = "getGenesisHash"
	hash, err := read[solana.Hash](ctx, c, method)
	if err == nil && hash.IsZero() {
		err = onchain.Malformed(method, "the hash is zero")
	}
	return hash, err
}

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

type wireBlock struct {
	Hash         solana.Hash       `json:"blockhash"`
	ParentHash   solana.Hash       `json:"previousBlockhash"`
	Parent       *uint64           `json:"parentSlot"`
	Transactions []wireTransaction `json:"transactions"`
}

type wireTransaction struct {
	// Transaction is the bytes and their encoding.
	Transaction []string `json:"transaction"`
	Meta        *struct {
		Fee   *uint64         `json:"fee"`
		Pre   []uint64        `json:"preBalances"`
		Post  []uint64        `json:"postBalances"`
		Err   json.RawMessage `json:"err"`
		Inner []struct {
			Index        int               `json:"index"`
			Instructions []wireInstruction `json:"instructions"`
		} `json:"innerInstructions"`
		Loaded struct {
			Writable []solana.PublicKey `json:"writable"`
			Readonly []solana.PublicKey `json:"readonly"`
		} `json:"loadedAddresses"`
	} `json:"meta"`
}

type wireInstruction struct {
	Program  int           `json:"programIdIndex"`
	Accounts []int         `json:"accounts"`
	Data     solana.Base58 `json:"data"`
}

// Blocks lists the slots from from to to, both included, that have a confirmed
// block. The network bounds the range to 500 000 slots.
func (c *Client) Blocks(ctx context.Context, from, to uint64) ([]uint64, error) {
	return read[[]uint64](ctx, c, "getBlocks", from, to, committed(onchain.Confirmed))
}

// Block reads the confirmed block of the slot, the only source of the order of transactions
// within a slot. It fails with onchain.ErrSlotSkipped when the slot has no block, and with
// onchain.ErrBlockPruned when the endpoint no longer has it.
func (c *Client) Block(ctx context.Context, slot uint64) (*onchain.Block, error) {
	const method = "getBlock"
	wire, err := read[wireBlock](ctx, c, method, slot, config{
		"encoding": "base64", "transactionDetails": "full", "rewards": false,
		"commitment": onchain.Confirmed, "maxSupportedTransactionVersion": 0,
	})
	if err != nil {
		return nil, err
	}
	b, err := wire.decode(slot)
	if err != nil {
		return nil, onchain.Malformed(method, "%v", err)
	}
	return b, nil
}

func (w *wireBlock) decode(slot uint64) (*onchain.Block, error) {
	if w.Parent == nil || w.Hash.IsZero() || w.Transactions == nil {
		return nil, errors.New("blockhash, parentSlot or transactions are missing")
	}
	b := &onchain.Block{
		Slot: slot, Parent: *w.Parent, Hash: w.Hash, ParentHash: w.ParentHash,
		Transactions: make([]onchain.BlockTransaction, len(w.Transactions)),
	}
	for i := range w.Transactions {
		var err error
		if b.Transactions[i], err = w.Transactions[i].decode(); err != nil {
			return nil, fmt.Errorf("transaction %d: %w", i, err)
		}
	}
	return b, nil
}

func (w *wireTransaction) decode() (onchain.BlockTransaction, error) {
	out, err := w.resolve()
	return out.BlockTransaction, err
}

// resolvedTransaction is a transaction with its indices replaced by keys.
type resolvedTransaction struct {
	onchain.BlockTransaction
	keys       []solana.PublicKey
	signatures uint64
}

func (w *wireTransaction) resolve() (resolvedTransaction, error) {
	var out resolvedTransaction
	if len(w.Transaction) != 2 || w.Transaction[1] != "base64" || w.Meta == nil {
		return out, errors.New("base64 bytes or meta are missing")
	}
	raw, err := base64.StdEncoding.DecodeString(w.Transaction[0])
	if err != nil {
		return out, errors.New("bytes are not base64")
	}
	tx, err := solana.TransactionFromBytes(raw)
	if err != nil || len(tx.Signatures) == 0 || len(tx.Message.AccountKeys) == 0 {
		return out, fmt.Errorf("%d bytes are no signed transaction", len(raw))
	}
	// The network numbers a transaction's own keys first, then the writable ones
	// from lookup tables, then the read-only ones.
	keys := append(append(append([]solana.PublicKey(nil), tx.Message.AccountKeys...), w.Meta.Loaded.Writable...), w.Meta.Loaded.Readonly...)
	inner := make(map[int][]wireInstruction, len(w.Meta.Inner))
	for _, group := range w.Meta.Inner {
		inner[group.Index] = append(inner[group.Index], group.Instructions...)
	}
	out.keys, out.signatures = keys, uint64(len(tx.Signatures))
	out.Signature, out.FeePayer, out.Failed = tx.Signatures[0], keys[0], len(w.Meta.Err) > 0 && !isNull(w.Meta.Err)
	for i, ix := range tx.Message.Instructions {
		outer := wireInstruction{Program: int(ix.ProgramIDIndex), Accounts: make([]int, len(ix.Accounts)), Data: ix.Data}
		for j, a := range ix.Accounts {
			outer.Accounts[j] = int(a)
		}
		for _, call := range append([]wireInstruction{outer}, inner[i]...) {
			instruction, err := call.resolve(keys)
			if err != nil {
				return out, fmt.Errorf("instruction %d: %w", i, err)
			}
			out.Instructions = append(out.Instructions, instruction)
		}
	}
	return out, nil
}

// resolve replaces indices by addresses.
func (w *wireInstruction) resolve(keys []solana.PublicKey) (onchain.Instruction, error) {
	ix := onchain.Instruction{Accounts: make([]solana.PublicKey, len(w.Accounts)), Data: w.Data}
	if w.Program < 0 || w.Program >= len(keys) {
		return ix, fmt.Errorf("its program is account %d of %d", w.Program, len(keys))
	}
	ix.ProgramID = keys[w.Program]
	for i, a := range w.Accounts {
		if a < 0 || a >= len(keys) {
			return ix, fmt.Errorf("it names account %d of %d", a, len(keys))
		}
		ix.Accounts[i] = keys[a]
	}
	return ix, nil
}

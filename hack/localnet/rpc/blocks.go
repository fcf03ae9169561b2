package rpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

func (c *call) getBlock(p params) (any, *Error) {
	if err := p.want(1, 2); err != nil {
		return nil, err
	}
	var slot uint64
	if err := p.decode(0, &slot); err != nil {
		return nil, err
	}
	cfg, err := p.history(1)
	if err != nil {
		return nil, err
	}
	var block *bank.Block
	var first uint64
	var missing error
	if err := c.read(cfg.contextConfig, func(v view) {
		block, missing = v.Block(slot)
		first = v.FirstAvailableBlock()
	}); err != nil {
		return nil, err
	}
	if missing != nil {
		return nil, errBlock(missing, slot, first)
	}
	return encodeBlock(block, cfg)
}

func errBlock(missing error, slot, first uint64) *Error {
	switch {
	case errors.Is(missing, bank.ErrBlockCleanedUp):
		return &Error{Code: codeBlockCleanedUp, Message: fmt.Sprintf(
			"Block %d cleaned up, does not exist on node. First available block: %d", slot, first)}
	case errors.Is(missing, bank.ErrSlotSkipped):
		return &Error{Code: codeSlotSkipped, Message: fmt.Sprintf(
			"Slot %d was skipped, or missing due to ledger jump to recent snapshot", slot)}
	default:
		return &Error{Code: codeBlockNotAvailable, Message: fmt.Sprintf("Block not available for slot %d", slot)}
	}
}

func encodeBlock(block *bank.Block, cfg historyConfig) (any, *Error) {
	out := map[string]any{
		"blockhash":         block.Hash.String(),
		"previousBlockhash": block.ParentHash.String(),
		"parentSlot":        block.ParentSlot,
		"blockHeight":       block.Height,
		"blockTime":         block.Time,
	}
	if cfg.Rewards == nil || *cfg.Rewards {
		out["rewards"] = []any{}
	}
	switch cfg.TransactionDetails {
	case "none":
	case "signatures":
		signatures := make([]string, len(block.Landed))
		for i, landed := range block.Landed {
			signatures[i] = landed.Signature().String()
		}
		out["signatures"] = signatures
	case "full", "accounts":
		encode := encodeLanded
		if cfg.TransactionDetails == "accounts" {
			encode = encodeLandedAccounts
		}
		transactions := make([]any, len(block.Landed))
		for i, landed := range block.Landed {
			var err *Error
			if transactions[i], err = encode(landed, cfg); err != nil {
				return nil, err
			}
		}
		out["transactions"] = transactions
	default:
		return nil, invalidParams("Invalid params: unknown variant `%s`, expected one of `full`, `signatures`, `none`, `accounts`", cfg.TransactionDetails)
	}
	return out, nil
}

// maxBlocks bounds getBlocks and getBlocksWithLimit: slots and blocks.
const maxBlocks = 500_000

func (c *call) getBlocks(p params) (any, *Error) {
	if err := p.want(1, 3); err != nil {
		return nil, err
	}
	var first uint64
	if err := p.decode(0, &first); err != nil {
		return nil, err
	}
	// The end may be left out, and the configuration then takes its place.
	last, at := uint64(math.MaxUint64), 1
	if first <= math.MaxUint64-maxBlocks {
		last = first + maxBlocks
	}
	if len(p) > 1 && (isNull(p[1]) || json.Unmarshal(p[1], new(uint64)) == nil) {
		if err := p.decode(1, &last); err != nil {
			return nil, err
		}
		at = 2
	}
	cfg, err := p.settledContext(at)
	if err != nil {
		return nil, err
	}
	var slots []uint64
	var tooLarge *Error
	err = c.read(cfg, func(v view) {
		last = min(last, v.Slot())
		if last > first && last-first > maxBlocks {
			tooLarge = invalidParams("Slot range too large; max %d", maxBlocks)
			return
		}
		slots = v.Blocks(first, last)
	})
	if err == nil {
		err = tooLarge
	}
	return slots, err
}

func (c *call) getBlocksWithLimit(p params) (any, *Error) {
	if err := p.want(2, 3); err != nil {
		return nil, err
	}
	var first, limit uint64
	if err := p.decode(0, &first); err != nil {
		return nil, err
	}
	if err := p.decode(1, &limit); err != nil {
		return nil, err
	}
	cfg, err := p.settledContext(2)
	if err != nil {
		return nil, err
	}
	if limit > maxBlocks {
		return nil, invalidParams("Limit too large; max %d", maxBlocks)
	}
	var slots []uint64
	err = c.read(cfg, func(v view) { slots = v.BlocksWithLimit(first, int(limit)) }) //nolint:gosec // G115: at most maxBlocks
	return slots, err
}

// settledContext reads parameter i as the configuration of a method that
// serves no state below confirmed.
func (p params) settledContext(i int) (cfg contextConfig, err *Error) {
	if err := p.decode(i, &cfg); err != nil {
		return cfg, err
	}
	return cfg, cfg.settled()
}

func (c *call) getFirstAvailableBlock(p params) (any, *Error) {
	return c.onView(p, 0, func(v view) any { return v.FirstAvailableBlock() })
}

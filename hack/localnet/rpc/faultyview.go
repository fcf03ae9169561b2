package rpc

import (
	"encoding/json"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/fault"
)

// call is an executing call on the endpoint, with the call's faults.
type call struct {
	*Endpoint
	plan fault.Plan
}

// view is the bank's view under the endpoint's faults.
type view struct {
	bank.View
	// oldest is the oldest slot of the endpoint's history, or 0 when the history is not shortened.
	oldest uint64
	// empty says that the view answers as if nothing existed.
	empty bool
	// plan has the false slots and heights that the node claims; nil for none.
	plan *fault.Plan
}

// Slot is the slot that the node claims for the view.
func (v view) Slot() uint64 { return v.View.Slot() + v.ahead() }

func (v view) ahead() uint64 {
	if v.plan == nil {
		return 0
	}
	return v.plan.Ahead
}

// Height is the block height that the node claims for the view.
func (v view) Height() uint64 {
	height, _ := v.heights()
	return height
}

// LatestBlockhash is the newest blockhash, with the last valid block height that
// the node claims for it.
func (v view) LatestBlockhash() (hash solana.Hash, lastValidHeight uint64) {
	hash, _ = v.View.LatestBlockhash()
	_, lastValidHeight = v.heights()
	return hash, lastValidHeight
}

// heights are the block height and the last valid block height of the newest
// blockhash that the node claims.
func (v view) heights() (height, lastValid uint64) {
	height = v.View.Height()
	_, lastValid = v.View.LatestBlockhash()
	if v.plan == nil {
		return height, lastValid
	}
	extra := v.plan.HeightAhead
	if v.plan.SlotAsHeight {
		extra += v.Slot() - height
	}
	return height + extra, lastValid + extra
}

// read calls fn with the state at the configuration's commitment level and returns
// fn's result. It returns an error if the state is older than minContextSlot.
func (c *call) read(cfg contextConfig, fn func(view) (any, error)) (any, error) {
	return c.readAt(bank.Commitment(cfg.Commitment), func(v view) (any, error) {
		if cfg.MinContextSlot != nil && v.Slot() < *cfg.MinContextSlot {
			return nil, errMinContextSlot(v.Slot())
		}
		return fn(v)
	})
}

// readAt calls fn with the state at a commitment level, under the call's faults,
// and returns fn's result.
func (c *call) readAt(commitment bank.Commitment, fn func(view) (any, error)) (out any, err error) {
	c.bank.Behind(c.plan.Lag).Read(commitment, func(v bank.View) {
		seen := view{View: v, empty: c.plan.Empty, plan: &c.plan}
		if n := c.plan.History; n > 0 {
			seen.oldest = v.Tip() - min(v.Tip(), n-1)
		}
		out, err = fn(seen)
	})
	return out, err
}

// claimedUnits are the consumed units of a failed simulation that the node reports as a success.
const claimedUnits = 150_000

// claimedError is the error that the node claims for every transaction, or nil when
// the node claims success.
func (c *call) claimedError() any {
	if c.plan.Outcome == fault.OutcomeFails {
		return json.RawMessage(c.plan.Err)
	}
	return nil
}

// Account returns the account at an address, or nil when there is none.
func (v view) Account(key solana.PublicKey) *bank.Account {
	if v.empty {
		return nil
	}
	return v.View.Account(key)
}

// Block returns the block at a slot, with the errors of bank.View.Block.
func (v view) Block(slot uint64) (*bank.Block, error) {
	if slot < v.oldest && slot <= v.Slot() {
		return nil, bank.ErrBlockCleanedUp
	}
	return v.View.Block(slot)
}

// Blocks lists the slots with a block from first to last, both included.
func (v view) Blocks(first, last uint64) []uint64 {
	if v.empty {
		return []uint64{}
	}
	return v.View.Blocks(max(first, v.oldest), last)
}

// FirstAvailableBlock is the slot of the oldest block of the history.
func (v view) FirstAvailableBlock() uint64 {
	if slots := v.View.Blocks(v.oldest, v.View.Slot()); v.oldest > 0 && len(slots) > 0 {
		return slots[0]
	}
	return max(v.View.FirstAvailableBlock(), v.oldest)
}

// Transaction finds a landed transaction, or nil.
func (v view) Transaction(signature solana.Signature) *bank.Landed {
	landed := v.View.Transaction(signature)
	if v.empty || landed == nil || landed.Block.Slot < v.oldest {
		return nil
	}
	return landed
}

// Status returns the status of a transaction, or nil. Recent statuses are also found below the
// oldest slot of a short history: a node's status cache is separate from its history.
func (v view) Status(signature solana.Signature) *bank.Status {
	status := v.View.Status(signature)
	if v.empty || status == nil || status.Block.Slot < v.oldest && !status.Recent {
		return nil
	}
	return status
}

// ByAddress lists transactions that name an address, newest first.
func (v view) ByAddress(q bank.AddressQuery) []bank.Status {
	if v.empty {
		return nil
	}
	found := v.View.ByAddress(q)
	for i := range found {
		if found[i].Block.Slot < v.oldest {
			return found[:i]
		}
	}
	return found
}

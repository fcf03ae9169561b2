package rpc

import (
	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/fault"
)

// healthyLag is how far behind the cluster, in slots, Agave takes itself for
// healthy.
const healthyLag = 128

// call is one call under way: the endpoint with what its faults make of it.
type call struct {
	*Endpoint
	plan fault.Plan
}

// view is the bank's view as the endpoint sees it.
type view struct {
	bank.View
	// first is the oldest slot of the endpoint's history.
	first uint64
	// empty: nothing that is asked for is there.
	empty bool
}

// read calls fn with the state that the configuration asks for.
func (c *call) read(cfg contextConfig, fn func(view)) *Error {
	var err *Error
	c.readAt(bank.Commitment(cfg.Commitment), func(v view) {
		if cfg.MinContextSlot != nil && v.Slot() < *cfg.MinContextSlot {
			err = errMinContextSlot(v.Slot())
			return
		}
		fn(v)
	})
	return err
}

// readAt calls fn with the state at a commitment level.
func (c *call) readAt(at bank.Commitment, fn func(view)) {
	node := c.bank.Behind(c.plan.Lag)
	var first uint64
	if n := c.plan.History; n > 0 {
		node.Read(bank.Processed, func(v bank.View) { first = v.Slot() - min(v.Slot(), n-1) })
	}
	node.Read(at, func(v bank.View) { fn(view{View: v, first: first, empty: c.plan.Empty}) })
}

// simulate runs a transaction on the state at a commitment level.
func (c *call) simulate(tx *bank.Transaction, at bank.Commitment, replaceBlockhash bool, fn func(*bank.Simulation)) {
	c.bank.Behind(c.plan.Lag).Simulate(tx, at, replaceBlockhash, fn)
}

// health is the number of slots that the node is too far behind, or 0.
func (c *call) health() uint64 {
	behind := c.behind.Load()
	if c.plan.Lag > healthyLag {
		behind = max(behind, c.plan.Lag)
	}
	return behind
}

// healthTold is what getHealth says of health, which may be a lie.
func (c *call) healthTold() uint64 {
	switch c.plan.Health {
	case fault.HealthOK:
		return 0
	case fault.HealthBehind:
		return max(c.health(), healthyLag+1)
	default:
		return c.health()
	}
}

// Account gives the account at an address, or nil when there is none.
func (v view) Account(key solana.PublicKey) *bank.Account {
	if v.empty {
		return nil
	}
	return v.View.Account(key)
}

// Block gives the block at a slot; errors are as in bank.View.
func (v view) Block(slot uint64) (*bank.Block, error) {
	if slot < v.first && slot <= v.Slot() {
		return nil, bank.ErrBlockCleanedUp
	}
	return v.View.Block(slot)
}

// Blocks lists the slots with a block from first to last, both included.
func (v view) Blocks(first, last uint64) []uint64 {
	if v.empty {
		return []uint64{}
	}
	return v.View.Blocks(max(first, v.first), last)
}

// BlocksWithLimit lists the first limit slots with a block from first on.
func (v view) BlocksWithLimit(first uint64, limit int) []uint64 {
	if v.empty {
		return []uint64{}
	}
	return v.View.BlocksWithLimit(max(first, v.first), limit)
}

// FirstAvailableBlock is the slot of the oldest block of the history.
func (v view) FirstAvailableBlock() uint64 {
	if v.first > 0 {
		if slots := v.View.BlocksWithLimit(v.first, 1); len(slots) > 0 {
			return slots[0]
		}
	}
	return max(v.View.FirstAvailableBlock(), v.first)
}

// Transaction finds a landed transaction, or nil.
func (v view) Transaction(signature solana.Signature) *bank.Landed {
	landed := v.View.Transaction(signature)
	if v.empty || landed == nil || landed.Block.Slot < v.first {
		return nil
	}
	return landed
}

// Status finds how settled a transaction is, or nil. The cache of recent
// statuses is in memory, so it outlives a short history on disk.
func (v view) Status(signature solana.Signature) *bank.Status {
	status := v.View.Status(signature)
	if v.empty || status == nil || status.Block.Slot < v.first && !status.Recent {
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
		if found[i].Block.Slot < v.first {
			return found[:i]
		}
	}
	return found
}

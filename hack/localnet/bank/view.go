package bank

import (
	"errors"
	"slices"
	"sort"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
)

// Commitment is the commitment level of a read.
type Commitment int

// The commitment levels, highest first. The zero value is Agave's default.
const (
	Finalized Commitment = iota
	Confirmed
	Processed
)

// String returns the level's name on the wire.
func (c Commitment) String() string {
	return [...]string{"finalized", "confirmed", "processed"}[c]
}

// Errors of View.Block.
var (
	ErrBlockNotAvailable = errors.New("block not available yet at this commitment")
	ErrBlockCleanedUp    = errors.New("block older than the kept history")
	ErrSlotSkipped       = errors.New("slot has no block")
)

// View reads the chain at one commitment level, as one node sees it. "The level's
// block" is the newest block at that level. A View is valid only inside the
// function that Read calls. The accounts, blocks and transactions that it returns
// stay valid.
type View struct {
	bank *Bank
	// tip is the newest block that the node has seen.
	tip *Block
	// block is the level's block.
	block *Block
}

// Slot is the slot of the level's block.
func (v View) Slot() uint64 { return v.block.Slot }

// Tip is the newest slot that the node has seen.
func (v View) Tip() uint64 { return v.tip.Slot }

// Root is the newest finalized slot that the node has seen.
func (v View) Root() uint64 { return v.bank.newestAt(v.tip, Finalized).Slot }

// Rent is the rate of rent in the level's block.
func (v View) Rent() Rent { return v.block.Rent }

// Height is the block height of the level's block.
func (v View) Height() uint64 { return v.block.Height }

// Transactions counts the transactions of the chain up to the level's block.
func (v View) Transactions() uint64 { return v.block.Transactions }

// ValidBlockhash reports whether a transaction with the blockhash may still land.
func (v View) ValidBlockhash(hash solana.Hash) bool { return v.bank.usable(hash, v.block) }

// Account returns the account at an address, or nil when there is none.
func (v View) Account(key solana.PublicKey) *Account {
	if key == solana.SysVarRentPubkey {
		return v.block.Rent.sysvar()
	}
	return v.bank.accounts.at(key, v.block.Slot)
}

// LatestBlockhash returns the newest blockhash of the level and the last block
// height at which a transaction with it can land.
func (v View) LatestBlockhash() (hash solana.Hash, lastValidHeight uint64) {
	if v.block.Hash == (solana.Hash{}) {
		return v.block.ParentHash, v.block.Height - 1 + MaxAge
	}
	return v.block.Hash, v.block.Height + MaxAge
}

// Block returns the block at a slot, or one of ErrBlockNotAvailable,
// ErrBlockCleanedUp and ErrSlotSkipped.
func (v View) Block(slot uint64) (*Block, error) {
	chain := v.bank.chain
	switch {
	case slot > v.block.Slot:
		return nil, ErrBlockNotAvailable
	case slot < chain[0].Slot:
		return nil, ErrBlockCleanedUp
	}
	if block := chain[chain.search(slot)]; block.Slot == slot {
		return v.bank.withPast(block), nil
	}
	return nil, ErrSlotSkipped
}

// Blocks lists the slots with a block from first to last, both included.
func (v View) Blocks(first, last uint64) []uint64 {
	slots := []uint64{}
	chain := v.bank.chain
	for _, block := range chain[chain.search(first):] {
		if block.Slot > min(last, v.block.Slot) {
			break
		}
		slots = append(slots, block.Slot)
	}
	return slots
}

// FirstAvailableBlock is the slot of the oldest block of the history.
func (v View) FirstAvailableBlock() uint64 { return v.bank.chain[0].Slot }

// Transaction finds a landed transaction at the level, or nil.
func (v View) Transaction(signature solana.Signature) *Landed {
	if l := v.bank.find(signature); l != nil && l.Block.Slot <= v.block.Slot {
		return l
	}
	return nil
}

// Status is a landed transaction with the commitment that a node sees.
type Status struct {
	*Landed
	// Commitment is the highest level at which it is visible.
	Commitment Commitment
	// Confirmations is the number of blocks on top of its block.
	Confirmations uint64
	// Recent says that the transaction is in the status cache, which covers MaxAge
	// blocks.
	Recent bool
}

// Status returns the status of a transaction, or nil when the transaction is not
// visible at the level.
func (v View) Status(signature solana.Signature) *Status {
	landed := v.Transaction(signature)
	if landed == nil {
		return nil
	}
	return v.status(landed)
}

func (v View) status(landed *Landed) *Status {
	confirmations := v.tip.Height - landed.Block.Height
	return &Status{
		Landed: landed, Commitment: v.level(landed.Block),
		Confirmations: confirmations, Recent: confirmations <= MaxAge,
	}
}

// level returns the highest level at which the node sees a block.
func (v View) level(block *Block) Commitment {
	for _, c := range []Commitment{Finalized, Confirmed} {
		if block.Height <= v.bank.newestAt(v.tip, c).Height {
			return c
		}
	}
	return Processed
}

// AddressQuery selects transactions of an address.
type AddressQuery struct {
	Address solana.PublicKey
	// Before and Until, when not zero, bound the range at its newer and its older
	// end. Both are excluded.
	Before, Until solana.Signature
	Limit         int
}

// ByAddress lists transactions that name an address, newest first. An unknown
// Before returns none, as on Agave. An unknown Until is ignored.
func (v View) ByAddress(q AddressQuery) []Status {
	all := v.bank.byAddress[q.Address]
	before := v.bank.find(q.Before)
	if q.Before != (solana.Signature{}) && before == nil {
		return nil
	}
	// The list is in the order of the chain, so that a binary search finds a page
	// far back as quickly as the first page.
	end := sort.Search(len(all), func(i int) bool {
		return all[i].Block.Slot > v.block.Slot || before != nil && !all[i].olderThan(before)
	})
	var out []Status
	add := func(l *Landed) bool {
		if len(out) >= q.Limit || l.Signature() == q.Until {
			return false
		}
		out = append(out, *v.status(l))
		return true
	}
	for _, l := range slices.Backward(all[:end]) {
		if !add(l) {
			return out
		}
	}
	v.eachPast(q.Address, before, add)
	return out
}

func (l *Landed) olderThan(other *Landed) bool {
	if l.Block.Slot != other.Block.Slot {
		return l.Block.Slot < other.Block.Slot
	}
	return l.Index < other.Index
}

// PrioritizationFees returns, for each of the newest MaxAge closed blocks, the
// smallest price of its transactions in micro-lamports a unit, or 0 without transactions.
// With addresses, only transactions that write one of the addresses count, but none is below what the
// block's leader takes.
func (v View) PrioritizationFees(addresses []solana.PublicKey) []rpc.PriorizationFeeResult {
	chain := v.bank.chain[:v.bank.chain.position(v.tip)]
	if len(chain) > MaxAge {
		chain = chain[len(chain)-MaxAge:]
	}
	fees := make([]rpc.PriorizationFeeResult, len(chain))
	for i, block := range chain {
		fees[i] = rpc.PriorizationFeeResult{Slot: block.Slot, PrioritizationFee: max(block.price, block.smallestPrice(addresses))}
	}
	return fees
}

func (b *Block) smallestPrice(addresses []solana.PublicKey) uint64 {
	var smallest uint64
	found := false
	for _, l := range b.Landed {
		if l.writesAny(addresses) && (!found || l.Meta.Price < smallest) {
			smallest, found = l.Meta.Price, true
		}
	}
	return smallest
}

// writesAny reports whether the transaction writes one of the addresses. Without
// addresses it returns true.
func (m *Message) writesAny(addresses []solana.PublicKey) bool {
	for i, key := range m.Keys {
		if m.Writable[i] && slices.Contains(addresses, key) {
			return true
		}
	}
	return len(addresses) == 0
}

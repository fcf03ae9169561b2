package bank

import (
	"crypto/sha256"
	"encoding/binary"
	"sort"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
)

// Block is the content of one slot. It is immutable once closed. Of an open
// block only Slot, Height, ParentSlot, ParentHash and Time are final.
type Block struct {
	Slot       uint64
	Height     uint64
	ParentSlot uint64
	ParentHash solana.Hash
	// Hash is zero while the block is open.
	Hash solana.Hash
	// Landed are the block's transactions in their order of execution.
	Landed []*Landed
	// Transactions counts the transactions of the chain up to this block.
	Transactions uint64
	// Rent is the rate of rent.
	Rent Rent

	// price is the lowest price that the block's leader takes.
	price uint64
	// at is the time at which the block was opened.
	at time.Time
	// written are the accounts that the block changed, for pruning.
	written []solana.PublicKey
}

// Time is when the block was opened, in seconds since the Unix epoch.
func (b *Block) Time() int64 { return b.at.Unix() }

// Landed is a transaction in a block. It succeeded, or failed and paid its fee.
type Landed struct {
	*Transaction
	Block *Block
	// Index is the position in the block, from 0.
	Index int
	Meta  Meta
}

// Meta is the outcome of a transaction.
type Meta struct {
	// Err is nil for a success.
	Err *TransactionError
	// Fee, PreBalances and PostBalances are in lamports.
	Fee          uint64
	PreBalances  []uint64
	PostBalances []uint64
	// PreTokens and PostTokens are the balances of the token accounts.
	PreTokens  []rpc.TokenBalance
	PostTokens []rpc.TokenBalance
	Inner      []rpc.InnerInstruction
	Logs       []string
	// Units is the compute consumed.
	Units uint64
	// LoadedData is the size of the loaded accounts in bytes.
	LoadedData uint64
	// Price is the priority fee in micro-lamports a unit.
	Price uint64
}

// Cost is what the transaction counted towards the limits of its block, in units.
func (l *Landed) Cost() uint64 { return l.cost(l.Meta.Units, l.Meta.LoadedData) }

// chain is the blocks in order of height, without gaps in the heights. The last
// block is open, the first is the oldest of the history. Slots may have gaps.
type chain []*Block

// newest returns the last block, which is open except during a fork.
func (c chain) newest() *Block { return c[len(c)-1] }

// below returns the block n blocks below the newest, or the oldest block.
func (c chain) below(n uint64) *Block {
	if n >= uint64(len(c)) {
		return c[0]
	}
	return c[uint64(len(c))-1-n]
}

func (c chain) position(block *Block) int { return int(block.Height - c[0].Height) } //nolint:gosec // less than its length

// belowBlock returns the block n blocks below a given block, or the oldest block.
func (c chain) belowBlock(block *Block, n uint64) *Block {
	return c.below(c.newest().Height - block.Height + n)
}

// search returns the position of the first block at slot or above.
func (c chain) search(slot uint64) int {
	return sort.Search(len(c), func(i int) bool { return c[i].Slot >= slot })
}

// hash computes the block's hash from its parent's hash, its slot and its
// transactions, so that two histories never share a hash.
func (b *Block) hash() solana.Hash {
	h := sha256.New()
	h.Write(b.ParentHash[:])
	var slot [8]byte
	binary.LittleEndian.PutUint64(slot[:], b.Slot)
	h.Write(slot[:])
	for _, l := range b.Landed {
		signature := l.Signature()
		h.Write(signature[:])
	}
	return solana.Hash(h.Sum(nil))
}

package bank

import (
	"slices"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
)

// Past is the history that a chain has when it is made, in the blocks from slot 1 on: successful
// transactions, which are made from their numbers when they are read, so that they need no memory.
// They have not executed: Options.Accounts has the state after them.
type Past struct {
	// Transactions is their number, PerBlock the number in each block but the last.
	Transactions, PerBlock uint64
	// Make returns a transaction by its number, from 0. Number finds a transaction's number.
	Make   func(number uint64) *Transaction
	Number func(solana.Signature) (number uint64, ok bool)
	// Keys are the addresses by which they are found: all of them name these.
	Keys []solana.PublicKey
}

// fill gives the chain the past's blocks. The bank has slot 1 open, and nothing in it.
func (b *Bank) fill() {
	past := b.opts.Past
	for left := past.Transactions; left > 0; {
		n := min(left, past.PerBlock)
		b.chain.newest().Transactions += n
		b.advance(1)
		left -= n
	}
}

// pastBefore returns how many of the past's transactions are in blocks below a slot.
func (b *Bank) pastBefore(slot uint64) uint64 {
	return min(b.opts.Past.Transactions, (max(slot, 1)-1)*b.opts.Past.PerBlock)
}

// landed makes a transaction of the past, or returns nil if its block is no longer kept.
func (b *Bank) landed(number uint64) *Landed {
	past := b.opts.Past
	slot := 1 + number/past.PerBlock
	if slot < b.chain[0].Slot {
		return nil
	}
	tx := past.Make(number)
	balances := make([]uint64, len(tx.Keys))
	return &Landed{
		Transaction: tx, Block: b.chain[b.chain.search(slot)], Index: int(number % past.PerBlock), //nolint:gosec // less than a block's transactions
		Meta: Meta{
			Fee:         LamportsPerSignature * uint64(len(tx.Signatures)),
			PreBalances: balances, PostBalances: balances, Inner: []rpc.InnerInstruction{}, Logs: []string{},
		},
	}
}

// withPast returns a block with its transactions: those of the past are made.
func (b *Bank) withPast(block *Block) *Block {
	first, end := b.pastBefore(block.Slot), b.pastBefore(block.Slot+1)
	if first == end {
		return block
	}
	whole := *block
	for number := first; number < end; number++ {
		whole.Landed = append(whole.Landed, b.landed(number))
	}
	return &whole
}

// find returns the transaction with a signature, of the past or later, or nil.
func (b *Bank) find(signature solana.Signature) *Landed {
	if l := b.bySignature[signature]; l != nil || b.opts.Past.Number == nil {
		return l
	}
	if number, ok := b.opts.Past.Number(signature); ok {
		return b.landed(number)
	}
	return nil
}

// eachPast calls visit for the past's transactions older than another one, if given, newest first,
// until visit returns false.
func (v View) eachPast(address solana.PublicKey, before *Landed, visit func(*Landed) bool) {
	past := v.bank.opts.Past
	if !slices.Contains(past.Keys, address) {
		return
	}
	end := v.bank.pastBefore(v.block.Slot + 1)
	if before != nil {
		if number, ok := past.Number(before.Signature()); ok {
			end = min(end, number)
		}
	}
	for end > 0 {
		end--
		if l := v.bank.landed(end); l == nil || !visit(l) {
			return
		}
	}
}

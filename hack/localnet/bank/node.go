package bank

// Node is one node of the cluster. It reads and simulates on the blocks that it
// has replayed. All nodes send to the same leader: Bank.Submit.
type Node struct {
	bank *Bank
	// behind is the node's lag in slots.
	behind uint64
}

// Behind returns a node that stays that many slots behind the chain's tip at
// every commitment level. It does not have newer blockhashes, transactions and
// accounts. A lag above MaxBehind counts as MaxBehind.
func (b *Bank) Behind(slots uint64) Node {
	return Node{bank: b, behind: min(slots, b.maxBehind)}
}

// Read is Node.Read on a node that does not lag.
func (b *Bank) Read(c Commitment, fn func(View)) { b.Behind(0).Read(c, fn) }

// Simulate is Node.Simulate on a node that does not lag.
func (b *Bank) Simulate(tx *Transaction, c Commitment, replaceBlockhash bool) *Simulation {
	return b.Behind(0).Simulate(tx, c, replaceBlockhash)
}

// Read calls fn with the node's state at a commitment level. The chain does not
// change until fn returns, so that fn reads one consistent state.
func (n Node) Read(c Commitment, fn func(View)) {
	n.bank.mu.RLock()
	defer n.bank.mu.RUnlock()
	tip := n.tip()
	fn(View{bank: n.bank, tip: tip, block: n.bank.newestAt(tip, c)})
}

func (n Node) tip() *Block {
	chain := n.bank.chain
	open := chain.newest()
	if n.behind == 0 {
		return open
	}
	after := chain.search(open.Slot - min(n.behind, open.Slot) + 1)
	return chain[max(after, 1)-1]
}

// newestAt returns the newest block at commitment level c on a node whose newest
// block is tip.
func (b *Bank) newestAt(tip *Block, c Commitment) *Block {
	confirm, finalize := b.opts.ConfirmAfter, b.opts.FinalizeAfter
	if b.migration.done {
		confirm, finalize = alpenglowFinalizeAfter, alpenglowFinalizeAfter
	}
	switch c {
	case Processed:
		return tip
	case Confirmed:
		return b.frozen(b.chain.belowBlock(tip, confirm), b.migration.confirmed)
	default:
		return b.frozen(b.chain.belowBlock(tip, finalize), b.migration.finalized)
	}
}

// frozen returns a level's block, but during the pause of a migration none above the
// level's block at its boundary.
func (b *Bank) frozen(block, boundary *Block) *Block {
	if b.migration.paused() && block.Height > boundary.Height {
		return boundary
	}
	return block
}

package txmgr_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"sync"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

// modelChain is a chain of blocks in memory, small enough for the model to know which transaction
// can still land, on which fork, and how it ended. It makes blocks only on request. Its tree has
// roots but no real hashes, and proofs are not checked.
type modelChain struct {
	modelRules
	pool *shieldpool.Pool

	mu                        sync.Mutex
	tip, confirmed, finalized *modelBlock
	// slot is the newest slot of all forks: a fork's blocks have later slots than the blocks that
	// they replace.
	slot uint64
	// views are all states of the chain, oldest first: a lagging node reads an old one.
	views  []modelView
	hashes map[solana.Hash]*modelBlock
	// landings are all landings of a signature, on all forks.
	landings map[solana.Signature][]*modelLanding
	// pending are transactions that nodes have forwarded and no block contains.
	pending   map[solana.Signature]*modelTx
	migration modelMigration
	// rent is the rate of rent.
	rent shieldpool.Rent
	// history is how many slots before the finalized slot endpoints can search; 0 for all.
	history uint64
}

// modelRules are the parameters that differ between models.
type modelRules struct {
	// format is the format of the relay's transactions.
	format shieldpool.Format
	// blockhashLife is how many blocks a blockhash is valid. rootHistory is how many roots the
	// program keeps.
	blockhashLife uint64
	rootHistory   int
	// confirmAfter and finalAfter are how many blocks on top make a block confirmed and finalized.
	confirmAfter, finalAfter uint64
	// statusSlots is how many slots the cache of recent statuses contains.
	statusSlots uint64
	// rootFirst: the program checks the root before the nullifiers.
	rootFirst bool
	// maxEarlyFees is the most that early attempts of a submission may cost in vain, in lamports; 0 for
	// no early attempts.
	maxEarlyFees uint64
}

// modelBlock is a block, with the state of the accounts after it.
type modelBlock struct {
	slot, height uint64
	parent       *modelBlock
	hash         solana.Hash
	state        *modelState
}

// ancestorAt returns the block's ancestor at a height, or the block itself.
func (b *modelBlock) ancestorAt(height uint64) *modelBlock {
	for b != nil && b.height > height {
		b = b.parent
	}
	return b
}

// isOn reports whether the block is on the branch that ends in tip.
func (b *modelBlock) isOn(tip *modelBlock) bool { return tip.ancestorAt(b.height) == b }

// modelState is the accounts after a block. It is copied before a change.
type modelState struct {
	leaves uint64
	// roots is the program's root history, the newest last.
	roots    [][32]byte
	spent    map[[32]byte]*modelLanding
	placed   map[[32]byte]uint64
	lamports map[solana.PublicKey]uint64
}

func (s *modelState) clone() *modelState {
	return &modelState{
		leaves: s.leaves, roots: slices.Clone(s.roots), spent: maps.Clone(s.spent),
		placed: maps.Clone(s.placed), lamports: maps.Clone(s.lamports),
	}
}

// modelLanding is a transaction in a block; err is nil when it succeeded.
type modelLanding struct {
	tx    *modelTx
	block *modelBlock
	err   *shieldpool.TransactionError
}

// modelView is the chain as a node reports it at one time.
type modelView struct{ tip, confirmed, finalized *modelBlock }

func newModelChain(rules modelRules, pool *shieldpool.Pool, lamports map[solana.PublicKey]uint64) *modelChain {
	first := modelRoot([32]byte{}, [32]byte{1})
	genesis := &modelBlock{
		slot: 100, height: 90, hash: solana.Hash{1},
		state: &modelState{roots: [][32]byte{first}, spent: map[[32]byte]*modelLanding{}, placed: map[[32]byte]uint64{}, lamports: lamports},
	}
	c := &modelChain{
		modelRules: rules, pool: pool, tip: genesis, confirmed: genesis, finalized: genesis, slot: genesis.slot,
		hashes: map[solana.Hash]*modelBlock{genesis.hash: genesis}, landings: map[solana.Signature][]*modelLanding{},
		pending: map[solana.Signature]*modelTx{}, rent: chainRent(),
	}
	c.views = []modelView{{genesis, genesis, genesis}}
	return c
}

// modelRoot stands for the tree's root after a leaf: the same leaves give the
// same root on every fork. The first byte is zero, so that the root is canonical.
func modelRoot(before, leaf [32]byte) (root [32]byte) {
	sum := sha256.Sum256(append(before[:], leaf[:]...))
	copy(root[1:], sum[:])
	return root
}

// produce makes one block after the skipped slots. It contains the transactions
// that are valid there, in the order of their signatures.
func (c *modelChain) produce(skip uint64, txs []*modelTx) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slot += 1 + skip
	b := &modelBlock{slot: c.slot, height: c.tip.height + 1, parent: c.tip, state: c.tip.state}
	binary.BigEndian.PutUint64(b.hash[:], c.slot)
	b.hash[31] = 2
	slices.SortFunc(txs, func(x, y *modelTx) int { return bytes.Compare(x.signature[:], y.signature[:]) })
	for _, tx := range txs {
		if c.migration.paused() || !c.fits(tx, c.tip) {
			continue
		}
		l := &modelLanding{tx: tx, block: b}
		b.state, l.err = c.run(b.state, l)
		c.landings[tx.signature] = append(c.landings[tx.signature], l)
		delete(c.pending, tx.signature)
	}
	c.hashes[b.hash] = b
	c.tip = b
	if c.migration.paused() {
		c.migrate()
	}
	c.updateCommitments()
}

// change makes one block in which f changes the accounts.
func (c *modelChain) change(f func(*modelState)) {
	c.produce(0, nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tip.state = c.tip.state.clone()
	f(c.tip.state)
}

// updateCommitments updates the confirmed and finalized blocks after the tip has changed. A finalized
// block stays finalized.
func (c *modelChain) updateCommitments() {
	if !c.migration.paused() {
		if at := c.tip.height - min(c.tip.height, c.finalAfter); at > c.finalized.height {
			c.finalized = c.tip.ancestorAt(at)
		}
		c.confirmed = c.tip.ancestorAt(max(c.finalized.height, c.tip.height-min(c.tip.height, c.confirmAfter)))
	}
	c.views = append(c.views, modelView{c.tip, c.confirmed, c.finalized})
}

// fork removes up to depth blocks that are not finalized. It calls isKept for each transaction of
// these blocks: true makes it pending again, false loses it until it is sent again.
func (c *modelChain) fork(depth uint64, isKept func() bool) (undone int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.migration.paused() {
		return 0 // no block of the pause has a transaction
	}
	to := c.tip.ancestorAt(max(c.finalized.height, c.tip.height-min(c.tip.height, depth)))
	var lost []*modelTx
	for _, all := range c.landings {
		if l := all[len(all)-1]; l.block.isOn(c.tip) && !l.block.isOn(to) && !l.tx.foreign {
			lost = append(lost, l.tx)
		}
	}
	slices.SortFunc(lost, func(x, y *modelTx) int { return bytes.Compare(x.signature[:], y.signature[:]) })
	c.tip = to
	for _, tx := range lost {
		if isKept() {
			c.pending[tx.signature] = tx
		}
	}
	c.updateCommitments()
	return len(lost)
}

// pendingTxs returns the pending transactions, in the order of their signatures.
func (c *modelChain) pendingTxs() []*modelTx {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Values(c.pending), func(x, y *modelTx) int { return bytes.Compare(x.signature[:], y.signature[:]) })
}

// forward makes a transaction pending, unless it has landed.
func (c *modelChain) forward(tx *modelTx) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.landing(tx.signature, c.tip) == nil {
		c.pending[tx.signature] = tx
	}
}

// landing finds the landing of a signature on the branch that ends in tip; nil when there is none.
func (c *modelChain) landing(sig solana.Signature, tip *modelBlock) *modelLanding {
	for _, l := range c.landings[sig] {
		if l.block.isOn(tip) {
			return l
		}
	}
	return nil
}

// landed finds the landing of a signature on the branch of the newest block; nil when there is none.
func (c *modelChain) landed(sig solana.Signature) *modelLanding {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.landing(sig, c.tip)
}

// dead reports whether an attempt has not succeeded and can no longer land on any fork:
// the finalized height has passed its last valid height, or the fork of its blockhash died.
func (c *modelChain) dead(a *modelAttempt) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.landing(a.signature, c.finalized); l != nil {
		return l.err != nil
	}
	return c.finalized.height > a.blockhashOf.height+c.blockhashLife || c.finalized.slot > a.blockhashOf.slot && !a.blockhashOf.isOn(c.finalized)
}

// wasEvicted reports whether leaves pushed a root out of the root history on any fork that was ever
// confirmed.
func (c *modelChain) wasEvicted(root [32]byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.views, func(v modelView) bool {
		if slices.Contains(v.confirmed.state.roots, root) {
			return false
		}
		for b := v.confirmed; b != nil; b = b.parent {
			if slices.Contains(b.state.roots, root) {
				return true
			}
		}
		return false
	})
}

// newestView is the view of a node that is up to date.
func (c *modelChain) newestView() modelView {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.views[len(c.views)-1]
}

// olderView is the view of a node that lags by n views.
func (c *modelChain) olderView(n int) modelView {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.views[max(0, len(c.views)-1-n)]
}

// firstSearchable is the first slot that an endpoint with that view can search.
func (c *modelChain) firstSearchable(v modelView) uint64 {
	if c.history == 0 {
		return 0
	}
	return v.finalized.slot - min(v.finalized.slot, c.history)
}

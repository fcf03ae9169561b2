package commitments

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/ledger"
	"github.com/relaypool/relaypool/relay/merkle"
)

const (
	// signaturePage is the most that getSignaturesForAddress gives (Solana).
	signaturePage = 1000
	// appendBatch is how many leaves are stored at once.
	appendBatch = 2000
	// againEvery is how many mismatches pass before a short list is read again from the start.
	againEvery = 100
	// loadPage is how many stored leaves are read at once.
	loadPage = 20_000
)

// Follower reads the chain and serves what it confirms. Safe for concurrent use.
type Follower struct {
	Options

	mu     sync.Mutex
	next   *pass
	report Report

	// running lets one pass run at a time; tree and strikes belong to it.
	running sync.Mutex
	tree    *merkle.Tree
	strikes int
}

// pass is one look at the chain, shared by all who asked before it began.
type pass struct {
	done chan struct{}
	err  error
}

// New checks the options.
func New(o Options) (*Follower, error) {
	if o.Store == nil || o.Chain == nil || o.Tree == nil || o.Pool == nil || o.Log == nil || o.Now == nil || o.Interval <= 0 {
		return nil, errors.New("the commitment index needs every one of its options")
	}
	return &Follower{Options: o, tree: merkle.NewTree()}, nil
}

// Run looks at the chain every interval until ctx ends.
func (f *Follower) Run(ctx context.Context) {
	tick := time.NewTicker(f.Interval)
	defer tick.Stop()
	for {
		_ = f.Sync(ctx) //nolint:errcheck // every pass logs a change of what is wrong, and Status tells
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Sync reads what the chain has confirmed by now. Calls that come while a pass
// is running share the one after it.
func (f *Follower) Sync(ctx context.Context) error {
	f.mu.Lock()
	p := f.next
	if p == nil {
		p = &pass{done: make(chan struct{})}
		f.next = p
		go f.run(context.WithoutCancel(ctx), p)
	}
	f.mu.Unlock()
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run makes a pass. It outlives the caller that began it, because others wait for it.
func (f *Follower) run(ctx context.Context, p *pass) {
	f.running.Lock()
	defer f.running.Unlock()
	f.mu.Lock()
	f.next = nil
	f.mu.Unlock()
	p.err = f.catchUp(ctx)
	if errors.Is(p.err, ErrMoved) {
		p.err = nil // another pod did the work; the next pass goes on from there
	}
	f.tell(ctx, p.err)
	close(p.done)
}

// tell keeps the report's problem, and logs it when it changes.
func (f *Follower) tell(ctx context.Context, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	if problem != f.report.Problem {
		if err != nil {
			f.Log.WarnContext(ctx, "Commitment index is not up to date", "error", err)
		} else {
			f.Log.InfoContext(ctx, "Commitment index is up to date again", "leaves", f.report.Indexed)
		}
	}
	f.report.Problem = problem
}

// Status is how the index stands.
func (f *Follower) Status() Report {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.report
}

// List gives the published leaves from an index on, at most limit.
func (f *Follower) List(ctx context.Context, from uint64, limit int) ([]Leaf, error) {
	pos, err := f.Store.Position(ctx)
	if err != nil || from >= pos.Published {
		return nil, err
	}
	return f.Store.Read(ctx, from, pos.Published, limit)
}

// Find gives the index of a commitment, among those not yet published too.
func (f *Follower) Find(ctx context.Context, commitment [32]byte) (index uint64, ok bool, err error) {
	return f.Store.Find(ctx, commitment)
}

// catchUp reads the slots since the position and publishes what verifies.
func (f *Follower) catchUp(ctx context.Context) error {
	snap, err := f.Tree.Tree(ctx, 0)
	if err != nil {
		return err
	}
	pos, err := f.load(ctx)
	if err != nil {
		return err
	}
	if !f.agrees(snap) || pos.Leaves != snap.Tree.NextIndex {
		if pos, err = f.read(ctx, pos); err != nil {
			return err
		}
		if snap, err = f.Tree.Tree(ctx, 0); err != nil {
			return err
		}
	}
	return f.verify(ctx, pos, snap)
}

// load brings the tree in memory to what is stored, which another pod may have changed.
func (f *Follower) load(ctx context.Context) (Position, error) {
	pos, err := f.Store.Position(ctx)
	if err != nil {
		return pos, err
	}
	if f.tree.NextIndex() > pos.Leaves {
		f.tree = merkle.NewTree()
	}
	for f.tree.NextIndex() < pos.Leaves {
		leaves, err := f.Store.Read(ctx, f.tree.NextIndex(), pos.Leaves, loadPage)
		if err != nil {
			return pos, err
		}
		if len(leaves) == 0 || leaves[0].Index != f.tree.NextIndex() {
			return pos, ErrMoved
		}
		for _, l := range leaves {
			if err := f.grow(l.Commitment); err != nil {
				return pos, err
			}
		}
		if pos.Leaves > loadPage {
			f.Log.InfoContext(ctx, "Loading stored commitments", "loaded", f.tree.NextIndex(), "stored", pos.Leaves)
		}
	}
	return pos, nil
}

func (f *Follower) grow(leaf [32]byte) error {
	e, err := merkle.FromBytes(leaf)
	if err != nil {
		return fmt.Errorf("leaf %d: %w", f.tree.NextIndex(), err)
	}
	return f.tree.Append(&e)
}

// read appends the leaves of every slot since the position, in the order of
// slots and of transactions inside each block.
func (f *Follower) read(ctx context.Context, pos Position) (Position, error) {
	slots, err := f.slots(ctx, pos.Slot)
	if err != nil {
		return pos, err
	}
	var batch []Placed
	for i, slot := range slots {
		block, err := f.Chain.Block(ctx, slot)
		if err != nil {
			return pos, fmt.Errorf("read block: %w", err)
		}
		for _, leaf := range f.leaves(block) {
			batch = append(batch, Placed{leaf, slot})
		}
		if len(batch) < appendBatch && i < len(slots)-1 {
			continue
		}
		if err := f.Store.Append(ctx, pos, batch, slot); err != nil {
			return pos, err
		}
		for _, l := range batch {
			if err := f.grow(l.Commitment); err != nil {
				return pos, err
			}
		}
		pos.Leaves, pos.Slot = pos.Leaves+uint64(len(batch)), slot
		batch = nil
		if len(slots) > appendBatch {
			f.Log.InfoContext(ctx, "Reading commitments from the chain", "slots", i+1, "of", len(slots), "leaves", pos.Leaves)
		}
	}
	return pos, nil
}

// slots lists the slots after one that hold transactions of the tree, oldest
// first. The signatures come newest first and say nothing of the order inside a slot.
func (f *Follower) slots(ctx context.Context, after uint64) ([]uint64, error) {
	var out []uint64
	var before solana.Signature
	for {
		page, err := f.Chain.SignaturesFor(ctx, f.Pool.MerkleTree, before, solana.Signature{}, signaturePage)
		if err != nil {
			return nil, fmt.Errorf("list the tree's transactions: %w", err)
		}
		for _, s := range page {
			if s.Slot <= after {
				return oldestFirst(out), nil
			}
			if !s.Failed {
				out = append(out, s.Slot)
			}
		}
		if len(page) < signaturePage {
			return oldestFirst(out), nil
		}
		before = page[len(page)-1].Signature
	}
}

func oldestFirst(slots []uint64) []uint64 {
	slices.Sort(slots)
	return slices.Compact(slots)
}

// leaves are a block's, in execution order. Failed transactions appended none.
func (f *Follower) leaves(b *ledger.Block) (out [][32]byte) {
	for _, tx := range b.Transactions {
		if tx.Failed {
			continue
		}
		for _, ix := range tx.Instructions {
			if ix.ProgramID.Equals(f.Pool.Profile.ProgramID) && slices.Contains(ix.Accounts, f.Pool.MerkleTree) {
				out = append(out, f.Pool.Profile.Leaves(ix.Data)...)
			}
		}
	}
	return out
}

// agrees reports whether the root of what is read is one that the chain remembers.
func (f *Follower) agrees(snap ledger.Snapshot) bool {
	root := f.tree.Root()
	return snap.Checked && snap.Tree.Headroom(merkle.Bytes(&root)) >= 0
}

// errShort says that the chain has leaves that its history does not give.
var errShort = errors.New("the RPC's history lacks transactions of the tree: give --rpc-url an endpoint with full history")

// errMismatch says that what was read has a root that the chain never had.
var errMismatch = errors.New("the commitments read have another root than the chain: reading them again")

// verify publishes what the chain confirms, and otherwise finds out why not.
func (f *Follower) verify(ctx context.Context, pos Position, snap ledger.Snapshot) error {
	ok := f.agrees(snap)
	f.mu.Lock()
	f.report.Indexed, f.report.ChainNext, f.report.Verified, f.report.At = pos.Leaves, snap.Tree.NextIndex, ok, f.Now()
	f.report.Published = pos.Published
	f.mu.Unlock()
	switch {
	case ok:
		f.strikes = 0
		if pos.Published == pos.Leaves {
			return nil
		}
		if err := f.Store.Publish(ctx, pos, pos.Leaves); err != nil {
			return err
		}
		f.mu.Lock()
		f.report.Published = pos.Leaves
		f.mu.Unlock()
		return nil
	case !snap.Checked:
		return errors.New("the tree account fails its self-check, so nothing can be confirmed against it")
	case snap.Tree.NextIndex > pos.Leaves+uint64(len(snap.Tree.History)):
		return fmt.Errorf("%w: read %d of %d leaves", errShort, pos.Leaves, snap.Tree.NextIndex)
	case snap.Slot < pos.Slot:
		return nil // the account was read before the blocks were: the next pass compares again
	}
	return f.strike(ctx, pos, snap)
}

// strike forgets what does not verify: first what was not published, then, when
// that does not help, everything, because the fork of what was published may have died.
// A list that stays short after that is one that the endpoint cannot complete.
func (f *Follower) strike(ctx context.Context, pos Position, snap ledger.Snapshot) error {
	f.strikes++
	if f.strikes%againEvery > 1 && pos.Leaves < snap.Tree.NextIndex {
		return fmt.Errorf("%w: read %d of %d leaves", errShort, pos.Leaves, snap.Tree.NextIndex)
	}
	keep := pos.Published
	if f.strikes > 1 || pos.Published == pos.Leaves {
		keep = 0
	}
	if err := f.Store.Truncate(ctx, pos, keep); err != nil {
		return err
	}
	f.tree = merkle.NewTree()
	return fmt.Errorf("%w: kept %d of %d leaves", errMismatch, keep, pos.Leaves)
}

package commitments

import (
	"context"
	"errors"
	"time"

	"github.com/relaypool/relaypool/relay/merkle"
	"github.com/relaypool/relaypool/relay/onchain"
)

const (
	// stuckAfter is how long an endpoint's list of transactions may be behind its accounts.
	stuckAfter = 10 * time.Second
	// aheadAfter is how long the tree may be behind the blocks: longer than an endpoint that counts is behind another.
	aheadAfter = time.Minute
)

var (
	// errShort reports that the RPC's history lacks leaves that the chain has.
	errShort = errors.New("the RPC's history lacks transactions of the tree: give --rpc-url an endpoint with full history")
	// errMismatch reports that the chain does not have the root of the stored leaves.
	errMismatch = errors.New("the stored commitments have another root than the chain: reading them again")
	// errUnchecked reports that the leaves cannot be compared with the account.
	errUnchecked = errors.New("the tree account fails its self-check, so nothing can be confirmed against it: check the pool's profile")
)

// verdict is the result of comparing the stored leaves with the chain's tree.
type verdict int

const (
	confirmed    verdict = iota // the chain's root history has the leaves' root at their number
	unchecked                   // the account is inconsistent
	inconclusive                // the account is older than the blocks, may be made up, or has no root at their number
	wrong                       // leaves are missing, in the wrong order, or from an abandoned fork
)

// classify compares the leaves' root with the newest tree account. leavesBefore is the
// number of leaves that the chain had before the blocks were read.
func classify(pos Position, root [32]byte, leavesBefore uint64, snap onchain.Snapshot) verdict {
	shown, known := snap.Tree.RootAt(pos.Leaves)
	oldest, newest := window(snap)
	switch {
	case !snap.Checked:
		return unchecked
	case snap.Provisional:
		return inconclusive
	case known && shown == root:
		return confirmed
	case snap.Slot < pos.Slot, snap.Contested:
		return inconclusive
	case known || pos.Leaves > newest || pos.Leaves < min(oldest, leavesBefore):
		return wrong
	default:
		return inconclusive
	}
}

// comparison is one comparison of the stored leaves with the chain.
type comparison struct {
	pos          Position
	snap         onchain.Snapshot
	leavesBefore uint64 // leaves on the chain before the blocks were read
	verdict
}

// complete reports whether the stored leaves are all that the chain had, and confirmed.
func (c *comparison) complete() bool {
	return c.verdict == confirmed && c.pos.Leaves == c.snap.Tree.NextIndex
}

func (f *Follower) compare(pos Position, leavesBefore uint64, snap onchain.Snapshot) comparison {
	root := f.tree.Root()
	return comparison{pos, snap, leavesBefore, classify(pos, merkle.Bytes(&root), leavesBefore, snap)}
}

// update reads the slots since the position and publishes the leaves that the chain confirms.
func (f *Follower) update(ctx context.Context, n need) error {
	snap, err := f.Tree.AgreedTree(ctx, max(n.slot, f.readTo), n.maxAge)
	if err != nil {
		return err
	}
	// If somebody says that there is something to read, other pods are likely to read it now. The first pass,
	// which loads all leaves, does not keep them waiting.
	if f.tree == nil || n.slot <= f.readTo {
		if _, done, err := f.check(ctx, snap); done || err != nil {
			return err
		}
	}
	defer f.Store.Lock(ctx)()
	c, done, err := f.check(ctx, snap) // another pod may have read the blocks meanwhile
	if done || err != nil {
		return err
	}
	return f.catchUp(ctx, c)
}

// check compares the leaves that are stored with a tree that is not older than their blocks. If there is nothing
// to read, or not yet, done is true.
func (f *Follower) check(ctx context.Context, snap onchain.Snapshot) (c comparison, done bool, err error) {
	pos, err := f.load(ctx)
	if err != nil {
		return c, false, err
	}
	if snap.Slot < pos.Slot {
		if snap, err = f.Tree.AgreedTree(ctx, pos.Slot, maxTreeAge); err != nil {
			return c, false, err
		}
	}
	if c = f.compare(pos, snap.Tree.NextIndex, snap); c.complete() {
		f.forgetChanges(pos.Slot)
		return c, true, f.applyVerdict(ctx, c)
	}
	if f.Now().Before(f.retryAt) {
		f.report(c)
		return c, true, f.lastFailure
	}
	return c, false, nil
}

// catchUp reads the slots after those of the comparison, and those that a fork has replaced.
func (f *Follower) catchUp(ctx context.Context, c comparison) error {
	read, done, err := f.readChanged(ctx, c.pos, c.snap)
	if err != nil {
		return err
	}
	if done {
		return f.applyVerdict(ctx, read)
	}
	if c, err = f.advance(ctx, c.pos, c.snap); err != nil {
		return err
	}
	if c.verdict == wrong && !f.rebuilt && !f.trusted {
		if err := f.rebuild(ctx, c.pos); err != nil {
			return err
		}
		c = f.compare(c.pos, c.leavesBefore, c.snap)
	}
	if stuck := f.isStuck(c); stuck || c.verdict == wrong {
		f.rewinds++
		again := c.verdict == inconclusive && f.distrust() // the chain has not reached the blocks' slot
		if c, err = f.readAgain(ctx, c); err != nil {
			return err
		}
		if !again && (c.verdict == wrong || f.isStuck(c)) && f.distrust() {
			if c, err = f.readAgain(ctx, c); err != nil {
				return err
			}
		}
	}
	return f.applyVerdict(ctx, c)
}

func (f *Follower) distrust() bool {
	f.distrusts++
	return f.Chain.Distrust(f.distrusts - 1)
}

// readAgain removes leaves, and reads from there on.
func (f *Follower) readAgain(ctx context.Context, c comparison) (comparison, error) {
	if err := f.rewind(ctx, c.pos, c.snap); err != nil {
		return c, err
	}
	pos, err := f.load(ctx)
	if err != nil {
		return c, err
	}
	return f.advance(ctx, pos, c.snap)
}

// advance reads new slots, and then compares the leaves with the tree. It reads the tree again only if
// the tree from before does not confirm all leaves, because the rate of reads is limited, and clients
// wait for the outcome of what landed.
func (f *Follower) advance(ctx context.Context, pos Position, snap onchain.Snapshot) (comparison, error) {
	leavesBefore := snap.Tree.NextIndex
	pos, err := f.read(ctx, pos)
	if err != nil && ctx.Err() == nil && !errors.Is(err, ErrMoved) {
		f.distrust()
	}
	if errors.Is(err, errShort) {
		f.report(f.compare(pos, leavesBefore, snap))
		return comparison{}, f.scheduleRetry(err)
	}
	if err != nil {
		return comparison{}, err
	}
	if c := f.compare(pos, leavesBefore, snap); c.complete() {
		return c, nil
	}
	if snap, err = f.Tree.AgreedTree(ctx, 0, 0); err != nil {
		return comparison{}, err
	}
	return f.compare(pos, leavesBefore, snap), nil
}

// isStuck reports whether the stored leaves have been confirmed but incomplete for longer than
// stuckAfter, or of slots that the tree has not reached for longer than aheadAfter. A shorter time proves
// nothing, because an endpoint's list of transactions may be a moment behind its accounts, and one
// endpoint behind another. After a rewind, incomplete leaves do not require any time.
func (f *Follower) isStuck(c comparison) bool {
	incomplete := c.verdict == confirmed && c.pos.Leaves < c.leavesBefore
	ahead := c.verdict == inconclusive && c.snap.Slot < c.pos.Slot && !c.snap.Provisional && !c.snap.Contested
	if !incomplete && !ahead {
		f.stuckSince = time.Time{}
		return false
	}
	if f.stuckSince.IsZero() || c.pos.Leaves != f.stuckAt {
		f.stuckAt, f.stuckSince = c.pos.Leaves, f.Now()
	}
	since := f.Now().Sub(f.stuckSince)
	return incomplete && (f.rewinds > 0 || since > stuckAfter) || since > aheadAfter
}

package commitments

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/relaypool/relaypool/relay/merkle"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
)

// maxMoveTries is how often a pass is tried if another pod changes the index during each try.
const maxMoveTries = 3

// Follower reads leaves from the chain and serves those that the chain confirms. Safe for
// concurrent use.
type Follower struct {
	Options

	// lock holds a token while a pass runs. Only the running pass uses the fields from tree to
	// newest.
	lock       chan struct{}
	tree       *merkle.Tree // nil before the first pass
	generation uint64       // of the stored leaves that tree was built from
	readTo     uint64       // the slot of the position when it was last loaded
	rebuilt    bool         // this follower has hashed all stored leaves once
	trusted    bool         // the chain has confirmed the tree, so its checkpoint was right
	// rewinds, distrusts and failures count the rewinds, the calls of Distrust and the failed attempts since the
	// chain last confirmed all leaves. Until retryAt, a pass reads no blocks and fails with lastFailure.
	rewinds, distrusts, failures int
	retryAt                      time.Time
	lastFailure                  error
	// stuckAt is the number of leaves at which the index has been stuck since stuckSince.
	stuckAt    uint64
	stuckSince time.Time
	// Until listUntil, a pass lists the slots that it reads.
	listUntil time.Time
	newest    newest

	noticed chan struct{} // holds a token after a Notice
	quiet   int           // intervals since a change was reported, or something was missing; only Run uses it

	// processedReads runs one read at a time. Only the running read uses processed.
	processedReads singleflight.Group
	processed      processed

	mu        sync.Mutex
	started   uint64   // number of passes that have started
	needed    need     // by those who wait for the next pass, and for the changes that were reported
	changed   []uint64 // slots at which the tree is said to have changed, in order
	last      outcome
	status    Report
	final     finality
	published published
	// processedRoots has when each of them was found.
	processedRoots map[[32]byte]time.Time
	kind           string // the kind of the problem that was last logged
}

// outcome is the result of the newest finished pass.
type outcome struct {
	number uint64
	err    error
}

// New checks the options and makes a Follower.
func New(o Options) (*Follower, error) {
	if o.Store == nil || o.Chain == nil || o.Tree == nil || o.Pool == nil || o.Log == nil || o.Now == nil || o.Finalized == nil || o.Subscribed == nil || o.Interval <= 0 {
		return nil, errors.New("the commitment index needs all of its options")
	}
	if o.CheckpointEvery == 0 {
		o.CheckpointEvery = defaultCheckpointEvery
	}
	return &Follower{Options: o, lock: make(chan struct{}, 1), noticed: make(chan struct{}, 1), processedRoots: map[[32]byte]time.Time{}}, nil
}

// Sync reads what the chain had confirmed at the slot, unless another process of the fleet has read it. With
// slot 0 it reads what the chain has confirmed so far. Only one pass runs at a time. All callers that
// were waiting when a pass started get its result. If ctx ends during a pass, the leaves that the
// pass has stored remain.
func (f *Follower) Sync(ctx context.Context, slot uint64) error {
	f.noteChange(slot)
	return f.pass(ctx, f.require(upTo(slot)))
}

// require adds to what the next pass needs. It returns the number of passes that have started.
func (f *Follower) require(n need) (started uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.needed = f.needed.and(n)
	return f.started
}

// pass waits for the end of a pass that starts after the first startedBefore, or runs one.
func (f *Follower) pass(ctx context.Context, startedBefore uint64) error {
	select {
	case f.lock <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-f.lock }()
	f.mu.Lock()
	if f.last.number > startedBefore {
		defer f.mu.Unlock()
		return f.last.err
	}
	f.started++
	pass := f.started
	n := f.needed
	f.needed = recentTree
	f.mu.Unlock()

	err := f.update(ctx, n)
	for range maxMoveTries - 1 {
		if !errors.Is(err, ErrMoved) {
			break
		}
		err = f.update(ctx, n)
	}
	if errors.Is(err, ErrMoved) {
		err = nil // other pods do this work
		f.mu.Lock()
		f.published = published{} // they may have rewound it
		f.mu.Unlock()
	}
	if err != nil {
		f.require(n) // the next pass has to fulfil it
	}
	if ctx.Err() != nil {
		return ctx.Err() // the caller stopped waiting, which shows nothing about the index
	}
	f.recordOutcome(ctx, outcome{pass, err})
	return err
}

// recordOutcome stores the outcome. It logs the outcome only if the kind of problem has changed,
// because the figures in a problem's text change with every leaf.
func (f *Follower) recordOutcome(ctx context.Context, o outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = o
	f.status.Problem = ""
	if o.err != nil {
		f.status.Problem = public(o.err)
	}
	kind := kindOf(o.err)
	if kind == f.kind {
		return
	}
	f.kind = kind
	if o.err != nil {
		f.Log.WarnContext(ctx, "commitment index not up to date", "error", o.err)
	} else {
		f.Log.InfoContext(ctx, "commitment index up to date again", "leaves", f.status.Indexed)
	}
}

func kindOf(err error) string {
	if err == nil {
		return ""
	}
	for _, kind := range []error{errShort, errMismatch, errUnchecked, onchain.ErrUnavailable, onchain.ErrSlotSkipped} {
		if errors.Is(err, kind) {
			return kind.Error()
		}
	}
	return public(err)
}

// public returns the part of an error that clients may read at GET /health. For a refusal this
// is only its message, because its cause may name the database's host.
func public(err error) string {
	if r, ok := refusal.As(err); ok {
		return r.Message
	}
	return err.Error()
}

// report stores the state of the index and of the chain's tree.
func (f *Follower) report(c comparison) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status.Indexed, f.status.Published, f.status.ChainNext = c.pos.Leaves, c.pos.Published, c.snap.Tree.NextIndex
	f.status.Verified, f.status.At = c.verdict == confirmed, f.Now()
}

// countUnknown counts transactions of unknown versions in blocks up to the slot, and logs the first ones.
func (f *Follower) countUnknown(ctx context.Context, slot, transactions uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if transactions > 0 && f.status.UnknownVersions == 0 {
		f.Log.WarnContext(ctx, "blocks hold transactions of an unknown version; update the relay", "up_to_slot", slot, "transactions", transactions)
	}
	f.status.UnknownVersions += transactions
}

// Status returns the state of the index.
func (f *Follower) Status() Report {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status
}

// FindLanded returns the highest leaf index of each commitment, after a Sync for the slots. If the Sync fails, it
// returns the error with the leaves that are stored.
func (f *Follower) FindLanded(ctx context.Context, slots []uint64, commitments [][32]byte) (map[[32]byte]uint64, error) {
	for _, slot := range slots {
		f.noteChange(slot)
	}
	err := f.Sync(ctx, slices.Max(append(slots, 0)))
	if err == nil {
		if found := f.findRecent(commitments); len(found) == len(commitments) {
			return found, nil
		}
	}
	found, findErr := f.Find(ctx, commitments)
	return found, errors.Join(err, findErr)
}

// Find returns the highest leaf index of each commitment that is stored, as Store.Find does.
func (f *Follower) Find(ctx context.Context, commitments [][32]byte) (map[[32]byte]uint64, error) {
	return f.Store.Find(ctx, commitments)
}

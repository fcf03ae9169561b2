package commitments

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/merkle"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
)

// movedTries is how often a pass begins anew in a row because another pod was faster.
const movedTries = 3

// Follower reads the chain and serves what it confirms. Safe for concurrent use.
type Follower struct {
	Options

	// turn holds a token while a pass runs; what follows belongs to the pass.
	turn       chan struct{}
	tree       *merkle.Tree
	generation uint64 // of the stored leaves that tree is made of
	// strikes and rests count the rewinds, and those that did not help, since the
	// chain last confirmed what is stored. Until retryAt nothing is tried,
	// because standing says why it would not help.
	strikes, rests int
	retryAt        time.Time
	standing       error
	// stuckAt leaves since stuckSince.
	stuckAt    uint64
	stuckSince time.Time

	mu     sync.Mutex
	begun  uint64 // passes
	last   outcome
	status Report
	kind   string // of the problem that was logged
}

// outcome is how the newest finished pass ended.
type outcome struct {
	pass uint64
	err  error
}

// New checks the options.
func New(o Options) (*Follower, error) {
	if o.Store == nil || o.Chain == nil || o.Tree == nil || o.Pool == nil || o.Log == nil || o.Now == nil || o.Interval <= 0 {
		return nil, errors.New("the commitment index needs every one of its options")
	}
	return &Follower{Options: o, turn: make(chan struct{}, 1), tree: merkle.NewTree()}, nil
}

// Run looks at the chain every interval until ctx ends.
func (f *Follower) Run(ctx context.Context) {
	tick := time.NewTicker(f.Interval)
	defer tick.Stop()
	for {
		_ = f.Sync(ctx) // every pass logs a change of what is wrong, and Status tells
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Sync reads what the chain has confirmed by now. One pass runs at a time, and
// one that began after the call serves all who were waiting for their turn.
// What a pass has stored stays when ctx ends it.
func (f *Follower) Sync(ctx context.Context) error {
	f.mu.Lock()
	called := f.begun
	f.mu.Unlock()
	select {
	case f.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-f.turn }()
	f.mu.Lock()
	if f.last.pass > called {
		defer f.mu.Unlock()
		return f.last.err
	}
	f.begun++
	pass := f.begun
	f.mu.Unlock()

	err := f.pass(ctx)
	for range movedTries - 1 {
		if !errors.Is(err, ErrMoved) {
			break
		}
		err = f.pass(ctx)
	}
	if errors.Is(err, ErrMoved) {
		err = nil // other pods do the work
	}
	if ctx.Err() != nil {
		return ctx.Err() // the caller's impatience says nothing of the index
	}
	f.logOnce(ctx, outcome{pass, err})
	return err
}

// logOnce keeps the outcome, and logs when the kind of problem changes: the
// figures in one change with every leaf.
func (f *Follower) logOnce(ctx context.Context, o outcome) {
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

// public is what clients may read of an error at GET /health: of a refusal its
// message, because its cause may name the database's host.
func public(err error) string {
	if r, ok := refusal.As(err); ok {
		return r.Message
	}
	return err.Error()
}

// report keeps how the index stands beside the chain's tree.
func (f *Follower) report(l look) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status.Indexed, f.status.Published, f.status.ChainNext = l.pos.Leaves, l.pos.Published, l.snap.Tree.NextIndex
	f.status.Verified, f.status.At = l.verdict == confirmed, f.Now()
}

// Status is how the index stands.
func (f *Follower) Status() Report {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status
}

// Find gives the newest place in the tree of each commitment that has one. It
// knows leaves that the chain has confirmed and that are not published yet, too.
func (f *Follower) Find(ctx context.Context, commitments [][32]byte) (map[[32]byte]uint64, error) {
	return f.Store.Find(ctx, commitments)
}

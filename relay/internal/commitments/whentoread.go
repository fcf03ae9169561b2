package commitments

import (
	"context"
	"time"
)

const (
	// noticeDelay is how long a notification waits for another cause of a pass, such as a submission
	// that has landed. Without a delay, that one would wait for a second read of the tree.
	noticeDelay = 200 * time.Millisecond
	// noticedIntervals is how many intervals pass without a read while notifications come. An endpoint
	// that leaves one out then delays the list by so much.
	noticedIntervals = 4
	// ownPassEvery is how often each process compares its leaves with the chain, whoever else does.
	ownPassEvery = 30 * time.Second
)

// Run follows the chain until ctx ends. It reads the chain after each Notice, and otherwise when an interval
// has passed in which no process of the fleet did. While the index is not up to date, it reads every interval.
func (f *Follower) Run(ctx context.Context) {
	tick := time.NewTicker(f.Interval)
	defer tick.Stop()
	for {
		_ = f.Sync(ctx) // each pass logs a new kind of problem, and Status reports it
		if !f.awaitDue(ctx, tick.C) {
			return
		}
	}
}

// Notice is called when an endpoint reports that the tree has changed.
func (f *Follower) Notice() {
	select {
	case f.noticed <- struct{}{}:
	default: // one is waiting
	}
}

// awaitDue waits until a pass is due. It returns false when ctx ends.
func (f *Follower) awaitDue(ctx context.Context, tick <-chan time.Time) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-f.noticed:
			if f.nobodyReads(ctx) {
				return true
			}
		case <-tick:
			if f.due(ctx) {
				return true
			}
		}
	}
}

// nobodyReads waits for noticeDelay, and reports whether no pass has started meanwhile.
func (f *Follower) nobodyReads(ctx context.Context) bool {
	before := f.passes()
	select {
	case <-ctx.Done():
		return false
	case <-time.After(noticeDelay):
		return f.passes() == before
	}
}

func (f *Follower) passes() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.started
}

// due reports whether this process has to read the chain although no endpoint reported a change.
func (f *Follower) due(ctx context.Context) bool {
	if r := f.Status(); r.Problem != "" || !r.Verified || r.Lag() > 0 || f.Now().Sub(r.At) >= ownPassEvery {
		return true
	}
	every := f.Interval
	if f.Notified() {
		every *= noticedIntervals
	}
	mine, err := f.Store.TakeTurn(ctx, every-f.Interval/4) // a tick may come a little early
	return mine || err != nil                              // a pass reports what is wrong with the database
}

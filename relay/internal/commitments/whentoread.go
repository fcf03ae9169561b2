package commitments

import (
	"context"
	"time"
)

const (
	// noticeDelay is how long a notification waits for another cause of a pass, such as a submission
	// that has landed. Without a delay, that one would wait for a second read of the tree.
	noticeDelay = 200 * time.Millisecond
	// quietIntervals is how many intervals without a change pass before reads become rare, and then between two
	// of them. An endpoint that fails to report a change delays the list by so much.
	quietIntervals = 4
)

// Run follows the chain until ctx ends. It reads the chain soon after each Notice, and every interval. Reads become
// rare while the index is up to date, and changes would be reported.
func (f *Follower) Run(ctx context.Context) {
	tick := time.NewTicker(f.Interval)
	defer tick.Stop()
	for {
		_ = f.pass(ctx, f.passes()) // each pass logs a new kind of problem, and Status reports it
		if !f.awaitDue(ctx, tick.C) {
			return
		}
	}
}

// Notice is called when an endpoint reports that the tree has changed at the slot; 0 if it does not say when.
func (f *Follower) Notice(slot uint64) {
	f.noteChange(slot)
	f.require(upTo(slot))
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
			// The endpoint that is read, or the second one that has to agree, may not have the change yet.
			f.quiet = 0
			if f.nobodyReads(ctx) {
				return true
			}
		case <-tick:
			if f.due() {
				f.require(need{maxAge: f.readInterval() / 2}) // of another process: this one has read before that
				return true
			}
		}
	}
}

// readInterval returns the time between two reads.
func (f *Follower) readInterval() time.Duration {
	if f.quiet > quietIntervals {
		return quietIntervals * f.Interval
	}
	return f.Interval
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

// due is called every interval, and reports whether the chain has to be read.
func (f *Follower) due() bool {
	if r := f.Status(); r.Problem != "" || !r.Verified || r.Lag() > 0 || !f.Subscribed() {
		f.quiet = 0
		return true
	}
	f.quiet++
	return f.quiet <= quietIntervals || f.quiet%quietIntervals == 0
}

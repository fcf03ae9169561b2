package txmgr

import (
	"context"
	"time"
)

// PollSoon brings the next poll of the chain forward.
func (m *Manager) PollSoon() { signal(m.tracker.pollSoon) }

// awaitPoll waits for the next poll. notified is true if a notification brought the poll forward;
// the poll then comes at least a quarter of the interval after the one before. ok is false if ctx
// ended.
func (t *tracker) awaitPoll(ctx context.Context, due <-chan time.Time) (notified, ok bool) {
	earliest := time.Now().Add(t.m.Timing.Poll / 4)
	select {
	case <-ctx.Done():
		return false, false
	case <-due:
		return false, true
	case <-t.pollSoon:
		return true, sleep(ctx, time.Until(earliest))
	}
}

// pollInterval returns the time until the next poll. After a poll that a notification brought
// forward, it is a little longer than usual, so that the next notification can come first. Polls
// then follow the notifications, instead of coming in addition to them.
func (t *tracker) pollInterval(notified bool) time.Duration {
	interval := t.m.Timing.Poll
	if notified {
		interval += interval / 4
	}
	return interval
}

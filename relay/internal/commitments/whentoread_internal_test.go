package commitments

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// The pass of a submission that has landed reads what a notification is about.
func TestANotificationWaitsForAnotherPass(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		// passAfter and endAfter are when a pass starts and the context ends; never if 0.
		passAfter, endAfter time.Duration
		want                bool
	}{
		"nobody reads":            {want: true},
		"a pass starts meanwhile": {passAfter: noticeDelay / 2},
		"a pass starts too late":  {passAfter: 2 * noticeDelay, want: true},
		"the relay stops":         {endAfter: noticeDelay / 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := new(Follower)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.endAfter > 0 {
					time.AfterFunc(tt.endAfter, cancel)
				}
				if tt.passAfter > 0 {
					time.AfterFunc(tt.passAfter, func() { f.mu.Lock(); defer f.mu.Unlock(); f.started++ })
				}
				if got := f.nobodyReads(ctx); got != tt.want {
					t.Errorf("nobodyReads returned %v, want %v", got, tt.want)
				}
				time.Sleep(3 * noticeDelay)
			})
		})
	}
}

package commitments

import (
	"bytes"
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

func TestTheChainIsReadLessOftenWhileNothingChanges(t *testing.T) {
	t.Parallel()
	upToDate := Report{Indexed: 4, Published: 4, ChainNext: 4, Verified: true}
	for name, tt := range map[string]struct {
		subscribed bool
		change     func(*Report)
		noticeAt   int    // the interval before whose end an endpoint reports a change; never if 0
		want       string // intervals: x with a read, 2 with one for the report and one at the end, - without
	}{
		"changes would be reported":  {subscribed: true, want: "xxxx---x---x---x"},
		"one is reported":            {subscribed: true, noticeAt: 7, want: "xxxx--2xxx---x--"},
		"nothing would be reported":  {want: "xxxxxxxxxxxxxxxx"},
		"leaves are missing":         {subscribed: true, change: func(r *Report) { r.ChainNext = 6 }, want: "xxxxxxxxxxxxxxxx"},
		"the last pass failed":       {subscribed: true, change: func(r *Report) { r.Problem = "short" }, want: "xxxxxxxxxxxxxxxx"},
		"the leaves are not checked": {subscribed: true, change: func(r *Report) { r.Verified = false }, want: "xxxxxxxxxxxxxxxx"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &Follower{Options: Options{Subscribed: func() bool { return tt.subscribed }, Interval: time.Second}, noticed: make(chan struct{}, 1), status: upToDate, needed: recentTree}
				if tt.change != nil {
					tt.change(&f.status)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				tick, reads, last := make(chan time.Time), 0, need{}
				go func() {
					for f.awaitDue(ctx, tick) {
						reads++
						last, f.needed = f.needed, recentTree
					}
				}()
				var got []byte
				for i := 1; i <= len(tt.want); i++ {
					before := reads
					if i == tt.noticeAt {
						f.Notice(0)
						time.Sleep(2 * noticeDelay)
					}
					tick <- time.Time{}
					synctest.Wait()
					wantAge := time.Second / 2 // so that this process does not use its own last read
					if bytes.HasSuffix(got, []byte("---")) {
						wantAge = 2 * time.Second
					}
					if reads > before && last != (need{maxAge: wantAge}) {
						t.Errorf("the read after %s needs %+v, want a tree that was read at most %s ago", got, last, wantAge)
					}
					got = append(got, "-x2"[reads-before])
				}
				if string(got) != tt.want {
					t.Errorf("reads at %s, want %s", got, tt.want)
				}
			})
		})
	}
}

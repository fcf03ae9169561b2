package commitments_test

import (
	"context"
	"testing"
	"time"
)

func TestANoticeIsEnoughForAPass(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	f := newFollower(t, h, newStore(t, h))
	f.Interval = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { f.Run(ctx); close(done) }()
	defer func() { cancel(); <-done }()
	eventually(t, "the first pass ends", func() bool { return f.Status().Verified })
	for slot := uint64(1); slot <= 3; slot++ {
		h.block(slot, h.transact())
		f.Notice()
		f.Notice() // neither waits
		eventually(t, "the noticed leaves are published", func() bool { return f.Status().Published == 2*slot })
	}
}

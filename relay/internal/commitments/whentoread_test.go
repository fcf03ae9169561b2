package commitments_test

import (
	"context"
	"testing"
	"time"

	"github.com/relaypool/relaypool/relay/internal/commitments"
)

func TestANoticeIsEnoughForAPass(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	f, err := commitments.New(commitments.Options{
		Store: newStore(t, h), Chain: h, Tree: h, Pool: h.pool, Log: discard(), Now: h.now, Interval: time.Hour,
		Finalized: h.finalizedSlot, Subscribed: func() bool { return true },
	})
	must(t, err)
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

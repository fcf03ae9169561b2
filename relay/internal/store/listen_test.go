package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/refusal"
)

func TestListenReceivesOutcomesAndDueWork(t *testing.T) {
	t.Parallel()
	s := open(t)
	other := open(t) // another schema: s is not notified of its outcomes
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	done, due := make(chan uuid.UUID, 100), make(chan struct{}, 100)
	listenCtx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- s.Listen(listenCtx, submission.Notifications{Done: func(id uuid.UUID) { done <- id }, Due: func() { due <- struct{}{} }})
	}()
	for connected := false; !connected; { // perhaps the listener is not connected yet
		ok(t, s.NotifyDue(ctx))
		select {
		case <-due:
			connected = true
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			t.Fatal("no notification within 30 s")
		}
	}
	w := worker(t, s)
	otherSchema := acceptLeased(t, other, withdrawal(1, 0))
	complete(t, other, landing(otherSchema.Lease, 1))
	a, b := stateOf(t, s, submission.Processing, w, 1), stateOf(t, s, submission.Processing, w, 2)
	failed := stateOf(t, s, submission.Processing, w, 3)
	if lost, err := s.Complete(ctx, []submission.Landing{landing(a, 1), landing(b, 2)}); err != nil || len(lost) > 0 {
		t.Fatalf("complete: %v, lost %v", err, lost)
	}
	finalize(t, s, landing(a, 1)) // sends no notification: the client has its answer
	ok(t, s.Fail(ctx, failed, refusal.New(refusal.RootNotFound, "stale")))
	notified := map[uuid.UUID]int{}
	for range 3 {
		select {
		case id := <-done:
			notified[id]++
		case <-ctx.Done():
			t.Fatalf("notified of %v within 30 s, want three outcomes", notified)
		}
	}
	for _, l := range []txmgr.Lease{a, b, failed} {
		if notified[l.ID] != 1 {
			t.Errorf("%d notifications of %s, want one", notified[l.ID], l.ID)
		}
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Listen returns %v, want context.Canceled", err)
	}
	if len(done) > 0 {
		t.Errorf("also notified of %s, want no further notification", <-done)
	}
}

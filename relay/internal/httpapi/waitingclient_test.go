package httpapi_test

import (
	"context"
	"log/slog"
	"net"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/httpapi"
	"github.com/relaypool/relaypool/relay/internal/submission"
)

// deepCall needs much stack, as the calls of the database driver do.
func deepCall() {
	var frame [100 << 10]byte
	keep(frame[:])
}

//go:noinline
func keep(b []byte) { b[0]++ }

// pendingStore is a database whose one submission stays pending. Each read is told to read.
type pendingStore struct {
	submission.Store
	read chan struct{}
}

func (d pendingStore) Get(_ context.Context, id uuid.UUID) (*submission.Submission, error) {
	d.read <- struct{}{}
	return &submission.Submission{ID: id, State: submission.Pending}, nil
}

// notifier hands over the function that tells of a submission's end.
type notifier chan func(uuid.UUID)

func (n notifier) Listen(ctx context.Context, h submission.Notifications) error {
	n <- h.Done
	<-ctx.Done()
	return ctx.Err()
}

// TestAWaitingClientHoldsASmallStack: a stack keeps its size while it is in use, and a collection of
// garbage halves it at most. The test is not parallel, because it reads the stacks of the whole
// process, and it stops collections, which would hide a part.
func TestAWaitingClientHoldsASmallStack(t *testing.T) {
	const clients, most = 64, 32 << 10 // most leaves room for the race detector; without it 14 KiB are held
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	store, listener := pendingStore{read: make(chan struct{})}, make(notifier)
	reader, err := submission.NewReader(store, struct{ submission.LeafIndex }{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	go reader.Run(t.Context(), listener, func() {})
	<-listener
	accepted := &submission.Submission{ID: uuid.UUID{1}, State: submission.Pending}
	f := newFixture(t, &domains{
		submit: func(context.Context, submission.Request) (*submission.Submission, error) {
			deepCall()
			return accepted, nil
		},
		wait: reader.Wait,
	})
	server := httptest.NewUnstartedServer(f.handler)
	server.Config = httpapi.NewServer("", f.handler, time.Minute, slog.New(slog.DiscardHandler))
	server.Start()
	defer server.Close()
	before := stacks()
	for n := range clients {
		// A plain connection, because a client of net/http has goroutines of its own.
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if err := post("/transact", transactBody()).Write(c); err != nil {
			t.Fatal(err)
		}
		for reader.Waiting() <= n {
			runtime.Gosched()
		}
	}
	if each := (stacks() - before) / clients; each > most {
		t.Errorf("a client that waits holds %d bytes of stack, want at most %d: let deep calls run apart", each, most)
	}
	reader.Close()
	for range clients {
		<-store.read
	}
}

// stacks returns how many bytes of stack all goroutines hold.
func stacks() int {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64())
}

package chain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/relaypool/relaypool/hack/testca"
	"github.com/relaypool/relaypool/relay/onchain"
)

// privateNode is an RPC node that answers getSlot and getGenesisHash, and sends a notification to
// each WebSocket.
func privateNode(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != "" {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = conn.CloseNow() }()
		for _, message := range []string{`{"id":1,"result":1}`, `{"method":"accountNotification"}`} {
			if conn.Write(r.Context(), websocket.MessageText, []byte(message)) != nil {
				return
			}
		}
		<-conn.CloseRead(r.Context()).Done()
		return
	}
	var call struct{ Method string }
	if json.NewDecoder(r.Body).Decode(&call) != nil {
		return
	}
	result := "77"
	if call.Method == "getGenesisHash" {
		result = `"` + hashA.String() + `"`
	}
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"result":%s}`, result)
}

func TestEndpointBehindAPrivateAuthority(t *testing.T) {
	t.Parallel()
	right, wrong := testca.New(t), testca.New(t)
	server := right.Serve(t, http.HandlerFunc(privateNode))
	path, log := wrong.File(t), new(lockedBuffer)
	ahead := new(atomic.Int64)
	e, err := NewEndpoints(EndpointsOptions{
		Endpoints: []Endpoint{{Name: "private", URL: server.URL, CAFile: path}}, Genesis: hashA,
		Now:  func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
		Rand: func() float64 { return 0 }, Log: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	notified := func(within time.Duration) bool {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		var got atomic.Bool
		var running sync.WaitGroup
		running.Go(func() {
			e.Subscribe(ctx, treeKey, func(uint64) { got.Store(true); cancel() })
		})
		running.Wait()
		return got.Load()
	}
	check := func(when string, want bool) {
		t.Helper()
		slot, err := e.Slot(t.Context(), onchain.Confirmed)
		if (err == nil && slot == 77) != want || err != nil && !errors.Is(err, onchain.ErrUnavailable) {
			t.Errorf("%s: the slot is %d with error %v, want an answer: %t", when, slot, err, want)
		}
		within := 20 * time.Second
		if !want {
			within = 700 * time.Millisecond
		}
		if got := notified(within); got != want {
			t.Errorf("%s: a notification came: %t, want %t", when, got, want)
		}
	}
	check("with the wrong authority", false)
	testca.Write(t, path, right.PEM)
	ahead.Add(int64(10 * time.Second)) // also past the pause of a breaker
	check("with the right authority in the file", true)
	testca.Write(t, path, []byte("garbage"))
	ahead.Add(int64(10 * time.Second))
	check("with garbage in the file", true)
	for _, want := range []string{"ca file read again\" endpoint=private", "ca file not readable; its last authorities stay trusted\" endpoint=private"} {
		if strings.Count(log.String(), want) != 1 {
			t.Errorf("the log has not one line with %s:\n%s", want, log)
		}
	}
}

func TestEndpointWithoutItsCAFileIsRefused(t *testing.T) {
	t.Parallel()
	_, err := NewEndpoints(EndpointsOptions{
		Endpoints: []Endpoint{{Name: "private", URL: "https://" + canaryUser + ":" + canaryPass + "@host/" + canaryPath, CAFile: "/" + canaryQuery}},
		Now:       time.Now, Rand: func() float64 { return 0 }, Log: slog.New(slog.DiscardHandler),
	})
	if err == nil || !strings.Contains(err.Error(), "RPC endpoint private: read ca file: file cannot be read") {
		t.Fatalf("error is %v", err)
	}
	checkCanaries(t, err.Error())
}

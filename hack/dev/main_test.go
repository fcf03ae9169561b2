package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/dev/terminal"
	"github.com/relaypool/relaypool/hack/dev/tour"
	"github.com/relaypool/relaypool/hack/wallet"
	"github.com/relaypool/relaypool/hack/wallet/wallettest"
)

// The whole of make demo, with its own processes.
func TestDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds relay and circuit, and starts everything")
	}
	_ = os.Getenv("RELAYPOOL_SOURCES") // the cached result of a test that builds programs holds until this changes
	t.Setenv("TMPDIR", passable(t))
	wallettest.Prover(t) // so that the circuit is built within a test's time limit
	var out bytes.Buffer
	if err := new(demoCmd).Run(&session{t.Context(), terminal.New(&out, terminal.Style{Colour: true})}); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	var titles []string
	for line := range strings.Lines(out.String()) {
		if _, bold, ok := strings.Cut(line, "\x1b[1m"); ok {
			title, _, _ := strings.Cut(bold, "\x1b[0m")
			titles = append(titles, title)
		}
	}
	want := []string{
		"Starting. For development only: the proofs' set-up is public and the coins are worth nothing",
		"The pool is initialised",
		"A wallet is funded",
		"It deposits: a proof, signed by the wallet and sent to the chain by itself",
		"It registers a viewing key: POST /viewing-key/register",
		"It rebuilds the tree: GET /commitments against GET /merkle-root",
		"It withdraws: POST /transact",
		"The same request again changes nothing",
		"The same note again is refused",
		"A stale root is refused",
		"A forged proof is refused before any RPC call",
		"It withdraws without waiting: POST /withdraw, GET /status/:id",
		"It transfers inside the pool, with an encrypted note",
		"It swaps: POST /transact_swap, from the proof to the tokens",
		"A swap that finds no price is refunded",
		"The books balance",
		"Stopping",
		"All as expected",
	}
	if diff := cmp.Diff(want, titles); diff != "" {
		t.Errorf("titles (-want +got):\n%s", diff)
	}
	left, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "relaypool-demo-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("the demonstration left %v, error %v", left, err)
	}
}

// screen is the output so far.
type screen struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(b)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}

// make run, and the commands that its output suggests.
func TestRunServesUntilItIsStopped(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds relay and circuit, and starts everything")
	}
	_ = os.Getenv("RELAYPOOL_SOURCES") // the cached result of a test that builds programs holds until this changes
	wallettest.Prover(t)
	state := passable(t)
	free, err := freeAddresses(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	port := func(address string) int { return int(netip.MustParseAddrPort(address).Port()) }
	var out screen
	ctx, ctrlC := context.WithCancel(t.Context())
	defer ctrlC()
	ended := make(chan error, 1)
	go func() {
		command := runCmd{RelayPort: port(free.relay), OperationsPort: port(free.operations), ChainPort: port(free.Chain), RouterPort: port(free.Router), AdminPort: port(free.Admin), State: state, Tour: true}
		ended <- command.Run(&session{ctx, terminal.New(&out, terminal.Style{})})
	}()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !strings.Contains(out.String(), "Serving until Ctrl-C") {
		select {
		case err := <-ended:
			t.Fatalf("it ended by itself: %v\n%s", err, out.String())
		case <-tick.C:
		}
	}
	relay := "http://" + free.relay
	for _, request := range []struct {
		file, path string
		want       int
	}{
		{"transact.json", "/transact", http.StatusOK}, {"withdraw.json", "/withdraw", http.StatusAccepted},
		{"swap.json", "/transact_swap", http.StatusOK}, {"viewing-key.json", "/viewing-key/register", http.StatusOK},
	} {
		body, err := os.Open(filepath.Join(state, "requests", request.file))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.Post(relay+request.path, "application/json", body)
		if err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != request.want {
			t.Errorf("POST %s: %s, error %v, want %d: %s", request.path, answer.Status, err, request.want, said)
		}
	}
	ctrlC()
	if err := <-ended; err != nil {
		t.Errorf("stopping is no failure, received %v", err)
	}
	if answer, err := http.Get(relay); err == nil {
		_ = answer.Body.Close()
		t.Error("the relay still serves")
	}
}

// passable is a test's folder that Postgres can reach when it runs as another
// user.
func passable(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.Chmod(filepath.Dir(folder), 0o711); err != nil {
		t.Fatal(err)
	}
	return folder
}

// A demonstration that cannot fail shows nothing. The lies are in the order of the steps, because
// each tour needs an unused pool.
func TestTheTourNoticesWrongFigures(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it starts everything")
	}
	tellLies(t, []lie{
		{"/merkle-root", `"root":"2f`, `"root":"3f`, "step 1 (The pool is initialised): root of GET /merkle-root: expected 2f"},
		{"/merkle-root", `"merkle_tree":"G`, `"merkle_tree":"H`, "merkle_tree of GET /merkle-root: expected G"},
		{"/viewing-key/register", `"identifier":"`, `"identifier":"00`, "step 4 (It registers a viewing key: POST /viewing-key/register): identifier: expected "},
	})
}

// The swap has a tour of its own, because the wallet has deposited by then.
func TestTheTourNoticesALieAboutASwap(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it starts everything")
	}
	tellLies(t, []lie{{
		"/transact_swap", `"swap_state_pda":"`, `"swap_state_pda":"1`,
		"step 13 (It swaps: POST /transact_swap, from the proof to the tokens): swap_state_pda: expected ",
	}})
}

// lie is a text that replaces another one on one path, and the error that has to
// follow.
type lie struct{ path, is, told, want string }

// tellLies makes a tour for each lie, all on one stack.
func tellLies(t *testing.T, lies []lie) {
	t.Helper()
	_ = os.Getenv("RELAYPOOL_SOURCES") // the cached result of a test that builds programs holds until this changes
	wallettest.Prover(t)
	state := passable(t)
	at, err := freeAddresses(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	s := &session{t.Context(), terminal.New(&out, terminal.Style{})}
	err = s.with(at, state, func(all *stack, prover *wallet.Prover) error {
		for _, lie := range lies {
			liar := httptest.NewServer(altering(t, all.relay.URL, lie.path, lie.is, lie.told))
			o := all.tour(s, prover, "")
			o.RelayURL = liar.URL
			err := tour.Run(s, o)
			liar.Close()
			if err == nil || !strings.Contains(err.Error(), lie.want) {
				t.Errorf("a lie in %s: error %v, want one with %q", lie.path, err, lie.want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
}

// altering passes requests on to the relay, and replaces a text in the answers on one
// path.
func altering(t *testing.T, relay, path, is, told string) http.Handler {
	target, err := url.Parse(relay)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ModifyResponse = func(answer *http.Response) error {
		if answer.Request.URL.Path != path {
			return nil
		}
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			return err
		}
		if !bytes.Contains(body, []byte(is)) {
			t.Errorf("the answer of %s does not hold what the lie replaces", path)
		}
		body = bytes.Replace(body, []byte(is), []byte(told), 1)
		answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		answer.Header.Set("Content-Length", strconv.Itoa(len(body)))
		return nil
	}
	return proxy
}

func TestAStackReportsTheRelaysEndAndRestarts(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it starts everything")
	}
	state := passable(t)
	var out bytes.Buffer
	again := func() *stack {
		t.Helper()
		at, err := freeAddresses(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s, err := start(t.Context(), filepath.Join("..", ".."), state, at, terminal.New(&out, terminal.Style{}))
		if err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		t.Cleanup(func() { _ = s.stop(context.WithoutCancel(t.Context())) })
		return s
	}
	first := again()
	if err := first.while(t.Context(), func(ctx context.Context) error { return healthy(ctx, first.relay.Operations) }); err != nil {
		t.Errorf("healthy: %v", err)
	}
	err := first.while(t.Context(), func(ctx context.Context) error {
		if err := syscall.Kill(first.relay.PID(), syscall.SIGKILL); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	})
	if err == nil || !strings.Contains(err.Error(), "relay ended by itself (signal: killed)") || !strings.Contains(err.Error(), "serving") {
		t.Errorf("the relay was killed: error %v, want one that says so, with the end of its log", err)
	}
	if err := first.stop(t.Context()); err != nil {
		t.Errorf("stop: %v", err)
	}
	if answer, err := http.Get(first.URL); err == nil {
		_ = answer.Body.Close()
		t.Error("the chain still serves")
	}
	second := again()
	if second.Payers[0].String() != first.Payers[0].String() || second.Compliance != first.Compliance {
		t.Error("the second start made new keys")
	}
	if err := second.stop(t.Context()); err != nil {
		t.Errorf("stop the second: %v", err)
	}
}

func TestAPortInUseIsNamedWithTheRemedy(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	port := l.Addr().(*net.TCPAddr).Port
	_, err = (&runCmd{RelayPort: port}).claimAddresses(t.Context())
	want := fmt.Sprintf("port %d of the relay is taken: stop what listens there (an earlier make run?) or choose another port with make run ARGS=--relay-port=%d", port, port+1)
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

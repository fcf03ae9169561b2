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

// TestDemo runs all of make demo.
func TestDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds relay and circuit, and starts everything")
	}
	_ = os.Getenv("RELAYPOOL_SOURCES") // so that go test's cache depends on the sources that the test builds
	t.Setenv("TMPDIR", reachableDir(t))
	wallettest.Prover(t) // builds the circuit first, within a time limit
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
		t.Errorf("the demonstration left the folders %v, error %v; want none", left, err)
	}
}

// screen collects output, and can be read while the output grows.
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

// The test runs make run and sends the requests that its output suggests.
func TestRunServesUntilItIsStopped(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds relay and circuit, and starts everything")
	}
	_ = os.Getenv("RELAYPOOL_SOURCES") // so that go test's cache depends on the sources that the test builds
	wallettest.Prover(t)
	state := reachableDir(t)
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
			t.Fatalf("the command ended before it was stopped: %v\n%s", err, out.String())
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
		content, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != request.want {
			t.Errorf("POST %s: got %s, error %v, want %d: %s", request.path, answer.Status, err, request.want, content)
		}
	}
	ctrlC()
	if err := <-ended; err != nil {
		t.Errorf("after Ctrl-C the command returned error %v, want none", err)
	}
	if answer, err := http.Get(relay); err == nil {
		_ = answer.Body.Close()
		t.Error("the relay still serves")
	}
}

// reachableDir makes a folder that Postgres can reach when it runs as another user.
func reachableDir(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.Chmod(filepath.Dir(folder), 0o711); err != nil {
		t.Fatal(err)
	}
	return folder
}

// The tour must fail if an answer is altered. Each tour needs an unused pool, so the alterations
// are of answers before the deposit.
func TestTheTourFailsOnAlteredAnswers(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it starts everything")
	}
	checkAlterations(t, []alteration{
		{"/merkle-root", `"root":"2f`, `"root":"3f`, "step 1 (The pool is initialised): root of GET /merkle-root: expected 2f"},
		{"/merkle-root", `"merkle_tree":"G`, `"merkle_tree":"H`, "merkle_tree of GET /merkle-root: expected G"},
		{"/viewing-key/register", `"identifier":"`, `"identifier":"00`, "step 4 (It registers a viewing key: POST /viewing-key/register): identifier: expected "},
	})
}

// The swap has its own stack, because its tour uses the pool.
func TestTheTourFailsOnAnAlteredSwapAnswer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it starts everything")
	}
	checkAlterations(t, []alteration{{
		"/transact_swap", `"swap_state_pda":"`, `"swap_state_pda":"1`,
		"step 13 (It swaps: POST /transact_swap, from the proof to the tokens): swap_state_pda: expected ",
	}})
}

// alteration replaces a text in the answers on one path. want is in the tour's error.
type alteration struct{ path, text, replacement, want string }

// checkAlterations makes a tour for each alteration, all on one stack.
func checkAlterations(t *testing.T, alterations []alteration) {
	t.Helper()
	_ = os.Getenv("RELAYPOOL_SOURCES") // so that go test's cache depends on the sources that the test builds
	wallettest.Prover(t)
	state := reachableDir(t)
	at, err := freeAddresses(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	s := &session{t.Context(), terminal.New(&out, terminal.Style{})}
	err = s.with(at, state, func(all *stack, prover *wallet.Prover) error {
		for _, a := range alterations {
			proxy := httptest.NewServer(alteringProxy(t, all.relay.URL, a))
			o := all.tour(s, prover, "")
			o.RelayURL = proxy.URL
			err := tour.Run(s, o)
			proxy.Close()
			if err == nil || !strings.Contains(err.Error(), a.want) {
				t.Errorf("the tour with an altered answer of %s: got error %v, want one with %q", a.path, err, a.want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
}

// alteringProxy forwards requests to the relay, and alters the answers.
func alteringProxy(t *testing.T, relay string, a alteration) http.Handler {
	target, err := url.Parse(relay)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ModifyResponse = func(answer *http.Response) error {
		if answer.Request.URL.Path != a.path {
			return nil
		}
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			return err
		}
		if !bytes.Contains(body, []byte(a.text)) {
			t.Errorf("the answer of %s is %s, want one with %s", a.path, body, a.text)
		}
		body = bytes.Replace(body, []byte(a.text), []byte(a.replacement), 1)
		answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		answer.Header.Set("Content-Length", strconv.Itoa(len(body)))
		return nil
	}
	return proxy
}

func TestAStackReportsAKilledRelayAndStartsAgain(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it starts everything")
	}
	state := reachableDir(t)
	var out bytes.Buffer
	startStack := func() *stack {
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
	first := startStack()
	if err := first.while(t.Context(), func(ctx context.Context) error { return healthy(ctx, first.relay.Operations) }); err != nil {
		t.Errorf("the started relay's health: error %v, want none", err)
	}
	err := first.while(t.Context(), func(ctx context.Context) error {
		if err := syscall.Kill(first.relay.PID(), syscall.SIGKILL); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	})
	if err == nil || !strings.Contains(err.Error(), "relay ended by itself (signal: killed)") || !strings.Contains(err.Error(), "serving") {
		t.Errorf("after the relay was killed: got error %v, want one with the signal and the end of its log", err)
	}
	if err := first.stop(t.Context()); err != nil {
		t.Errorf("stop: %v", err)
	}
	if answer, err := http.Get(first.URL); err == nil {
		_ = answer.Body.Close()
		t.Error("the chain still serves")
	}
	second := startStack()
	if second.Payers[0].String() != first.Payers[0].String() || second.Compliance != first.Compliance {
		t.Error("the second start made new keys, want those of the first")
	}
	if err := second.stop(t.Context()); err != nil {
		t.Errorf("stop the second: %v", err)
	}
}

func TestAPortInUseIsReportedWithTheRemedy(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	port := l.Addr().(*net.TCPAddr).Port
	_, err = (&runCmd{RelayPort: port}).localAddresses(t.Context())
	want := fmt.Sprintf("port %d of the relay is taken: stop what listens there (an earlier make run?) or choose another port with make run ARGS=--relay-port=%d", port, port+1)
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

package chainwatch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gagliardetto/solana-go"
	"k8s.io/apimachinery/pkg/types"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/poolcheck"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// node is an endpoint without a network.
type node struct {
	mu            sync.Mutex
	genesis       solana.Hash
	slot          uint64
	accounts      map[solana.PublicKey]*onchain.Account
	err           error
	hang          bool
	calls         map[string]int
	busy, maxBusy int
}

func (n *node) set(change func(*node)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(n)
}

func (n *node) called(method string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.calls[method]
}

func (n *node) begin(ctx context.Context, method string) error {
	n.mu.Lock()
	n.calls[method]++
	n.busy++
	n.maxBusy = max(n.maxBusy, n.busy)
	hang, err := n.hang, n.err
	n.mu.Unlock()
	defer n.set(func(n *node) { n.busy-- })
	if hang {
		<-ctx.Done()
		return errors.New("no answer in time")
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(50 * time.Millisecond):
	}
	return err
}

func (n *node) GenesisHash(ctx context.Context) (solana.Hash, error) {
	if err := n.begin(ctx, "genesis"); err != nil {
		return solana.Hash{}, err
	}
	return n.genesis, nil
}

func (n *node) Accounts(ctx context.Context, keys []solana.PublicKey) (uint64, []*onchain.Account, error) {
	if err := n.begin(ctx, "accounts"); err != nil {
		return 0, nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	out := make([]*onchain.Account, len(keys))
	for i, key := range keys {
		out[i] = n.accounts[key]
	}
	return n.slot, out, nil
}

var payer = solana.PublicKey{42}

// newNode is an endpoint of a chain on which the development pool is initialised.
func newNode(t testing.TB) *node {
	t.Helper()
	p := shieldpool.Development()
	pools, err := poolcheck.Pools(p)
	if err != nil {
		t.Fatal(err)
	}
	owned := &onchain.Account{Owner: p.ProgramID, Data: p.NewTree(solana.PublicKey{1}).Bytes()}
	mint := make([]byte, shieldpool.TokenMintLength)
	mint[45] = 1
	return &node{genesis: shieldpool.DevelopmentGenesisHash, slot: 1000, calls: map[string]int{}, accounts: map[solana.PublicKey]*onchain.Account{
		solana.SystemProgramID: {Executable: true}, p.ProgramID: {Executable: true},
		pools[0].Address: owned, pools[0].MerkleTree: owned, pools[0].Treasury: owned,
		solana.WrappedSol: {Owner: solana.TokenProgramID, Data: mint}, payer: {Lamports: 1_000_000_000},
	}}
}

// fixture is a watcher over nodes, whose URLs are their names.
type fixture struct {
	*testing.T
	*Watcher
	mu     sync.Mutex
	sent   map[types.NamespacedName]int
	cancel context.CancelFunc
	done   chan error
}

// startWatcher starts a watcher. It must be called in a synctest bubble.
func startWatcher(t *testing.T, nodes map[string]*node, o Options) *fixture {
	t.Helper()
	o.HTTP, o.Now, o.Random = http.DefaultClient, time.Now, func() float64 { return 0.5 }
	w, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	w.dial = func(url, _ string, _ bool) (poolcheck.Reader, error) { return nodes[url], nil }
	ctx, cancel := context.WithCancel(t.Context())
	f := &fixture{T: t, Watcher: w, sent: map[types.NamespacedName]int{}, cancel: cancel, done: make(chan error, 1)}
	go func() { f.done <- w.Start(ctx) }()
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case e := <-w.Events():
				f.mu.Lock()
				f.sent[types.NamespacedName{Namespace: e.Object.GetNamespace(), Name: e.Object.GetName()}]++
				f.mu.Unlock()
			}
		}
	}()
	return f
}

// stop ends the watcher and waits for it.
func (f *fixture) stop() {
	f.Helper()
	f.cancel()
	if err := <-f.done; err != nil {
		f.Error(err)
	}
}

func (f *fixture) events(key types.NamespacedName) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sent[key]
}

func (f *fixture) expect(key types.NamespacedName, state poolcheck.State, reason poolcheck.Reason) Reading {
	f.Helper()
	r, ok := f.Reading(key)
	if !ok {
		f.Fatalf("%s is not known", key)
	}
	if gotState, gotReason, message := r.PoolState(); gotState != state || gotReason != reason {
		f.Errorf("got %s, %s, want %s, %s: %s", gotState, gotReason, state, reason, message)
	}
	return r
}

func poolKey(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: "relays", Name: fmt.Sprintf("pool-%d", i)}
}

// query reads the named endpoints, in that order.
func query(endpoints ...string) Query {
	q := Query{
		Target:   poolcheck.Target{Profile: shieldpool.Development(), Genesis: shieldpool.DevelopmentGenesisHash, Key: &poolcheck.Key{Publics: shieldpool.SignalCount}},
		Interval: time.Minute, Payers: []solana.PublicKey{payer}, Thresholds: []uint64{50_000_000},
	}
	for _, name := range endpoints {
		q.Endpoints = append(q.Endpoints, Endpoint{Name: name, Identity: name, URL: func(context.Context) (string, error) { return name, nil }})
	}
	return q
}

func TestAnUnchangedChainSendsOneEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		f := startWatcher(t, map[string]*node{"a": n}, Options{})
		f.Set(poolKey(0), query("a"))
		time.Sleep(time.Second)
		r := f.expect(poolKey(0), poolcheck.OK, poolcheck.ReasonInitialised)
		if p := r.Payers[payer]; p.Lamports != 1_000_000_000 || p.At.IsZero() || p.SpendingKnown {
			t.Errorf("got payer %+v, want its balance and no rate yet", p)
		}
		for range 10 { // repeating the same query does nothing
			f.Set(poolKey(0), query("a"))
		}
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if got := f.events(poolKey(0)); got != 1 {
			t.Errorf("got %d events of a chain on which nothing happens, want one", got)
		}
		if got := n.called("accounts"); got < 178 || got > 181 {
			t.Errorf("got %d calls in three hours, want one a minute", got)
		}
		if got := n.called("genesis"); got != 3 && got != 4 {
			t.Errorf("got %d calls for the genesis hash in three hours, want one an hour", got)
		}
		f.stop()
	})
}

func TestChangesSendEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		f := startWatcher(t, map[string]*node{"a": n}, Options{})
		f.Set(poolKey(0), query("a"))
		time.Sleep(time.Second)
		events := 1
		step := func(what string, change func(*node), want int) {
			t.Helper()
			n.set(change)
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			events += want
			if got := f.events(poolKey(0)); got != events {
				t.Errorf("%s: got %d events in all, want %d", what, got, events)
			}
		}
		lamports := func(l uint64) func(*node) {
			return func(n *node) { n.accounts[payer] = &onchain.Account{Lamports: l} }
		}
		step("a little is spent", lamports(990_000_000), 0)
		step("more is spent", lamports(940_000_000), 1)
		step("all is spent", lamports(0), 1)
		program := n.accounts[shieldpool.Development().ProgramID]
		step("the program is gone", func(n *node) { delete(n.accounts, shieldpool.Development().ProgramID) }, 1)
		f.expect(poolKey(0), poolcheck.Failed, poolcheck.ReasonProgramMissing)
		step("the program is back", func(n *node) { n.accounts[shieldpool.Development().ProgramID] = program }, 1)
		f.expect(poolKey(0), poolcheck.OK, poolcheck.ReasonInitialised)
		f.stop()
	})
}

func TestLosingTheChainIsUnknownAndKeepsTheLastReading(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		f := startWatcher(t, map[string]*node{"a": n}, Options{})
		f.Set(poolKey(0), query("a"))
		time.Sleep(time.Second)
		before := f.expect(poolKey(0), poolcheck.OK, poolcheck.ReasonInitialised)

		// One failure is not reported: the endpoint is asked again first.
		n.set(func(n *node) { n.err = errors.New("HTTP 429") })
		time.Sleep(time.Minute + time.Second)
		f.expect(poolKey(0), poolcheck.OK, poolcheck.ReasonInitialised)
		n.set(func(n *node) { n.err = nil })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := f.events(poolKey(0)); got != 1 {
			t.Errorf("got %d events after one failure, want only the first reading's", got)
		}

		n.set(func(n *node) { n.err = errors.New("HTTP 429") })
		lost := time.Now()
		time.Sleep(10 * time.Minute)
		r := f.expect(poolKey(0), poolcheck.Unknown, poolcheck.ReasonChainUnavailable)
		if next, ok := r.Report.NextIndex(); !ok || next != 0 || r.At.Before(before.At) || r.Payers[payer].Lamports != 1_000_000_000 {
			t.Errorf("got %+v, want the last good reading", r)
		}
		if r.UnavailableSince.Before(lost) || r.UnavailableSince.After(lost.Add(2*time.Minute)) || !strings.Contains(r.Cause, "endpoint a: HTTP 429") {
			t.Errorf("unavailable since %s because %q, want since about %s and the endpoint's fault", r.UnavailableSince, r.Cause, lost)
		}
		n.set(func(n *node) { n.err = errors.New("HTTP 503") })
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if got := f.events(poolKey(0)); got != 2 {
			t.Errorf("got %d events, want one more for the whole outage", got)
		}
		n.set(func(n *node) { n.err = nil })
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		f.expect(poolKey(0), poolcheck.OK, poolcheck.ReasonInitialised)
		if got := f.events(poolKey(0)); got != 3 {
			t.Errorf("got %d events, want one more for the chain that is back", got)
		}
		f.stop()
	})
}

// A fleet and its chain are often made at the same time, and the chain's DNS name exists a
// moment later. The first retry must not take a whole interval of a minute.
func TestPausesGrowWhileTheChainDoesNotAnswer(t *testing.T) {
	t.Parallel()
	w, err := New(Options{HTTP: http.DefaultClient, Now: time.Now, Random: func() float64 { return 0.5 }})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		failures    int
		unconfirmed bool
		interval    time.Duration
		want        time.Duration
	}{
		"it answers":                             {0, false, time.Minute, time.Minute},
		"an unconfirmed change for the worse":    {0, true, time.Minute, 5 * time.Second},
		"one check failed":                       {1, false, time.Minute, 5 * time.Second},
		"two checks failed":                      {2, false, time.Minute, 10 * time.Second},
		"three checks failed":                    {3, false, time.Minute, 20 * time.Second},
		"no check succeeded for a day":           {1500, false, time.Minute, time.Minute},
		"its interval is shorter than the pause": {3, false, 15 * time.Second, 15 * time.Second},
	} {
		p := &pool{failures: test.failures, unconfirmed: test.unconfirmed, query: &Query{Interval: test.interval}}
		if got := w.pause(p); got != test.want {
			t.Errorf("%s: the pause is %s, want %s", name, got, test.want)
		}
	}
}

func TestAnEndpointWithoutStateIsNotUsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, complete := newNode(t), newNode(t)
		f := startWatcher(t, map[string]*node{"a": n, "b": complete}, Options{})
		f.Set(poolKey(0), query("a", "b"))
		f.Set(poolKey(1), query("a"))
		time.Sleep(time.Second)
		n.set(func(n *node) { n.accounts = nil })
		time.Sleep(5 * time.Minute)
		r := f.expect(poolKey(0), poolcheck.OK, poolcheck.ReasonInitialised)
		if time.Since(r.At) > 2*time.Minute {
			t.Errorf("the other endpoint was last read %s ago, want within two minutes", time.Since(r.At))
		}
		r = f.expect(poolKey(1), poolcheck.Unknown, poolcheck.ReasonChainUnavailable)
		if r.Payers[payer].Lamports != 1_000_000_000 {
			t.Errorf("got balance %d, want the last one that is known", r.Payers[payer].Lamports)
		}
		f.stop()
	})
}

func TestAccountsOfAnotherChainAreNotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		right, wrong, dead := newNode(t), newNode(t), newNode(t)
		wrong.genesis, dead.err = solana.Hash{7}, errors.New("HTTP 500")
		f := startWatcher(t, map[string]*node{"right": right, "wrong": wrong, "dead": dead}, Options{})
		f.Set(poolKey(0), query("wrong", "right"))
		f.Set(poolKey(1), query("wrong"))
		f.Set(poolKey(2), query("wrong", "dead"))
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		f.expect(poolKey(0), poolcheck.OK, poolcheck.ReasonInitialised)
		f.expect(poolKey(1), poolcheck.Failed, poolcheck.ReasonWrongCluster)
		f.expect(poolKey(2), poolcheck.Unknown, poolcheck.ReasonChainUnavailable)
		if got := wrong.called("accounts"); got != 0 {
			t.Errorf("accounts of another chain were read %d times", got)
		}
		f.stop()
	})
}

func TestAnEndpointFarBehindIsSkipped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, late := newNode(t), newNode(t)
		late.set(func(n *node) { n.slot = 500; n.accounts[payer] = &onchain.Account{Lamports: 1} })
		f := startWatcher(t, map[string]*node{"a": n, "late": late}, Options{})
		f.Set(poolKey(0), query("a", "late"))
		time.Sleep(time.Second)
		n.set(func(n *node) { n.err = errors.New("HTTP 500") })
		time.Sleep(time.Minute + 2*time.Second)
		if r, _ := f.Reading(poolKey(0)); r.Payers[payer].Lamports != 1_000_000_000 {
			t.Error("a balance of 500 slots ago replaced a newer one")
		}
		// A chain that was restarted, such as a local one, is accepted in the end.
		time.Sleep(10 * time.Minute)
		if r := f.expect(poolKey(0), poolcheck.OK, poolcheck.ReasonInitialised); r.Payers[payer].Lamports != 1 {
			t.Error("the restarted chain was never read")
		}
		f.stop()
	})
}

func TestDeadEndpointsDelayNoOtherPool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		good, dead := newNode(t), newNode(t)
		dead.hang = true
		f := startWatcher(t, map[string]*node{"good": good, "dead": dead}, Options{Workers: 4})
		for i := range 20 {
			f.Set(poolKey(i), query("good"))
		}
		time.Sleep(10 * time.Second)
		for i := 20; i < 120; i++ { // 100 checks of 5 s each keep 4 workers busy for 2 minutes
			f.Set(poolKey(i), query("dead"))
		}
		for range 10 {
			time.Sleep(time.Minute)
			for i := range 20 {
				if r, _ := f.Reading(poolKey(i)); time.Since(r.At) > 70*time.Second {
					t.Fatalf("pool %d was last read %s ago, want within its interval of a minute", i, time.Since(r.At))
				}
			}
		}
		synctest.Wait()
		if good.maxBusy > 4 || dead.maxBusy > 4 {
			t.Errorf("up to %d and %d calls ran at once, want at most 4", good.maxBusy, dead.maxBusy)
		}
		for i := 20; i < 120; i++ {
			f.expect(poolKey(i), poolcheck.Unknown, poolcheck.ReasonChainUnavailable)
		}
		f.stop()
	})
}

func TestAnotherQueryIsReadAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		f := startWatcher(t, map[string]*node{"a": n}, Options{})
		f.Set(poolKey(0), query("a"))
		time.Sleep(time.Second)

		q := query("a")
		second := solana.PublicKey{43}
		q.Payers = []solana.PublicKey{payer, second}
		f.Set(poolKey(0), q)
		r := f.expect(poolKey(0), poolcheck.OK, poolcheck.ReasonInitialised)
		if len(r.Payers) != 1 {
			t.Errorf("got %d payers, want the one that is known", len(r.Payers))
		}
		time.Sleep(time.Second)
		if r, _ := f.Reading(poolKey(0)); len(r.Payers) != 2 {
			t.Errorf("got %d payers, want both: the second holds nothing, which is known", len(r.Payers))
		}

		// Nothing is known about another target, and its state is reported again.
		synctest.Wait()
		events := f.events(poolKey(0))
		q.Target.Key = &poolcheck.Key{Publics: shieldpool.SignalCount, Hash: [32]byte{1}}
		f.Set(poolKey(0), q)
		r = f.expect(poolKey(0), poolcheck.Unknown, poolcheck.ReasonNotChecked)
		if r.Payers[payer].Lamports != 1_000_000_000 {
			t.Error("the balances were dropped with the target")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		f.expect(poolKey(0), poolcheck.OK, poolcheck.ReasonInitialised)
		if got := f.events(poolKey(0)); got != events+1 {
			t.Errorf("got %d events more, want one", got-events)
		}

		// The genesis hash is read again for another URL, but not for the same one.
		callsBefore := n.called("genesis")
		q.Endpoints = query("a").Endpoints
		q.Endpoints[0].Identity = "a at another resource version"
		f.Set(poolKey(0), q)
		time.Sleep(time.Second)
		if got := n.called("genesis"); got == callsBefore {
			t.Error("an endpoint whose URL may have changed was not asked for its genesis hash")
		}

		f.Forget(poolKey(0))
		calls := n.called("accounts")
		time.Sleep(time.Hour)
		if _, ok := f.Reading(poolKey(0)); ok || n.called("accounts") != calls {
			t.Error("a RelayPool that was forgotten is still read")
		}
		f.stop()
	})
}

func TestEventsWaitForTheirReceiver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		w, err := New(Options{HTTP: http.DefaultClient, Now: time.Now, Random: func() float64 { return 0.5 }})
		if err != nil {
			t.Fatal(err)
		}
		w.dial = func(string, string, bool) (poolcheck.Reader, error) { return n, nil }
		done := make(chan error, 1)
		go func() { done <- w.Start(t.Context()) }()
		for i := range 50 {
			w.Set(poolKey(i), query("a"))
		}
		time.Sleep(time.Minute)
		for _, lamports := range []uint64{5, 500_000_000, 7} { // three changes of each, without a receiver
			n.set(func(n *node) { n.accounts[payer] = &onchain.Account{Lamports: lamports} })
			time.Sleep(2 * time.Minute)
		}
		var got []string
		for range 51 { // the first event was already being sent when its RelayPool changed again
			got = append(got, (<-w.Events()).Object.GetName())
		}
		slices.Sort(got)
		if names := slices.Compact(got); len(names) != 50 {
			t.Errorf("got events of %d RelayPools, want 50", len(names))
		}
		select {
		case e := <-w.Events():
			t.Errorf("got another event of %s, want one for each RelayPool however often it changed", e.Object.GetName())
		case <-time.After(time.Second):
		}
		w.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestAWatcherRunsOnce(t *testing.T) {
	t.Parallel()
	if _, err := New(Options{}); err == nil {
		t.Error("made a watcher without options, want an error")
	}
	o := Options{HTTP: http.DefaultClient, Now: time.Now, Random: func() float64 { return 0 }}
	if _, err := New(Options{HTTP: o.HTTP, Now: o.Now, Random: o.Random, Workers: -1}); err == nil {
		t.Error("made a watcher with -1 workers, want an error")
	}
	w, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	w.Close() // returns at once, and prevents a start
	if err := w.Start(t.Context()); err == nil {
		t.Error("started a closed watcher, want an error")
	}
	if _, ok := w.Reading(poolKey(0)); ok {
		t.Error("got a reading of a RelayPool that was never set")
	}
}

func TestEndpointsWhoseURLCannotBeRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := startWatcher(t, nil, Options{})
		q := query()
		f.Set(poolKey(0), q)
		q.Endpoints = []Endpoint{{Name: "a", URL: func(context.Context) (string, error) { return "", errors.New("secret rpc has no key url") }}}
		f.Set(poolKey(1), q)
		time.Sleep(time.Minute)
		if r := f.expect(poolKey(0), poolcheck.Unknown, poolcheck.ReasonChainUnavailable); !strings.Contains(r.Cause, "no endpoint has the role Read") {
			t.Errorf("got %q, want the missing endpoint", r.Cause)
		}
		if r := f.expect(poolKey(1), poolcheck.Unknown, poolcheck.ReasonChainUnavailable); !strings.Contains(r.Cause, "endpoint a: secret rpc has no key url") {
			t.Errorf("got %q, want what is wrong with the Secret", r.Cause)
		}
		f.stop()
	})
}

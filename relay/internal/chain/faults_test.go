package chain_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// endpointsWithFaults returns Endpoints with two endpoints of the world's chain, the first with faults.
func (w *world) endpointsWithFaults(faults ...fault.Rule) *chain.Endpoints {
	w.t.Helper()
	return w.endpoints(nil, faults)
}

func (w *world) endpoints(change func(*chain.EndpointsOptions), faults []fault.Rule) *chain.Endpoints {
	w.t.Helper()
	if err := w.Endpoint("faulty").SetFaults(faults); err != nil {
		w.t.Fatal(err)
	}
	faulty, healthy := httptest.NewServer(w.Endpoint("faulty")), httptest.NewServer(w.Endpoint("healthy"))
	o := chain.EndpointsOptions{
		Endpoints: []chain.Endpoint{
			{Name: "faulty", URL: faulty.URL, Roles: []chain.Role{chain.RoleRead, chain.RoleSubmit, chain.RoleArchive}},
			{Name: "healthy", URL: healthy.URL},
		},
		Genesis: localnet.GenesisHash, Now: time.Now, Rand: rand.Float64, Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&o)
	}
	e, err := chain.NewEndpoints(o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		// Close waits for calls under way, and a hanging call ends only with its client.
		faulty.CloseClientConnections()
		if err := e.Flush(context.Background()); err != nil {
			w.t.Error(err)
		}
		e.Close()
		faulty.Close()
		healthy.Close()
	})
	return e
}

// allReported reports whether every endpoint has reported its slot.
func allReported(e *chain.Endpoints) bool {
	return !slices.ContainsFunc(e.Status(), func(s chain.EndpointStatus) bool { return s.SlotAt.IsZero() })
}

// TestReadsSurviveAFaultyNode: every read gets its answer from the other endpoint.
func TestReadsSurviveAFaultyNode(t *testing.T) {
	t.Parallel()
	const calls = 10
	tests := map[string]fault.Rule{
		"HTTP 503":              {Status: 503},
		"HTTP 429":              {Status: 429, RetryAfter: time.Second},
		"connections cut":       {Cut: true},
		"an internal error":     {Error: fault.Error{Code: -32603, Message: "Internal error"}},
		"half of the calls":     {Status: 500, Probability: 0.5},
		"fails after executing": {Status: 502, AfterActing: true},
		"cut after executing":   {Cut: true, AfterActing: true},
		"a node far behind":     {Lag: 50},
		"no history":            {History: 1},
		"no fault":              {Latency: time.Microsecond},
	}
	for name, rule := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, localnet.Options{Initialised: true})
			ctx := t.Context()
			hash := w.blockhash()
			bytes, signature := w.sign(w.inputs(1, w.root(), deposit), hash)
			if err := w.client.Send(ctx, bytes, onchain.Sending{First: true}, hash.Slot); err != nil {
				t.Fatal(err)
			}
			w.Finalize()
			landed := w.status(signature, true)
			e := w.endpointsWithFaults()
			// Which endpoint is behind is known only once both have reported a slot.
			polling, stop := context.WithCancel(ctx)
			go e.Run(polling)
			for !allReported(e) {
				time.Sleep(10 * time.Millisecond)
			}
			stop()
			if err := w.Endpoint("faulty").SetFaults([]fault.Rule{rule}); err != nil {
				t.Fatal(err)
			}
			for range calls {
				if _, slot, err := e.Accounts(ctx, []solana.PublicKey{w.pool.MerkleTree}, onchain.Confirmed, landed.Slot); err != nil || slot < landed.Slot {
					t.Errorf("accounts are of slot %d with error %v, want %d or later", slot, err, landed.Slot)
				}
				if got, err := e.LatestBlockhash(ctx); err != nil || got.Slot < landed.Slot {
					t.Errorf("blockhash is %+v with error %v", got, err)
				}
				found, err := e.Search(ctx, []solana.Signature{signature})
				if err == nil && found.Statuses[0] != nil {
					found.Statuses[0].Unverified = false // perhaps the faulty endpoint does not confirm it
				}
				if err != nil || cmp.Diff(landed, found.Statuses[0]) != "" {
					t.Errorf("search returned %+v with error %v, want the transaction in it", found, err)
				}
				if _, err := e.PriorityFees(ctx, []solana.PublicKey{w.pool.MerkleTree}); err != nil {
					t.Error(err)
				}
				if b, err := (&chain.History{Endpoints: e}).Block(ctx, landed.Slot, w.pool.MerkleTree); err != nil || len(b.Transactions) != 1 {
					t.Errorf("block is %+v with error %v", b, err)
				}
			}
			w.Advance(1)
		})
	}
}

// TestSendReachesTheChain: one of two endpoints accepts the transaction.
func TestSendReachesTheChain(t *testing.T) {
	t.Parallel()
	tests := map[string]fault.Rule{
		"one is down":                    {Status: 503},
		"one accepts it and answers 502": {Status: 502, AfterActing: true},
		"one hangs":                      {Method: "sendTransaction", Hang: true},
		"one accepts it and drops it":    {Method: "sendTransaction", Drop: true},
		"one is behind":                  {Lag: 40},
		"both accept it":                 {Latency: time.Microsecond},
	}
	for name, rule := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, localnet.Options{Initialised: true})
			e := w.endpointsWithFaults(rule)
			hash := w.blockhash()
			bytes, signature := w.sign(w.inputs(1, w.root(), deposit), hash)
			for _, first := range []bool{true, false} {
				if err := e.Send(t.Context(), bytes, onchain.Sending{First: first}, hash.Slot); err != nil {
					t.Fatal(err)
				}
			}
			// Send returns with the first acceptance. The other call may still be under way, and a
			// hanging one never ends.
			until, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_ = e.Flush(until)
			w.Finalize()
			if s := w.status(signature, true); s == nil || s.Err != nil || s.Confirmation != onchain.Finalized {
				t.Errorf("status is %+v, want a success", s)
			}
		})
	}
}

func TestFrozenBlockhashIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, localnet.Options{Initialised: true})
	e := w.endpoints(func(o *chain.EndpointsOptions) { o.Probe = 100 * time.Millisecond },
		[]fault.Rule{{Method: "getLatestBlockhash", FrozenBlockhash: true}})
	go e.Run(t.Context())
	first := must[onchain.Blockhash](t)(e.LatestBlockhash(t.Context()))
	w.Advance(30)
	deadline := time.Now().Add(10 * time.Second)
	for {
		// Any other answer shows that the chain has moved.
		slot := must[uint64](t)(e.Slot(t.Context(), onchain.Confirmed))
		got := must[onchain.Blockhash](t)(e.LatestBlockhash(t.Context()))
		if got.Slot == slot {
			break
		}
		if got != first || time.Now().After(deadline) {
			t.Fatalf("blockhash is of slot %d, want %d", got.Slot, slot)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestForgetfulNodeDoesNotHideALanding: an archive without history must not make a landed
// transaction look expired.
func TestForgetfulNodeDoesNotHideALanding(t *testing.T) {
	t.Parallel()
	w := newWorld(t, localnet.Options{Initialised: true})
	hash := w.blockhash()
	in := w.inputs(1, w.root(), deposit)
	bytes, signature := w.sign(in, hash)
	if err := w.client.Send(t.Context(), bytes, onchain.Sending{First: true}, hash.Slot); err != nil {
		t.Fatal(err)
	}
	w.Finalize()
	e := w.endpointsWithFaults(fault.Rule{Empty: true})
	// One of the two is wrong, so the landing is neither verified nor denied.
	if found := must[onchain.SearchResult](t)(e.Search(t.Context(), []solana.Signature{signature, {9}})); found.Statuses[0] == nil || !found.Statuses[0].Unverified || found.Statuses[1] != nil {
		t.Errorf("statuses are %+v, want only the first one, unverified", found.Statuses)
	}
	if _, err := e.FindCreation(t.Context(), w.pool, in.Nullifiers[1]); !errors.Is(err, onchain.ErrUnavailable) {
		t.Errorf("error is %v, want ErrUnavailable", err)
	}
	// A third endpoint decides.
	third := httptest.NewServer(w.Endpoint("third"))
	t.Cleanup(third.Close)
	e = w.endpoints(func(o *chain.EndpointsOptions) {
		o.Endpoints = append(o.Endpoints, chain.Endpoint{Name: "third", URL: third.URL})
	}, []fault.Rule{{Empty: true}})
	if found := must[onchain.SearchResult](t)(e.Search(t.Context(), []solana.Signature{signature, {9}})); found.Statuses[0] == nil || found.Statuses[0].Unverified || found.Statuses[1] != nil {
		t.Errorf("statuses are %+v, want only the first one, verified", found.Statuses)
	}
	made := must[*onchain.Creation](t)(e.FindCreation(t.Context(), w.pool, in.Nullifiers[1]))
	if made == nil || made.Signature != signature {
		t.Errorf("creation is %+v, want the one by %s", made, signature)
	}
	reader, err := chain.NewPool(chain.PoolOptions{Accounts: e, Pool: w.pool, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if s := must[onchain.Snapshot](t)(reader.Tree(t.Context(), 0)); s.Tree.NextIndex != 2 {
		t.Errorf("the tree has %d leaves, want 2", s.Tree.NextIndex)
	}
	lamports, _, err := e.Balances(t.Context(), []solana.PublicKey{w.payer.PublicKey()})
	if err != nil || lamports[0] == 0 {
		t.Errorf("the payer's balance is %v with error %v, want the balance that the other endpoint reports", lamports, err)
	}
	paid := must[*onchain.Payment](t)(e.Payment(t.Context(), signature, w.payer.PublicKey()))
	if paid == nil || paid.Signature != signature {
		t.Errorf("payment is %+v, want that of %s", paid, signature)
	}
}

// TestPaymentReadsLamportsBeforeAndAfter reads the transaction that created a nullifier, and its
// cost. The history of the address also has unrelated transactions.
func TestPaymentReadsLamportsBeforeAndAfter(t *testing.T) {
	t.Parallel()
	w := newWorld(t, localnet.Options{Initialised: true})
	ctx := t.Context()
	in := w.inputs(1, w.root(), deposit)
	address, _, err := w.pool.Nullifier(in.Nullifiers[0])
	if err != nil {
		t.Fatal(err)
	}
	// Anybody can transfer lamports to the address, before and after the transaction.
	const gift = 1_000_000
	if err := w.Fund(address, gift); err != nil {
		t.Fatal(err)
	}
	w.Finalize()
	if made := must[*onchain.Creation](t)(w.client.FindCreation(ctx, w.pool, in.Nullifiers[0])); made != nil {
		t.Errorf("creation is %+v, want none: a transfer creates no nullifier", made)
	}
	before, _, err := w.client.Balance(ctx, w.payer.PublicKey(), 0)
	if err != nil {
		t.Fatal(err)
	}
	raw, signature := w.sign(in, w.blockhash())
	if err := w.client.Send(ctx, raw, onchain.Sending{First: true}, 0); err != nil {
		t.Fatal(err)
	}
	w.Advance(localnet.DefaultConfirmAfter + 1)
	landed := w.status(signature, false)
	if err := w.Fund(address, gift); err != nil {
		t.Fatal(err)
	}
	wantMade := &onchain.Creation{Signature: signature, Slot: landed.Slot, Confirmation: onchain.Confirmed, FeePayer: w.payer.PublicKey()}
	for _, nullifier := range in.Nullifiers {
		made := must[*onchain.Creation](t)(w.client.FindCreation(ctx, w.pool, nullifier))
		if made == nil || made.Call == nil || *made.Call.Inputs != *in {
			t.Fatalf("creation is %+v, want a call with the inputs", made)
		}
		made.Call = nil
		if diff := cmp.Diff(wantMade, made); diff != "" {
			t.Errorf("creation differs (-want +got):\n%s", diff)
		}
	}
	if paid := must[*onchain.Payment](t)(w.client.Payment(ctx, signature, w.payer.PublicKey())); paid != nil {
		t.Errorf("payment is %+v before it is finalized, want none", paid)
	}

	w.Finalize()
	made := must[*onchain.Creation](t)(w.client.FindCreation(ctx, w.pool, in.Nullifiers[0]))
	if made == nil || made.Confirmation != onchain.Finalized {
		t.Errorf("creation is %+v, want it finalized", made)
	}
	after, _, err := w.client.Balance(ctx, w.payer.PublicKey(), landed.Slot)
	if err != nil {
		t.Fatal(err)
	}
	paid := must[*onchain.Payment](t)(w.client.Payment(ctx, signature, w.payer.PublicKey()))
	if paid == nil || paid.At.IsZero() || time.Since(paid.At).Abs() > time.Hour {
		t.Fatalf("payment is %+v, want a time within the last hour", paid)
	}
	block := must[*onchain.Block](t)(w.history().Block(ctx, landed.Slot, w.pool.MerkleTree))
	if diff := cmp.Diff(paid, block.Transactions[len(block.Transactions)-1].Payment); diff != "" {
		t.Errorf("the payment in the block differs from that of getTransaction (-want +got):\n%s", diff)
	}
	paid.At = time.Time{}
	priority := shieldpool.Compute{Limit: 300_000, Price: 1000}.PriorityFee()
	wantPaid := &onchain.Payment{
		Signature: signature, Slot: landed.Slot, FeePayer: w.payer.PublicKey(),
		Fee: 5000 + priority, SignatureFees: 5000, Created: 650_240, CreatedSizes: []uint64{0}, Before: before, After: after,
	}
	if diff := cmp.Diff(wantPaid, paid); diff != "" {
		t.Errorf("payment differs (-want +got):\n%s", diff)
	}
	if _, err := w.client.Payment(ctx, signature, solana.PublicKey{66}); err == nil {
		t.Error("reading a payment to an account that the transaction does not name returned no error")
	}
	lamports, slot, err := w.client.Balances(ctx, []solana.PublicKey{w.payer.PublicKey(), {66}})
	if err != nil || slot < landed.Slot || cmp.Diff([]uint64{after, 0}, lamports) != "" {
		t.Errorf("balances are %v at slot %d with error %v, want %d and 0", lamports, slot, err, after)
	}
}

// notifications counts the notifications of a subscription that say at which slot.
type notifications struct {
	mu sync.Mutex
	n  int
}

func (n *notifications) add(slot uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if slot > 0 {
		n.n++
	}
}

func (n *notifications) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.n
}

// changeUntilNotified changes the account until a notification arrives.
func (w *world) changeUntilNotified(n *notifications, account solana.PublicKey) {
	w.t.Helper()
	before, deadline := n.count(), time.Now().Add(20*time.Second)
	for n.count() == before {
		if time.Now().After(deadline) {
			w.t.Fatal("no notification within 20 s")
		}
		if err := w.Fund(account, 1_000_000); err != nil {
			w.t.Fatal(err)
		}
		w.Advance(localnet.DefaultConfirmAfter + 1)
		time.Sleep(20 * time.Millisecond)
	}
}

func TestSubscribeNotifies(t *testing.T) {
	t.Parallel()
	tests := map[string][]fault.Rule{
		"no fault":                                 nil,
		"the first endpoint refuses WebSockets":    {{Method: fault.MethodSocket, Status: 503}},
		"the first endpoint refuses subscriptions": {{Method: "accountSubscribe", Error: fault.Error{Code: -32601, Message: "Method not found"}}},
		"the first endpoint cuts its WebSockets":   {{Socket: fault.SocketCut}},
	}
	for name, faults := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, localnet.Options{Initialised: true})
			e := w.endpoints(nil, faults)
			ctx, cancel := context.WithCancel(t.Context())
			var n notifications
			var running sync.WaitGroup
			running.Go(func() { e.Subscribe(ctx, w.pool.MerkleTree, n.add) })
			w.changeUntilNotified(&n, w.pool.MerkleTree)
			cancel()
			running.Wait()
		})
	}
	t.Run("a cut connection is restored", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, localnet.Options{Initialised: true})
		e := w.endpoints(func(o *chain.EndpointsOptions) { o.Endpoints[1].WebSocketURL = chain.NoWebSocket }, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var n notifications
		var running sync.WaitGroup
		running.Go(func() { e.Subscribe(ctx, w.pool.MerkleTree, n.add) })
		w.changeUntilNotified(&n, w.pool.MerkleTree)
		if err := w.Endpoint("faulty").SetFaults([]fault.Rule{{Socket: fault.SocketCut}}); err != nil {
			t.Fatal(err)
		}
		w.Advance(3)
		if err := w.Endpoint("faulty").SetFaults(nil); err != nil {
			t.Fatal(err)
		}
		w.changeUntilNotified(&n, w.pool.MerkleTree)
		cancel()
		running.Wait()
	})
	t.Run("no WebSocket is configured", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, localnet.Options{})
		e := w.endpoints(func(o *chain.EndpointsOptions) {
			o.Endpoints[0].WebSocketURL, o.Endpoints[1].WebSocketURL = chain.NoWebSocket, chain.NoWebSocket
		}, nil)
		e.Subscribe(t.Context(), w.pool.MerkleTree, func(uint64) { t.Error("a notification arrived without a WebSocket") })
	})
}

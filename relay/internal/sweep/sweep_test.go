package sweep_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/relay/internal/sweep"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

func TestRepeatedFundingMovesNothingTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b, n1, n2 := w.key("old a", 2*sol), w.key("old b", sol), w.key("new 1", 0), w.key("new 2", sol/4)
	s := w.sweeper(w.endpoints())
	order := sweep.FundOrder{From: signers(a, b), To: addresses(n1, n2), Target: sol, Keep: keep}
	r, err := s.Fund(w.context(), order)
	if err != nil || r.Transactions != 1 || r.Lamports != sol+sol*3/4 || r.Fees != fee {
		t.Errorf("result is %+v, error %v; want one transaction", r, err)
	}
	after := map[string]uint64{"old a": sol/4 - fee, "old b": sol, "new 1": sol, "new 2": sol}
	w.checkBalances(after)
	if r, err = s.Fund(w.context(), order); err != nil || r.Transactions != 0 {
		t.Errorf("second run: result is %+v, error %v; want no transactions", r, err)
	}
	w.checkBalances(after)
}

func TestAllMovesEveryLamport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b, empty, to := w.key("old a", 2*sol+7), w.key("old b", shieldpool.RentExempt+fee), w.key("empty", 0), w.key("new", sol)
	s := w.sweeper(w.endpoints())
	r, err := s.All(w.context(), signers(a, b, empty), to.PublicKey())
	if err != nil || r.Transactions != 2 || r.Fees != 2*fee || r.Left != 0 {
		t.Errorf("result is %+v, error %v; want two transactions", r, err)
	}
	after := map[string]uint64{"old a": 0, "old b": 0, "empty": 0, "new": 3*sol + 7 + shieldpool.RentExempt - fee}
	w.checkBalances(after)
	if r, err = s.All(w.context(), signers(a, b), to.PublicKey()); err != nil || r != (sweep.Result{}) {
		t.Errorf("second run: result is %+v, error %v; want nothing moved", r, err)
	}
	w.checkBalances(after)
	// Lamports that do not suffice for a fee stay, and are reported.
	w.fund(b.PublicKey(), shieldpool.RentExempt)
	if r, err = s.All(w.context(), signers(a, b), to.PublicKey()); err != nil || r != (sweep.Result{Left: shieldpool.RentExempt}) {
		t.Errorf("with too few lamports for a fee: result is %+v, error %v; want them reported as left", r, err)
	}
	// A retired key that receives lamports again is swept again.
	w.fund(a.PublicKey(), sol)
	if r, err = s.All(w.context(), signers(a), to.PublicKey()); err != nil || r.Lamports != sol-fee {
		t.Errorf("after another deposit: result is %+v, error %v; want the deposit moved", r, err)
	}
	w.checkBalances(map[string]uint64{"old a": 0, "new": 4*sol + 7 + shieldpool.RentExempt - 2*fee})
}

func TestSweepsWithFaultyEndpoints(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for half a minute of slots")
	}
	t.Parallel()
	const odds = 0.3
	tests := map[string][][]fault.Rule{
		"sends that land and are answered with an error": {{{Method: "sendTransaction", AfterActing: true, Status: http.StatusInternalServerError}}},
		"sends that are cut after they landed":           {{{Method: "sendTransaction", AfterActing: true, Cut: true}}},
		"half of the sends are dropped":                  {{{Method: "sendTransaction", Drop: true, Probability: 0.5}}},
		"any call fails at times":                        {{{Status: http.StatusBadGateway, Probability: odds}}, {{Cut: true, Probability: odds}}},
		"balances that cannot be read at times":          {{{Method: "getMultipleAccounts", Status: http.StatusServiceUnavailable, Probability: 0.5}}, {{Method: "getMultipleAccounts", Hang: true, Probability: odds}}},
		"one of two endpoints has no accounts":           {{{Method: "getMultipleAccounts", Empty: true}}, nil},
		"one of two endpoints lags":                      {{{Lag: 20}}, nil},
		"both endpoints lag at times":                    {{{Lag: 15, Probability: odds}}, {{Lag: 25, Probability: odds}}},
	}
	for name, faults := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			old, n1, n2 := w.key("old", 3*sol), w.key("new 1", 0), w.key("new 2", 0)
			s := w.sweeper(w.endpoints(faults...))
			funded, err := s.Fund(w.context(), sweep.FundOrder{From: signers(old), To: addresses(n1, n2), Target: sol, Keep: keep})
			if err != nil {
				t.Fatal(err)
			}
			w.checkBalances(map[string]uint64{"old": sol - funded.Fees, "new 1": sol, "new 2": sol})
			all, err := s.All(w.context(), signers(old), n1.PublicKey())
			if err != nil {
				t.Fatal(err)
			}
			w.checkBalances(map[string]uint64{"old": 0, "new 1": 2*sol - funded.Fees - all.Fees, "new 2": sol})
			if funded.Transactions != 1 || all.Transactions != 1 {
				t.Errorf("funding: %+v, sweep: %+v; want one transaction each", funded, all)
			}
		})
	}
}

// TestExpiredTransactionIsSignedAnew: all sends are dropped until the first transaction
// has expired.
func TestExpiredTransactionIsSignedAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old, to := w.key("old", 2*sol), w.key("new", sol)
	c := &observedChain{Chain: w.endpoints([]fault.Rule{{Method: "sendTransaction", Drop: true}})}
	c.onBlockhash = func(n int) {
		if n == 2 {
			if expired := w.count(`SELECT count(*) FROM sweeps WHERE state = 'expired'`); expired != 1 {
				t.Errorf("%d transactions have expired when the second is signed, want 1", expired)
			}
			if err := w.net.Endpoint("faulty-a").SetFaults(nil); err != nil {
				t.Error(err)
			}
		}
	}
	r, err := w.sweeper(c).All(w.context(), signers(old), to.PublicKey())
	if err != nil || r.Expired != 1 || r.Transactions != 1 {
		t.Errorf("result is %+v, error %v; want one expired and one landed transaction", r, err)
	}
	w.checkBalances(map[string]uint64{"old": 0, "new": 3*sol - fee})
}

// observedChain is a chain that reports calls to a test as they are made.
type observedChain struct {
	sweep.Chain
	mu          sync.Mutex
	blockhashes int
	onBlockhash func(n int)
	onSend      func(raw []byte)
	onSearch    func(onchain.SearchResult)
}

func (c *observedChain) LatestBlockhash(ctx context.Context) (onchain.Blockhash, error) {
	c.mu.Lock()
	c.blockhashes++
	n := c.blockhashes
	c.mu.Unlock()
	if c.onBlockhash != nil {
		c.onBlockhash(n)
	}
	return c.Chain.LatestBlockhash(ctx)
}

func (c *observedChain) Send(ctx context.Context, raw []byte, how onchain.Sending, minContextSlot uint64) error {
	if c.onSend != nil {
		c.onSend(raw)
	}
	return c.Chain.Send(ctx, raw, how, minContextSlot)
}

func (c *observedChain) Search(ctx context.Context, signatures []solana.Signature) (onchain.SearchResult, error) {
	result, err := c.Chain.Search(ctx, signatures)
	if err == nil && c.onSearch != nil {
		c.onSearch(result)
	}
	return result, err
}

func TestForkLosesNoLamports(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old, to := w.key("old", 2*sol), w.key("new", sol)
	c := &observedChain{Chain: w.endpoints()}
	forks := 0
	c.onSearch = func(l onchain.SearchResult) {
		if st := l.Statuses[0]; st != nil && st.Confirmation == onchain.Confirmed && forks < 3 {
			if _, err := w.net.ForkFrom(st.Slot, nil); err == nil { // it may be final by now
				forks++
			}
		}
	}
	r, err := w.sweeper(c).Fund(w.context(), sweep.FundOrder{From: signers(old), To: addresses(to), Target: 2 * sol, Keep: keep})
	if err != nil || r.Transactions != 1 || forks == 0 {
		t.Errorf("after %d forks: result is %+v, error %v; want one transaction", forks, r, err)
	}
	w.checkBalances(map[string]uint64{"old": sol - r.Fees, "new": 2 * sol})
}

func TestDepositDuringSweepIsSweptToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old, to := w.key("old", 2*sol), w.key("new", sol)
	c := &observedChain{Chain: w.endpoints()}
	var once sync.Once
	c.onSend = func([]byte) {
		// The transaction fails: it would leave the added lamport, which is less than
		// the rent-exempt minimum.
		once.Do(func() { w.fund(old.PublicKey(), 1) })
	}
	r, err := w.sweeper(c).All(w.context(), signers(old), to.PublicKey())
	if err != nil || r.Transactions != 1 || r.Failed+r.Expired == 0 {
		t.Errorf("result is %+v, error %v; want one failed or expired and one landed transaction", r, err)
	}
	w.checkBalances(map[string]uint64{"old": 0, "new": 3*sol + 1 - r.Fees})
}

func TestFundReportsMissingLamports(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old, n1, n2 := w.key("old", keep+sol/20), w.key("new 1", 0), w.key("new 2", 0)
	s := w.sweeper(w.endpoints())
	order := sweep.FundOrder{From: signers(old), To: addresses(n1, n2), Target: sol, Keep: keep}
	var short *sweep.Short
	if _, err := s.Fund(w.context(), order); !errors.As(err, &short) || short.To != old.PublicKey() || short.Need != 2*keep || short.Have != sol/20-fee || !strings.Contains(err.Error(), old.PublicKey().String()) {
		t.Errorf("error is %v, want Short with the missing lamports and the old payer's address", err)
	}
	w.checkBalances(map[string]uint64{"old": keep + sol/20, "new 1": 0, "new 2": 0})
	w.fund(short.To, short.Need-short.Have)
	if r, err := s.Fund(w.context(), order); err != nil || r.Lamports != 2*keep {
		t.Errorf("with the missing lamports: result is %+v, error %v; want all new payers funded", r, err)
	}
	w.checkBalances(map[string]uint64{"old": keep, "new 1": keep, "new 2": keep})
	if _, err := s.All(w.context(), signers(old), old.PublicKey()); err == nil {
		t.Error("a sweep of a key to itself returns no error")
	}
	empty := w.key("made", 0)
	if _, err := s.Fund(w.context(), sweep.FundOrder{From: signers(empty), To: addresses(old), Target: sol, Keep: keep}); err != nil {
		t.Errorf("the old payer is empty and the new payer funded: error %v, want none", err)
	}
}

func TestTransactionWithUnknownOutcomeIsNotSignedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old, to := w.key("old", 2*sol), w.key("new", sol)
	// The transaction never lands, and no endpoint's history is long enough to show
	// that it is dead.
	c := w.endpoints([]fault.Rule{{Method: "sendTransaction", Drop: true}, {History: 20}})
	ctx, cancel := context.WithCancel(w.context())
	defer cancel()
	_, err := w.sweeperWithLog(c, triggerWriter{w.Output(), "role archive", cancel}).All(ctx, signers(old), to.PublicKey())
	var unfinished *sweep.Unfinished
	if !errors.As(err, &unfinished) || !strings.Contains(err.Error(), "role archive") || w.count(`SELECT count(*) FROM sweeps`) != 1 {
		t.Errorf("error is %v, want Unfinished with role archive after one transaction", err)
	}
	// With an endpoint that has the history, the sweep continues.
	if r, err := w.sweeper(w.endpoints(nil)).All(w.context(), signers(old), to.PublicKey()); err != nil || r.Expired != 1 || r.Transactions != 1 {
		t.Errorf("with a complete history: result is %+v, error %v; want one expired and one landed transaction", r, err)
	}
	w.checkBalances(map[string]uint64{"old": 0, "new": 3*sol - fee})
}

func TestSweepsOfOneKeyRunOneAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old, n1, n2 := w.key("old", 3*sol), w.key("new 1", 0), w.key("new 2", 0)
	e := w.endpoints()
	var sweeps sync.WaitGroup
	for range 3 {
		sweeps.Go(func() {
			if _, err := w.sweeper(e).Fund(w.context(), sweep.FundOrder{From: signers(old), To: addresses(n1, n2), Target: sol, Keep: keep}); err != nil {
				t.Error(err)
			}
		})
	}
	sweeps.Wait()
	w.checkBalances(map[string]uint64{"old": sol - fee, "new 1": sol, "new 2": sol})

	session, err := w.store.Sweeps().Lock(t.Context(), addresses(old))
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if _, err := w.sweeper(e).All(ctx, signers(old), n1.PublicKey()); err == nil || !strings.Contains(err.Error(), "another relay sweep") {
		t.Errorf("error is %v, want another relay sweep is at work", err)
	}
}

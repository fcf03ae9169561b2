package app

import (
	"net/http"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/hack/localnet/router"
	"github.com/relaypool/relaypool/relay/contract"
)

// TestASwapEndsInTokens: the recipient has an account or not, and the request names it
// or not.
func TestASwapEndsInTokens(t *testing.T) {
	t.Parallel()
	s := newSwapFixture(t, fixtureOptions{})
	has := func(w *testSwap) {
		_, _, err := s.chain.MintTo(localnet.OutputMint(), w.wallet.PublicKey(), 7)
		must(t, err)
		eventually(t, "the tokens are there", func() bool { return s.tokensOf(w.call.Swap.RecipientATA) == 7 })
	}
	for name, change := range map[string]func(*testSwap){
		"a recipient without an account": nil,
		"one with an account":            has,
		"one who is not named":           func(w *testSwap) { has(w); w.omitRecipient = true },
		"one nullifier":                  func(w *testSwap) { has(w); w.call.Inputs.Nullifiers[1] = [32]byte{} },
	} {
		want := uint64(0)
		w := s.newSwap(change)
		want = s.marketOutput(w.net)
		a := w.submit(s.fixture)
		if a.status != http.StatusOK || a.at("data", "status") != "processing" && a.at("data", "status") != "completed" {
			t.Errorf("%s: the first leg is answered %d %v", name, a.status, a.body)
		}
		w.waitExecuted()
		if got := s.tokensOf(w.call.Swap.RecipientATA) - w.tokens; got != want {
			t.Errorf("%s: the recipient got %d tokens, want all %d that the market gave", name, got, want)
		}
		w.checkNothingLogged()
	}
	if n, _ := s.metric(contract.MetricSwapsEnded, `outcome="executed"`); n != 4 {
		t.Errorf("the metric has %v executed swaps, want 4", n)
	}
	if n := s.queryInt("SELECT count(*) FROM attempts WHERE purpose = 'execute'"); n != 4 {
		t.Errorf("%d executions were signed for 4 swaps", n)
	}
	s.checkAccounting(4*notesRent - notesRent/2 + tokenRent)
}

// TestStatusOfASwapInEachPhase stops a swap in each phase and reads its status.
func TestStatusOfASwapInEachPhase(t *testing.T) {
	t.Parallel()
	s := newSwapFixture(t, fixtureOptions{slotDuration: slowSlot})
	s.failRouter(fault.Rule{Status: http.StatusServiceUnavailable})
	w := s.newSwap(nil)
	a := w.submit(s.fixture)
	if a.status != http.StatusOK || a.at("data", "status") != "processing" || a.at("data", "swap_phase") != "funded" || a.body["signature"] == nil {
		t.Errorf("the first leg is answered %d %v", a.status, a.body)
	}
	w.waitPhase("funded", "router_unavailable")
	path := w.statusPath
	a = w.submit(s.fixture) // a repeat, answered at once and without an id
	w.statusPath = path
	if a.status != http.StatusOK || a.at("data", "status") != "processing" || a.body["signature"] != w.firstSignature {
		t.Errorf("a repeat is answered %d %v", a.status, a.body)
	}
	s.setPrice(50)
	s.setRouter(router.Settings{})
	a = w.waitPhase("funded", "swap_price")
	state := s.account(w.swap.State)
	if slot, _ := a.at("data", "swap_timeout_slot").(float64); state == nil || slot == 0 || a.at("data", "solana_signature") != w.firstSignature || a.at("data", "completed_at") != nil {
		t.Errorf("the status of a funded swap is %v", a.body)
	}
	s.setRouterLies(router.LieRule{Lie: router.WrongProgram})
	s.setPrice(100)
	w.waitPhase("funded", "router_hostile")
	s.setFaults(relayEndpoint, fault.Rule{Method: "sendTransaction", Drop: true})
	s.setRouter(router.Settings{})
	a = w.waitPhase("quoted", "")
	if a.at("data", "swap_signature") != nil {
		t.Errorf("the status of a quoted swap is %v", a.body)
	}
	for _, p := range []struct{ metric, phase string }{{"1", "quoted"}, {"0", "funded"}} {
		eventually(t, "the gauge of "+p.phase+" is "+p.metric, func() bool {
			v, ok := s.metric(contract.MetricSwaps, `phase="`+p.phase+`"`)
			return ok && (v == 1) == (p.metric == "1")
		})
	}
	s.setFaults(relayEndpoint)
	w.waitExecuted()
	if n := w.attempts("execute"); n != 1 {
		t.Errorf("%d executions were signed, want the one that was sent again", n)
	}
	a = w.submit(s.fixture)
	if a.status != http.StatusOK || a.at("data", "status") != "completed" || a.at("data", "swap_phase") != "executed" || a.at("data", "swap_signature") == nil {
		t.Errorf("a repeat of an executed swap is answered %d %v", a.status, a.body)
	}
	w.checkNothingLogged()
	s.checkAccounting(notesRent + tokenRent)
}

// TestARepeatedSwapIsTheSameSubmission: the same swap again is the same submission, in any state;
// another swap of the same notes is refused.
func TestARepeatedSwapIsTheSameSubmission(t *testing.T) {
	t.Parallel()
	s := newSwapFixture(t, fixtureOptions{})
	s.setPrice(50) // no price, so that it is refunded
	w := s.newSwap(func(w *testSwap) { w.call.Swap.MinOutput = 1_000_000 * localnet.OutputUnit })
	first := w.submit(s.fixture, "Idempotency-Key", "once", "Prefer", "respond-async")
	path := w.statusPath
	// Landed data can be copied from the chain: only the owner of its key gets the id.
	repeats := map[string]struct {
		header []string
		id     any
	}{
		"by its key":     {[]string{"Idempotency-Key", "once"}, first.body["request_id"]},
		"by its content": {nil, uuid.Nil.String()},
		"by another key": {[]string{"Idempotency-Key", "twice"}, uuid.Nil.String()},
	}
	for name, r := range repeats {
		if a := w.submit(s.fixture, r.header...); a.body["request_id"] != r.id || a.status != http.StatusOK {
			t.Errorf("a repeat %s is answered %d %v", name, a.status, a.body)
		}
	}
	wantRefused(t, s.call(http.MethodGet, "/status/"+uuid.Nil.String(), nil), http.StatusNotFound, "not_found")
	w.statusPath = path // a repeat's own path leads nowhere
	other := s.newSwap(func(o *testSwap) { o.call.Inputs.Nullifiers = w.call.Inputs.Nullifiers })
	wantRefused(t, s.call(http.MethodPost, "/transact_swap", other.body), http.StatusConflict, "nullifier_reserved")
	plain := submissionBody(w.call.Proof, w.call.Inputs.Bytes(), map[string]any{"recipient": w.wallet.PublicKey().String()})
	wantRefused(t, s.call(http.MethodPost, "/transact", plain), http.StatusBadRequest, "ext_data_mismatch")

	a := w.waitRefunded(0)
	for name, id := range map[string]any{"by its key": first.body["request_id"], "by its content": nil, "by another key": nil} {
		r := s.call(http.MethodPost, "/transact_swap", w.body, repeats[name].header...)
		wantRefused(t, r, http.StatusConflict, "swap_refunded")
		if r.body["refund_signature"] != a.at("data", "refund_signature") || r.body["request_id"] != id {
			t.Errorf("a repeat %s of a refunded swap is answered %v", name, r.body)
		}
	}
	wantRefused(t, s.call(http.MethodPost, "/transact_swap", other.body), http.StatusConflict, "nullifier_reserved")
	if n := s.queryInt("SELECT count(*) FROM submissions"); n != 2 {
		t.Errorf("there are %d rows for the two legs of one swap", n)
	}
	s.checkAccounting(notesRent + stateRent)
}

// TestSwapsWithoutAPriceCostNoAccounts: neither a mint without a market nor a
// minimum above it makes the relay pay rent that it does not get back.
func TestSwapsWithoutAPriceCostNoAccounts(t *testing.T) {
	t.Parallel()
	s := newSwapFixture(t, fixtureOptions{})
	mint, err := s.chain.CreateMint(6, nil)
	must(t, err)
	eventually(t, "the mint is there", func() bool { return s.account(mint) != nil })
	unknown := s.submitSwap(func(w *testSwap) {
		w.call.Swap.OutputMint = mint
		ata, _, err := solana.FindAssociatedTokenAddress(w.wallet.PublicKey(), mint)
		must(t, err)
		w.call.Swap.RecipientATA = ata
	})
	tall := s.submitSwap(func(w *testSwap) { w.call.Swap.MinOutput = 1<<64 - 1 })
	unknown.waitPhase("funded", "no_route")
	tall.waitPhase("funded", "swap_price")
	unknown.waitRefunded(0)
	tall.waitRefunded(0)
	if n := s.queryInt("SELECT count(*) FROM attempts WHERE purpose IN ('accounts', 'execute')"); n != 0 {
		t.Errorf("%d transactions were signed for accounts and executions", n)
	}
	unknown.checkNothingLogged()
	s.checkAccounting(2 * (notesRent + stateRent))
}

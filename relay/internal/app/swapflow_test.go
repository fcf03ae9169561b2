package app

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/hack/localnet/router"
	"github.com/relaypool/relaypool/relay/contract"
)

// The recipient has a token account or not, and the request names the recipient or not.
func TestSwapsAreExecuted(t *testing.T) {
	t.Parallel()
	s := newSwapFixture(t, fixtureOptions{})
	createAccount := func(w *testSwap) {
		_, _, err := s.chain.MintTo(localnet.OutputMint(), w.wallet.PublicKey(), 7)
		must(t, err)
		eventually(t, "the tokens are there", func() bool { return s.tokensOf(w.call.Swap.RecipientATA) == 7 })
	}
	for name, change := range map[string]func(*testSwap){
		"a recipient without an account": nil,
		"a recipient with an account":    createAccount,
		"a recipient who is not named":   func(w *testSwap) { createAccount(w); w.omitRecipient = true },
		"one nullifier":                  func(w *testSwap) { createAccount(w); w.call.Inputs.Nullifiers[1] = [32]byte{} },
	} {
		w := s.newSwap(change)
		want := s.marketOutput(w.net)
		a := w.submit(s.fixture)
		if a.status != http.StatusOK || a.at("data", "status") != "processing" && a.at("data", "status") != "completed" {
			t.Errorf("%s: the first leg is answered %d %v, want 200 for a processing or completed swap", name, a.status, a.body)
		}
		w.waitExecuted()
		if got := s.tokensOf(w.call.Swap.RecipientATA) - w.tokens; got != want {
			t.Errorf("%s: the recipient got %d tokens, want the market's whole output, %d", name, got, want)
		}
		w.checkNothingLogged()
	}
	if n, _ := s.metric(contract.MetricSwapsEnded, `outcome="executed"`); n != 4 {
		t.Errorf("the metric has %v executed swaps, want 4", n)
	}
	if n := s.queryInt("SELECT count(*) FROM attempts WHERE purpose = 'execute'"); n != 4 {
		t.Errorf("%d executions were signed for 4 swaps, want 4", n)
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
		t.Errorf("the first leg is answered %d %v, want 200 for a funded swap with a signature", a.status, a.body)
	}
	w.waitPhase("funded", "router_unavailable")
	path := w.statusPath
	a = w.submit(s.fixture) // a repeat, answered at once and without an id
	w.statusPath = path
	if a.status != http.StatusOK || a.at("data", "status") != "processing" || a.body["signature"] != w.firstSignature {
		t.Errorf("a repeat is answered %d %v, want 200, processing and the first leg's signature", a.status, a.body)
	}
	s.setPrice(50)
	s.setRouter(router.Settings{})
	a = w.waitPhase("funded", "swap_price")
	state := s.account(w.swap.State)
	if slot, _ := a.at("data", "swap_timeout_slot").(float64); state == nil || slot == 0 || a.at("data", "solana_signature") != w.firstSignature || a.at("data", "completed_at") != nil {
		t.Errorf("the status of a funded swap is %v, want a timeout slot and only the first leg's signature", a.body)
	}
	s.setRouterLies(router.LieRule{Lie: router.WrongProgram})
	s.setPrice(100)
	w.waitPhase("funded", "router_hostile")
	s.setFaults(relayEndpoint, fault.Rule{Method: "sendTransaction", Drop: true})
	s.setRouter(router.Settings{})
	a = w.waitPhase("quoted", "")
	if a.at("data", "swap_signature") != nil {
		t.Errorf("the status of a quoted swap is %v, want no swap_signature", a.body)
	}
	for phase, want := range map[string]float64{"quoted": 1, "funded": 0} {
		eventually(t, fmt.Sprintf("the gauge of %s swaps is %v", phase, want), func() bool {
			v, ok := s.metric(contract.MetricSwaps, `phase="`+phase+`"`)
			return ok && v == want
		})
	}
	s.setFaults(relayEndpoint)
	w.waitExecuted()
	if n := w.attempts("execute"); n != 1 {
		t.Errorf("%d executions were signed, want 1, which is sent again", n)
	}
	a = w.submit(s.fixture)
	if a.status != http.StatusOK || a.at("data", "status") != "completed" || a.at("data", "swap_phase") != "executed" || a.at("data", "swap_signature") == nil {
		t.Errorf("a repeat of an executed swap is answered %d %v, want 200 for a completed swap", a.status, a.body)
	}
	w.checkNothingLogged()
	s.checkAccounting(notesRent + tokenRent)
}

// A repeat of the request returns the same submission, in any state of the swap. Another swap
// of the same notes is refused.
func TestARepeatedSwapIsTheSameSubmission(t *testing.T) {
	t.Parallel()
	s := newSwapFixture(t, fixtureOptions{})
	s.setPrice(50) // below the minimum, so that the swap is refunded
	w := s.newSwap(func(w *testSwap) { w.call.Swap.MinOutput = 1_000_000 * localnet.OutputUnit })
	first := w.submit(s.fixture, "Idempotency-Key", "once", "Prefer", "respond-async")
	path := w.statusPath
	// Anybody can copy landed data from the chain: only a request with the first key gets the id.
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
			t.Errorf("a repeat %s is answered %d %v, want 200 with the same request id", name, a.status, a.body)
		}
	}
	wantRefused(t, s.call(http.MethodGet, "/status/"+uuid.Nil.String(), nil), http.StatusNotFound, "not_found")
	w.statusPath = path // the status path of a repeat without the key is not found
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
		t.Errorf("%d submissions are stored for the two legs of one swap, want 2", n)
	}
	s.checkAccounting(notesRent + stateRent)
}

// Neither an output mint without a market nor a minimum above the market makes the relay
// pay the rent of token accounts.
func TestSwapsWithoutAPriceCostNoAccounts(t *testing.T) {
	t.Parallel()
	s := newSwapFixture(t, fixtureOptions{})
	mint, err := s.chain.CreateMint(6, nil)
	must(t, err)
	eventually(t, "the mint exists", func() bool { return s.account(mint) != nil })
	noMarket := s.submitSwap(func(w *testSwap) {
		w.call.Swap.OutputMint = mint
		ata, _, err := solana.FindAssociatedTokenAddress(w.wallet.PublicKey(), mint)
		must(t, err)
		w.call.Swap.RecipientATA = ata
	})
	tooHigh := s.submitSwap(func(w *testSwap) { w.call.Swap.MinOutput = 1<<64 - 1 })
	noMarket.waitPhase("funded", "no_route")
	tooHigh.waitPhase("funded", "swap_price")
	noMarket.waitRefunded(0)
	tooHigh.waitRefunded(0)
	if n := s.queryInt("SELECT count(*) FROM attempts WHERE purpose IN ('accounts', 'execute')"); n != 0 {
		t.Errorf("%d transactions were signed for accounts and executions, want 0", n)
	}
	noMarket.checkNothingLogged()
	s.checkAccounting(2 * (notesRent + stateRent))
}

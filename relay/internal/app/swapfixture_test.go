package app

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/hack/localnet/market"
	"github.com/relaypool/relaypool/hack/localnet/router"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/internal/feepayer"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// quickSlot is the usual slot time, with which a blockhash lasts for 6 s. With slowSlot it
	// lasts for 15 s, for tests that count the transactions of a swap. With forkSlot it lasts
	// for 30 s, and a transaction is final 6 s after it landed, so that a fork can happen in
	// between.
	quickSlot, slowSlot, forkSlot = 40 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond
	// unreachableTimeout is the number of slots until a swap's timeout. No test runs that long:
	// tests reach the timeout with skipTo.
	unreachableTimeout = 100_000
	// relayEndpoint is the relay's only endpoint, so that its faults do not affect the test.
	relayEndpoint = "one"

	// These are the rents of a swap, in lamports.
	notesRent, stateRent, tokenRent = 2 * 650_240, 1_468_120, 1_488_440
	swapGross                       = sol
)

// routerProxy is a proxy of the chain's router. A test can act before a call is answered, and
// can configure the router for each swap. Calls identify a swap only by its amount.
type routerProxy struct {
	router   atomic.Pointer[router.Router]
	mu       sync.Mutex
	settings map[string]router.Settings
	hook     func(call string, query url.Values)
}

func (p *routerProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call, query := strings.TrimPrefix(r.URL.Path, "/"), r.URL.Query()
	amount := query.Get("amount")
	if call == router.CallInstructions {
		var request struct {
			Quote struct {
				Amount string `json:"inAmount"`
			} `json:"quoteResponse"`
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(body, &request) != nil {
			http.Error(w, "the router proxy cannot read the request", http.StatusTeapot)
			return
		}
		amount, r.Body = request.Quote.Amount, io.NopCloser(bytes.NewReader(body))
	}
	// One call at a time: the router has one set of settings for all.
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hook != nil {
		p.hook(call, query)
		r.URL.RawQuery = query.Encode()
	}
	if s, ok := p.settings[amount]; ok {
		if err := p.router.Load().Set(s); err != nil {
			http.Error(w, err.Error(), http.StatusTeapot)
			return
		}
	}
	p.router.Load().ServeHTTP(w, r)
}

// setHook makes the proxy call hook for each later call, one at a time, before the router
// gets the call. hook may change the query. A nil hook removes the present one.
func (p *routerProxy) setHook(hook func(call string, query url.Values)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hook = hook
}

// setByAmount sets the router's behaviour for swaps of that amount of lamports.
func (p *routerProxy) setByAmount(settings map[uint64]router.Settings) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settings = map[string]router.Settings{}
	for amount, s := range settings {
		p.settings[strconv.FormatUint(amount, 10)] = s
	}
}

// swapFixture is a fixture whose relay accepts swaps. The faults of the relay's endpoint do
// not affect directRPC.
type swapFixture struct {
	*fixture
	forger      *forger
	routerProxy *routerProxy
	directRPC   *rpc.Client
	// others are further relays, whose logs are searched too.
	others []*fixture
}

func newSwapFixture(t *testing.T, o fixtureOptions) *swapFixture {
	t.Helper()
	if testing.Short() {
		t.Skip("a swap waits for many slots")
	}
	s := &swapFixture{routerProxy: new(routerProxy)}
	server := httptest.NewServer(s.routerProxy)
	t.Cleanup(server.Close)
	s.forger, o.vk = newForger(t)
	o.slotDuration, o.swapTimeout = cmp.Or(o.slotDuration, quickSlot), unreachableTimeout
	if len(o.endpoints) == 0 {
		o.endpoints = []string{relayEndpoint}
	}
	changeConfig := o.changeConfig
	o.changeConfig = func(c *config.Serve) {
		c.Router = config.Router{
			URLFile: writeTempFile(t, server.URL+"?api-key="+credential), APIKeyFile: writeTempFile(t, credential), Program: market.ProgramID.String(), Timeout: time.Second,
		}
		c.SwapSlippageBps, c.SwapConcurrency = 50, 16
		if changeConfig != nil {
			changeConfig(c)
		}
	}
	s.fixture = newFixture(t, o)
	s.routerProxy.router.Store(s.chain.Router())
	directURL, err := s.chain.ListenEndpoint("direct", "127.0.0.1:0")
	must(t, err)
	s.directRPC = rpc.New(directURL)
	s.waitHealthy()
	in := s.forger.inputs(s.fixture, 100*sol, solana.PublicKey{})
	s.deposit(&shieldpool.Call{Proof: s.forger.prove(t, in), Inputs: in})
	return s
}

// startAnother starts another relay on the same database.
func (s *swapFixture) startAnother(change ...func(*config.Serve)) *fixture {
	s.t.Helper()
	o := s.withRelay(s.runRelay(s.configure(change...)))
	s.others = append(s.others, o)
	return o
}

// withoutRouter configures a relay without a router, which accepts no swaps.
func withoutRouter(c *config.Serve) { c.Router = config.Router{} }

// endpointsOf configures a relay's own endpoints.
func (s *swapFixture) endpointsOf(names ...string) func(*config.Serve) {
	list := s.endpointsFile(names...)
	return func(c *config.Serve) { c.RPC = config.RPC{EndpointsFile: writeTempFile(s.t, list)} }
}

// testSwap is one swap of a client, with its initial balances.
type testSwap struct {
	*swapFixture
	wallet         *feepayer.Key
	call           *shieldpool.Call
	swap           *shieldpool.Swap
	gross          uint64
	net            uint64
	omitRecipient  bool // the request names no recipient: the relay reads it from the chain
	body           map[string]any
	statusPath     string // of GET /status
	firstSignature string // of the first leg

	lamports, tokens uint64 // of the wallet and in its account, before the swap
}

// setPrice sets the market's price in per cent of its initial price.
func (s *swapFixture) setPrice(percent uint64) {
	s.t.Helper()
	must(s.t, s.chain.SetReserves(market.Reserves{Lamports: localnet.DefaultReserveLamports, Tokens: localnet.DefaultReserveTokens / 100 * percent}))
}

// marketOutput returns the market's present output for an amount of lamports.
func (s *swapFixture) marketOutput(lamports uint64) uint64 {
	s.t.Helper()
	state, err := s.chain.MarketState()
	must(s.t, err)
	return state.Output(lamports)
}

func (s *swapFixture) setRouter(settings router.Settings) {
	s.t.Helper()
	must(s.t, s.chain.Router().Set(settings))
}

// failRouter makes the router fail by the rule.
func (s *swapFixture) failRouter(rule fault.Rule) {
	s.t.Helper()
	s.setRouter(router.Settings{Faults: []fault.Rule{rule}})
}

// setRouterLies makes the router return false answers.
func (s *swapFixture) setRouterLies(rules ...router.LieRule) {
	s.t.Helper()
	s.setRouter(router.Settings{Lies: rules})
}

// minOutput returns the market's present output less one per cent.
func (s *swapFixture) minOutput(lamports uint64) uint64 {
	s.t.Helper()
	return s.marketOutput(lamports) / 100 * 99
}

// newSwap returns a swap that is not submitted. Unless changed, its minimum is minOutput.
func (s *swapFixture) newSwap(change func(*testSwap)) *testSwap {
	s.t.Helper()
	w := &testSwap{swapFixture: s, wallet: newKey(s.t), gross: swapGross}
	ata, err := shieldpool.AssociatedTokenAccount(w.wallet.PublicKey(), localnet.OutputMint())
	must(s.t, err)
	in := s.forger.inputs(s.fixture, 0, solana.PublicKey{})
	w.call = &shieldpool.Call{Inputs: in, Destination: shieldpool.Destination{
		Swap: &shieldpool.SwapTerms{OutputMint: localnet.OutputMint(), RecipientATA: ata},
	}}
	if change != nil {
		change(w)
	}
	in.PublicAmount = -int64(w.gross)
	w.net, _ = s.pool.Profile.Fees.Net(w.gross)
	if w.call.Swap.MinOutput == 0 {
		w.call.Swap.MinOutput = s.minOutput(w.net)
	}
	in.ExtDataHash = shieldpool.ExtDataHash(w.call.Destination)
	w.call.Proof = s.forger.prove(s.t, in)
	w.swap, err = s.pool.Swap(in.Nullifiers[0], *w.call.Swap)
	must(s.t, err)
	w.body = submissionBody(w.call.Proof, in.Bytes(), map[string]any{
		"output_mint": w.call.Swap.OutputMint.String(), "recipient_ata": w.call.Swap.RecipientATA.String(),
		"min_output_amount": strconv.FormatUint(w.call.Swap.MinOutput, 10),
	})
	if !w.omitRecipient {
		w.body["recipient"] = w.wallet.PublicKey().String()
	}
	w.lamports, w.tokens = s.lamportsOf(w.wallet.PublicKey()), s.tokensOf(w.call.Swap.RecipientATA)
	return w
}

// submitSwap submits a swap and waits until its first leg has landed.
func (s *swapFixture) submitSwap(change func(*testSwap)) *testSwap {
	s.t.Helper()
	w := s.newSwap(change)
	w.submit(s.fixture)
	return w
}

func (w *testSwap) submit(to *fixture, header ...string) *answer {
	w.t.Helper()
	a := to.call(http.MethodPost, "/transact_swap", w.body, header...)
	if a.status != http.StatusOK && a.status != http.StatusAccepted {
		w.t.Fatalf("the swap is answered %d %v, want 200 or 202", a.status, a.body)
	}
	nullifier := hex.EncodeToString(w.call.Inputs.Nullifiers[0][:])
	if a.body["swap_state_pda"] != w.swap.State.String() || a.body["nullifier"] != nullifier {
		w.t.Errorf("the answer has swap state %v and nullifier %v, want %s and %s", a.body["swap_state_pda"], a.body["nullifier"], w.swap.State, nullifier)
	}
	w.statusPath = a.header.Get("Location")
	if leg, ok := a.body["signature"].(string); ok {
		w.firstSignature = leg
	}
	return a
}

func (w *testSwap) status() *answer {
	w.t.Helper()
	return w.fixture.call(http.MethodGet, w.statusPath, nil)
}

// waitPhase waits until the swap is in the phase and waits for the reason; "" means no reason,
// and "*" any.
func (w *testSwap) waitPhase(phase, reason string) *answer {
	w.t.Helper()
	var a *answer
	eventually(w.t, fmt.Sprintf("the swap is %s and waits for %q", phase, reason), func() bool {
		a = w.status()
		got, _ := a.at("data", "swap_waits").(string)
		return a.at("data", "swap_phase") == phase && (reason == "*" || got == reason)
	})
	if s := a.at("data", "status"); s != "processing" {
		w.t.Errorf("a swap in phase %s has status %v, want processing", phase, s)
	}
	return a
}

// waitSigned waits until the database has n attempts with a purpose.
func (w *testSwap) waitSigned(purpose string, n int) {
	w.t.Helper()
	eventually(w.t, fmt.Sprintf("%d attempts to %s are signed", n, purpose), func() bool { return w.attempts(purpose) >= n })
}

// attempts counts the second leg's attempts with a purpose.
func (w *testSwap) attempts(purpose string) (n int) {
	w.t.Helper()
	must(w.t, w.db.QueryRow(w.t.Context(), `SELECT count(*) FROM attempts a JOIN submissions s ON s.id = a.submission_id
		WHERE s.parent = $1 AND a.purpose = $2`, w.id(), purpose).Scan(&n))
	return n
}

// waitEnd waits until the swap has ended for good, with the given status and phase.
func (w *testSwap) waitEnd(status, phase string) *answer {
	w.t.Helper()
	var a *answer
	eventually(w.t, "the swap is finally "+phase, func() bool {
		a = w.status()
		return a.at("data", "finalized") == true || a.at("data", "status") == "failed" && a.at("data", "error_code") != "swap_refunded"
	})
	if a.at("data", "status") != status || a.at("data", "swap_phase") != phase {
		w.t.Fatalf("the swap ended with %v, want status %s and phase %s", a.body, status, phase)
	}
	if w.firstSignature == "" {
		w.firstSignature, _ = a.at("data", "solana_signature").(string)
	}
	if a.at("data", "tx_id") != w.firstSignature || a.at("data", "solana_signature") != w.firstSignature {
		w.t.Errorf("the status has first leg %v, want %s", a.at("data", "tx_id"), w.firstSignature)
	}
	return a
}

// waitExecuted waits until the swap is executed and compares its status with the chain.
func (w *testSwap) waitExecuted() *answer {
	w.t.Helper()
	a := w.waitEnd("completed", "executed")
	got := w.tokensOf(w.call.Swap.RecipientATA)
	if got < w.tokens+w.call.Swap.MinOutput {
		w.t.Errorf("the recipient got %d tokens, want at least %d", got-w.tokens, w.call.Swap.MinOutput)
	}
	if l := w.lamportsOf(w.wallet.PublicKey()); l != w.lamports {
		w.t.Errorf("the wallet has %d lamports, want %d as before: it is paid only in tokens", l, w.lamports)
	}
	if a.at("data", "refund_signature") != nil || a.at("data", "error") != nil || a.at("data", "error_code") != nil {
		w.t.Errorf("the status of an executed swap is %v, want no refund and no error", a.body)
	}
	w.checkEnd(a.at("data", "swap_signature"), 1, 0)
	return a
}

// waitRefunded skips to the swap's timeout and waits for the refund. The wallet gets the swap's
// lamports, the rent of its state, and extra lamports.
func (w *testSwap) waitRefunded(extra uint64) *answer {
	w.t.Helper()
	w.skipTo(0)
	a := w.waitEnd("failed", "refunded")
	if got, want := w.lamportsOf(w.wallet.PublicKey())-w.lamports, w.net+stateRent+extra; got != want {
		w.t.Errorf("the wallet got %d lamports, want %d", got, want)
	}
	if got := w.tokensOf(w.call.Swap.RecipientATA); got != w.tokens {
		w.t.Errorf("the recipient got %d tokens in addition to the refund, want 0", got-w.tokens)
	}
	if a.at("data", "swap_signature") != nil || a.at("data", "error_code") != "swap_refunded" {
		w.t.Errorf("the status of a refunded swap is %v, want error_code swap_refunded and no swap_signature", a.body)
	}
	w.checkEnd(a.at("data", "refund_signature"), 0, 1)
	return a
}

// checkEnd checks the chain: exactly one transaction, with this signature, ended the swap,
// and its state is closed.
func (w *testSwap) checkEnd(signature any, executions, refunds int) {
	w.t.Helper()
	var executed, closed []string
	for _, l := range w.history(w.swap.State) {
		if l.failed {
			continue
		}
		tags := w.pool.Profile.Tags
		if slices.Contains(l.tags, tags.ExecuteSwap) {
			executed = append(executed, l.signature)
		}
		if slices.Contains(l.tags, tags.CloseSwapState) {
			closed = append(closed, l.signature)
		}
	}
	if len(executed) != executions || len(closed) != refunds {
		w.t.Fatalf("the chain has %d executions and %d refunds of the swap, want %d and %d", len(executed), len(closed), executions, refunds)
	}
	if all := slices.Concat(executed, closed); signature != all[0] {
		w.t.Errorf("the status has final transaction %v, the chain has %s", signature, all[0])
	}
	if n := w.lamportsOf(w.swap.State); n != 0 {
		w.t.Errorf("the swap state has %d lamports, want 0", n)
	}
	w.checkAttemptsDoNotOverlap()
}

// blockhashBlocks is the number of blocks for which a blockhash is valid.
const blockhashBlocks = 150

// checkAttemptsDoNotOverlap checks that each execution or refund was signed only after the
// one before it was on the chain or could no longer land.
func (w *testSwap) checkAttemptsDoNotOverlap() {
	w.t.Helper()
	onChain := map[string]bool{}
	for _, l := range w.history(w.swap.State) {
		onChain[l.signature] = true
	}
	rows, err := w.db.Query(w.t.Context(), `SELECT a.signature, a.last_valid_block_height FROM attempts a JOIN submissions s ON s.id = a.submission_id
		WHERE s.parent = $1 AND a.purpose IN ('execute', 'refund') ORDER BY a.created_at`, w.id())
	must(w.t, err)
	defer rows.Close()
	var previous string
	var previousLast int64
	for rows.Next() {
		var sig []byte
		var last int64
		must(w.t, rows.Scan(&sig, &last))
		if previous != "" && !onChain[previous] && last-blockhashBlocks <= previousLast {
			w.t.Errorf("an attempt was signed at height %d, although the previous one could land up to height %d", last-blockhashBlocks, previousLast)
		}
		previous, previousLast = solana.SignatureFromBytes(sig).String(), last
	}
	must(w.t, rows.Err())
}

// id returns the request's id.
func (w *testSwap) id() string { return w.statusPath[strings.LastIndex(w.statusPath, "/")+1:] }

// landedTransaction is a transaction in the chain's history.
type landedTransaction struct {
	signature string
	payer     solana.PublicKey
	fee       uint64
	failed    bool
	tags      []byte // of the pool program's instructions
}

// history returns the chain's transactions of an address, the newest first.
func (s *swapFixture) history(of solana.PublicKey) (out []landedTransaction) {
	s.t.Helper()
	infos, err := s.directRPC.GetSignaturesForAddressWithOpts(s.t.Context(), of, &rpc.GetSignaturesForAddressOpts{Commitment: rpc.CommitmentConfirmed})
	must(s.t, err)
	for _, info := range infos {
		version := uint64(1)
		got, err := s.directRPC.GetTransaction(s.t.Context(), info.Signature, &rpc.GetTransactionOpts{
			Encoding: solana.EncodingBase64, Commitment: rpc.CommitmentConfirmed, MaxSupportedTransactionVersion: &version,
		})
		must(s.t, err)
		tx, err := got.Transaction.GetTransaction()
		must(s.t, err)
		l := landedTransaction{signature: info.Signature.String(), payer: tx.Message.AccountKeys[0], fee: got.Meta.Fee, failed: got.Meta.Err != nil}
		for _, ix := range tx.Message.Instructions {
			if tx.Message.AccountKeys[ix.ProgramIDIndex].Equals(s.pool.Profile.ProgramID) {
				l.tags = append(l.tags, ix.Data[0])
			}
		}
		out = append(out, l)
	}
	return out
}

func (s *swapFixture) account(key solana.PublicKey) *onchain.Account {
	s.t.Helper()
	accounts, _, err := s.rpc.Accounts(s.t.Context(), []solana.PublicKey{key}, onchain.Confirmed, 0)
	must(s.t, err)
	return accounts[0]
}

func (s *swapFixture) lamportsOf(key solana.PublicKey) uint64 {
	s.t.Helper()
	if a := s.account(key); a != nil {
		return a.Lamports
	}
	return 0
}

// tokensOf returns the balance of a token account; 0 when there is none.
func (s *swapFixture) tokensOf(key solana.PublicKey) uint64 {
	s.t.Helper()
	a := s.account(key)
	if a == nil || !a.Owner.Equals(solana.TokenProgramID) {
		return 0
	}
	account, err := shieldpool.ParseTokenAccount(a.Data)
	must(s.t, err)
	return account.Amount
}

// checkAccounting checks that the payers' balances fell by the fees on the chain and by rent,
// which excludes returned rent, and that the relay's ledger agrees. The database must have every
// transaction on the chain that a payer signed. gifts are lamports that the payers got from others.
func (s *swapFixture) checkAccounting(rent uint64, gifts ...uint64) {
	s.t.Helper()
	var balance, fees uint64
	for _, payer := range s.payers {
		balance += s.lamportsOf(payer.PublicKey())
		for _, l := range s.history(payer.PublicKey()) {
			if !l.payer.Equals(payer.PublicKey()) {
				continue
			}
			fees += l.fee
			if n := s.queryInt("SELECT count(*) FROM attempts WHERE signature = decode('" + hex.EncodeToString(signatureBytes(s.t, l.signature)) + "', 'hex')"); n != 1 {
				s.t.Errorf("%d attempts have a landed transaction of a payer, want 1", n)
			}
		}
	}
	funds := uint64(len(s.payers)) * 10 * sol
	for _, g := range gifts {
		funds += g
	}
	if funds-balance != fees+rent {
		s.t.Errorf("the payers spent %d lamports, want %d for fees and %d for rent; difference %d", funds-balance, fees, rent, int64(funds-balance)-int64(fees+rent))
	}
	eventually(s.t, "the relay's ledger has caught up with the chain", func() bool {
		spent, _ := s.metric(contract.MetricSpent, "")
		returned, _ := s.metric(contract.MetricReturned, "")
		received, _ := s.metric(contract.MetricReceived, "")
		return received+returned-spent == float64(balance)
	})
	if d, ok := s.metric(contract.MetricLedgerDifference, ""); !ok || d != 0 {
		s.t.Errorf("the relay's ledger does not account for %v lamports, want 0", d)
	}
	if n, _ := s.metric(contract.MetricLedgerUnknown, ""); n != 0 {
		s.t.Errorf("%v transactions of the payers are unknown to the ledger, want 0", n)
	}
}

func signatureBytes(t *testing.T, text string) []byte {
	t.Helper()
	sig, err := solana.SignatureFromBase58(text)
	must(t, err)
	return sig[:]
}

// checkNothingLogged checks that logs and metrics contain nothing of a request and of its swap.
func (w *testSwap) checkNothingLogged() {
	w.t.Helper()
	canaries := map[string]string{
		"wallet": w.wallet.PublicKey().String(), "recipient's account": w.call.Swap.RecipientATA.String(), "output mint": w.call.Swap.OutputMint.String(),
		"swap state": w.swap.State.String(), "state's wrapped SOL": w.swap.WSOL.String(), "state's output": w.swap.Output.String(),
		"minimum": strconv.FormatUint(w.call.Swap.MinOutput, 10), "lamports": strconv.FormatUint(w.net, 10),
		"nullifier": hex.EncodeToString(w.call.Inputs.Nullifiers[0][:]), "commitment": hex.EncodeToString(w.call.Inputs.Commitments[0][:]),
		"proof": w.body["proof_bytes"].(string)[:40], "inputs": w.body["public_inputs"].(string)[:40], "credential": credential,
	}
	for _, s := range append([]*fixture{w.fixture}, w.others...) {
		log, metrics := s.log.String(), s.getText(s.operationsURL+contract.MetricsPath)
		for name, canary := range canaries {
			// A canary that is a number matches only a whole number: 0.39950000000000003 may contain its digits.
			pattern := regexp.MustCompile(`(^|[^0-9.])` + regexp.QuoteMeta(canary) + `($|[^0-9])`)
			if _, err := strconv.ParseUint(canary, 10, 64); err != nil {
				pattern = regexp.MustCompile(regexp.QuoteMeta(canary))
			}
			if pattern.MatchString(log) {
				w.t.Errorf("the log has the %s", name)
			}
			if found := pattern.FindString(metrics); found != "" {
				w.t.Errorf("the metrics have the %s: %q", name, found)
			}
		}
	}
}

// sendAs lands instructions that payer pays for and signs, without the relay. If they fail,
// so does the test.
func (s *swapFixture) sendAs(payer *feepayer.Key, instructions ...solana.Instruction) {
	s.t.Helper()
	if failure := s.sendAndWait(payer, instructions...); failure != "" {
		s.t.Fatalf("a transaction failed: %s", failure)
	}
}

// sendAndWait lands instructions and returns their failure.
func (s *swapFixture) sendAndWait(payer *feepayer.Key, instructions ...solana.Instruction) string {
	s.t.Helper()
	ctx := s.t.Context()
	hash, err := s.rpc.LatestBlockhash(ctx)
	must(s.t, err)
	tx, err := shieldpool.Versioned(payer.PublicKey(), shieldpool.Compute{Limit: 600_000}, hash.Hash, nil, instructions...)
	must(s.t, err)
	message, err := tx.Message.MarshalBinary()
	must(s.t, err)
	sig, err := payer.Sign(context.Background(), message)
	must(s.t, err)
	tx.Signatures = []solana.Signature{sig}
	raw, err := tx.MarshalBinary()
	must(s.t, err)
	must(s.t, s.rpc.Send(ctx, raw, false, 0))
	var failure string
	eventually(s.t, "the transaction is confirmed", func() bool {
		st, _, err := s.rpc.Statuses(ctx, []solana.Signature{sig}, true)
		must(s.t, err)
		if st[0] == nil || !st[0].Confirmation.AtLeast(onchain.Confirmed) {
			return false
		}
		if st[0].Err != nil {
			failure = st[0].Err.Error()
		}
		return true
	})
	return failure
}

// stranger returns a funded key that belongs to no relay.
func (s *swapFixture) stranger() *feepayer.Key {
	s.t.Helper()
	key := newKey(s.t)
	must(s.t, s.chain.Fund(key.PublicKey(), sol))
	eventually(s.t, "the stranger is funded", func() bool { return s.lamportsOf(key.PublicKey()) > 0 })
	return key
}

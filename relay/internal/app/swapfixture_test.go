package app

import (
	"bytes"
	"cmp"
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
	// quickSlot is the usual slot time. A blockhash then lasts for 6 s, and with slow for 15 s, for
	// tests that count the transactions of a swap. With forking it lasts for 30 s, and a
	// transaction is final 6 s after it landed, so that a fork can happen in between.
	quickSlot, slowSlot, forkSlot = 40 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond
	// unreachableTimeout is a swap's time to its timeout, in slots, which no test is slow enough to
	// reach: a test ends that time itself, with skipTo.
	unreachableTimeout = 100_000
	// relayEndpoint is the relay's only endpoint, so that its faults do not affect the test.
	relayEndpoint = "one"

	// These are the rents of a swap, in lamports.
	notesRent, stateRent, tokenRent = 1_781_760, 2_011_440, 2_039_280
	swapGross                       = sol
)

// routerProxy proxies the chain's router, so that a test can act between a call and its
// answer, and configure the router for each swap by the amount, which is the only mark of
// a swap in a call.
type routerProxy struct {
	router   atomic.Pointer[router.Router]
	mu       sync.Mutex
	settings map[string]router.Settings
	hook     func(call string, query url.Values)
}

func (d *routerProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call, query := strings.TrimPrefix(r.URL.Path, "/"), r.URL.Query()
	amount := query.Get("amount")
	if call == router.CallInstructions {
		var asked struct {
			Quote struct {
				Amount string `json:"inAmount"`
			} `json:"quoteResponse"`
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(body, &asked) != nil {
			http.Error(w, "the front door cannot read the question", http.StatusTeapot)
			return
		}
		amount, r.Body = asked.Quote.Amount, io.NopCloser(bytes.NewReader(body))
	}
	// One call at a time: the router has one set of settings for all.
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hook != nil {
		d.hook(call, query)
		r.URL.RawQuery = query.Encode()
	}
	if s, ok := d.settings[amount]; ok {
		if err := d.router.Load().Set(s); err != nil {
			http.Error(w, err.Error(), http.StatusTeapot)
			return
		}
	}
	d.router.Load().ServeHTTP(w, r)
}

// setHook calls hook for each later call, one at a time, before the router gets it.
// hook may change the query; a nil hook ends that.
func (d *routerProxy) setHook(hook func(call string, query url.Values)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hook = hook
}

// setByAmount sets the router's behaviour for swaps of that amount of lamports.
func (d *routerProxy) setByAmount(settings map[uint64]router.Settings) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.settings = map[string]router.Settings{}
	for amount, s := range settings {
		d.settings[strconv.FormatUint(amount, 10)] = s
	}
}

// swapFixture is a stand whose relay swaps, with a client of the chain that faults of the
// relay's endpoint do not affect.
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
	more := o.changeConfig
	o.changeConfig = func(c *config.Serve) {
		c.Router = config.Router{
			URLFile: writeTempFile(t, server.URL+"?api-key="+credential), APIKeyFile: writeTempFile(t, credential), Program: market.ProgramID.String(), Timeout: time.Second,
		}
		c.SwapSlippageBps, c.SwapConcurrency = 50, 16
		if more != nil {
			more(c)
		}
	}
	s.fixture = newFixture(t, o)
	s.routerProxy.router.Store(s.chain.Router())
	watch, err := s.chain.ListenEndpoint("watch", "127.0.0.1:0")
	must(t, err)
	s.directRPC = rpc.New(watch)
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

// withoutRouter makes a relay that accepts no swaps.
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
	omitRecipient  bool // the request names no recipient; the chain does
	body           map[string]any
	statusPath     string // of its status
	firstSignature string // the first leg's signature

	lamports, tokens uint64 // of the wallet and in its account, before the swap
}

// setPrice sets the market's price in per cent of its first price.
func (s *swapFixture) setPrice(percent uint64) {
	s.t.Helper()
	must(s.t, s.chain.SetReserves(market.Reserves{Lamports: localnet.DefaultReserveLamports, Tokens: localnet.DefaultReserveTokens / 100 * percent}))
}

// marketOutput returns the market's present output.
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

// setRouterLies makes the router hostile.
func (s *swapFixture) setRouterLies(rules ...router.LieRule) {
	s.t.Helper()
	s.setRouter(router.Settings{Lies: rules})
}

// minOutput returns the present output of the market less one per cent.
func (s *swapFixture) minOutput(lamports uint64) uint64 {
	s.t.Helper()
	return s.marketOutput(lamports) / 100 * 99
}

// newSwap returns a swap that has not begun. Unless changed, its minimum is least.
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

// submitSwap starts a swap, and waits until its first leg has ended.
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
		w.t.Fatalf("the swap is answered %d %v", a.status, a.body)
	}
	nullifier := hex.EncodeToString(w.call.Inputs.Nullifiers[0][:])
	if a.body["swap_state_pda"] != w.swap.State.String() || a.body["nullifier"] != nullifier {
		t := w.t
		t.Errorf("the answer names swap state %v and nullifier %v", a.body["swap_state_pda"], a.body["nullifier"])
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

// waitPhase waits for a phase, and for the reason for which the swap then waits; "" means none,
// and "*" any.
func (w *testSwap) waitPhase(phase, waits string) *answer {
	w.t.Helper()
	var a *answer
	eventually(w.t, fmt.Sprintf("the swap is %s and waits for %q", phase, waits), func() bool {
		a = w.status()
		got, _ := a.at("data", "swap_waits").(string)
		return a.at("data", "swap_phase") == phase && (waits == "*" || got == waits)
	})
	if s := a.at("data", "status"); s != "processing" {
		w.t.Errorf("a swap that is %s has status %v", phase, s)
	}
	return a
}

// waitSigned waits until the database has so many attempts of a purpose.
func (w *testSwap) waitSigned(purpose string, n int) {
	w.t.Helper()
	eventually(w.t, fmt.Sprintf("%d attempts to %s are signed", n, purpose), func() bool { return w.attempts(purpose) >= n })
}

// attempts counts the attempts of the swap's second leg.
func (w *testSwap) attempts(purpose string) (n int) {
	w.t.Helper()
	must(w.t, w.db.QueryRow(w.t.Context(), `SELECT count(*) FROM attempts a JOIN submissions s ON s.id = a.submission_id
		WHERE s.parent = $1 AND a.purpose = $2`, w.id(), purpose).Scan(&n))
	return n
}

// waitEnd waits until both legs are final and the swap has the given result.
func (w *testSwap) waitEnd(status, phase string) *answer {
	w.t.Helper()
	var a *answer
	eventually(w.t, "the swap is "+phase+" for good", func() bool {
		a = w.status()
		return a.at("data", "finalized") == true || a.at("data", "status") == "failed" && a.at("data", "error_code") != "swap_refunded"
	})
	if a.at("data", "status") != status || a.at("data", "swap_phase") != phase {
		w.t.Fatalf("the swap ended as %v, want %s", a.body, phase)
	}
	if w.firstSignature == "" {
		w.firstSignature, _ = a.at("data", "solana_signature").(string)
	}
	if a.at("data", "tx_id") != w.firstSignature || a.at("data", "solana_signature") != w.firstSignature {
		w.t.Errorf("the first leg's signature is %v, was %s", a.at("data", "tx_id"), w.firstSignature)
	}
	return a
}

// waitExecuted waits for the tokens and compares the chain with the status.
func (w *testSwap) waitExecuted() *answer {
	w.t.Helper()
	a := w.waitEnd("completed", "executed")
	got := w.tokensOf(w.call.Swap.RecipientATA)
	if got < w.tokens+w.call.Swap.MinOutput {
		w.t.Errorf("the recipient got %d tokens, the minimum is %d", got-w.tokens, w.call.Swap.MinOutput)
	}
	if l := w.lamportsOf(w.wallet.PublicKey()); l != w.lamports {
		w.t.Errorf("the wallet had %d lamports and has %d: it is paid in tokens alone", w.lamports, l)
	}
	if a.at("data", "refund_signature") != nil || a.at("data", "error") != nil || a.at("data", "error_code") != nil {
		w.t.Errorf("the status of an executed swap is %v", a.body)
	}
	w.checkEnd(a.at("data", "swap_signature"), 1, 0)
	return a
}

// waitRefunded ends the swap's time and waits for the lamports, which include rents that are
// paid in addition to those of the swap's state.
func (w *testSwap) waitRefunded(rents uint64) *answer {
	w.t.Helper()
	w.skipTo(0)
	a := w.waitEnd("failed", "refunded")
	if got, want := w.lamportsOf(w.wallet.PublicKey())-w.lamports, w.net+stateRent+rents; got != want {
		w.t.Errorf("the wallet got %d lamports back, want %d", got, want)
	}
	if got := w.tokensOf(w.call.Swap.RecipientATA); got != w.tokens {
		w.t.Errorf("the recipient got %d tokens and the refund", got-w.tokens)
	}
	if a.at("data", "swap_signature") != nil || a.at("data", "error_code") != "swap_refunded" {
		w.t.Errorf("the status of a refunded swap is %v", a.body)
	}
	w.checkEnd(a.at("data", "refund_signature"), 0, 1)
	return a
}

// checkEnd compares the end with the chain's history: exactly one transaction ended the
// swap, and nothing of it is left.
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
		w.t.Errorf("the status says that %v ended the swap, the chain says %s", signature, all[0])
	}
	if n := w.lamportsOf(w.swap.State); n != 0 {
		w.t.Errorf("the swap state still has %d lamports", n)
	}
	w.checkAttemptsDoNotOverlap()
}

// blockhashBlocks is the number of blocks for which a blockhash is valid.
const blockhashBlocks = 150

// checkAttemptsDoNotOverlap checks that each transaction to end the swap was signed after the one before
// had failed on the chain, or could no longer land.
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
	var before string
	var until int64
	for rows.Next() {
		var sig []byte
		var last int64
		must(w.t, rows.Scan(&sig, &last))
		if before != "" && !onChain[before] && last-blockhashBlocks <= until {
			w.t.Errorf("an attempt was signed at height %d, when the one before could land up to %d", last-blockhashBlocks, until)
		}
		before, until = solana.SignatureFromBytes(sig).String(), last
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
		version := uint64(0)
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

// checkAccounting compares the payers' balances with the chain's fees and the rent that was not
// returned, and the relay's ledger with both. The database must have every transaction on
// the chain that a payer signed. Gifts are lamports that strangers left.
func (s *swapFixture) checkAccounting(rent uint64, gifts ...uint64) {
	s.t.Helper()
	var have, fees uint64
	for _, payer := range s.payers {
		have += s.lamportsOf(payer.PublicKey())
		for _, l := range s.history(payer.PublicKey()) {
			if !l.payer.Equals(payer.PublicKey()) {
				continue
			}
			fees += l.fee
			if n := s.queryInt("SELECT count(*) FROM attempts WHERE signature = decode('" + hex.EncodeToString(signatureBytes(s.t, l.signature)) + "', 'hex')"); n != 1 {
				s.t.Errorf("a payer signed a transaction that landed, and %d attempts know it", n)
			}
		}
	}
	had := uint64(len(s.payers)) * 10 * sol
	for _, g := range gifts {
		had += g
	}
	if had-have != fees+rent {
		s.t.Errorf("the payers spent %d lamports, want %d for fees and %d for rent: %d differ", had-have, fees, rent, int64(had-have)-int64(fees+rent))
	}
	eventually(s.t, "the relay's ledger has caught up with the chain", func() bool {
		spent, _ := s.metric(contract.MetricSpent, "")
		returned, _ := s.metric(contract.MetricReturned, "")
		received, _ := s.metric(contract.MetricReceived, "")
		return received+returned-spent == float64(have)
	})
	if d, ok := s.metric(contract.MetricLedgerDifference, ""); !ok || d != 0 {
		s.t.Errorf("the relay's ledger leaves %v lamports open", d)
	}
	if n, _ := s.metric(contract.MetricLedgerUnknown, ""); n != 0 {
		s.t.Errorf("%v transactions of the payers are unknown to the ledger", n)
	}
}

func signatureBytes(t *testing.T, text string) []byte {
	t.Helper()
	sig, err := solana.SignatureFromBase58(text)
	must(t, err)
	return sig[:]
}

// checkNothingLogged looks for the contents of a request and of its swap in logs and metrics.
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
			// Only whole numbers: a fraction may contain the digits, such as 0.39950000000000003.
			whole := regexp.MustCompile(`(^|[^0-9.])` + regexp.QuoteMeta(canary) + `($|[^0-9])`)
			if _, err := strconv.ParseUint(canary, 10, 64); err != nil {
				whole = regexp.MustCompile(regexp.QuoteMeta(canary))
			}
			if whole.MatchString(log) {
				w.t.Errorf("the log has the %s", name)
			}
			if found := whole.FindString(metrics); found != "" {
				w.t.Errorf("the metrics have the %s: %q", name, found)
			}
		}
	}
}

// sendAs lands instructions that a stranger pays for and signs. It fails the test when they
// fail.
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
	sig, err := payer.Sign(message)
	must(s.t, err)
	tx.Signatures = []solana.Signature{sig}
	raw, err := tx.MarshalBinary()
	must(s.t, err)
	must(s.t, s.rpc.Send(ctx, raw, false, 0))
	var failure string
	eventually(s.t, "a stranger's transaction is confirmed", func() bool {
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

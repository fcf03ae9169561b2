package localnet_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/hack/localnet/market"
	"github.com/relaypool/relaypool/hack/localnet/router"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const oneSOL = int64(solana.LAMPORTS_PER_SOL)

// swapper is a client that runs both legs of a swap. It does not check the router's answers.
type swapper struct {
	*fixture
	*shieldpool.Swap
	router string
	net    uint64
	wallet solana.PublicKey
}

// newSwapper returns a client that has landed a TransactSwap of one SOL with a minimum output, and
// has created the token accounts.
func newSwapper(t *testing.T, minOutput uint64) *swapper {
	t.Helper()
	s := &swapper{fixture: newFixture(t, localnet.Options{Initialised: true}), wallet: address("wallet")}
	var err error
	if s.router, err = s.ListenRouter("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	p := pool(t)
	s.land(nil, transact(t, p, s.payer.PublicKey(), s.tree(p, rpc.CommitmentProcessed).Root, 1, 10*oneSOL, solana.PublicKey{}))
	ata, err := shieldpool.AssociatedTokenAccount(s.wallet, localnet.OutputMint())
	if err != nil {
		t.Fatal(err)
	}
	call := &shieldpool.Call{
		Destination: shieldpool.Destination{Swap: &shieldpool.SwapTerms{OutputMint: localnet.OutputMint(), RecipientATA: ata, MinOutput: minOutput}},
		Inputs: &shieldpool.PublicInputs{
			Root: s.tree(p, rpc.CommitmentProcessed).Root, PublicAmount: -oneSOL, MintAddress: p.Mint.Field,
			Nullifiers: [2][32]byte{{31: 1}}, Commitments: [2][32]byte{{31: 2}, {31: 3}},
		},
	}
	call.Inputs.ExtDataHash = shieldpool.ExtDataHash(call.Destination)
	signals := call.Inputs.Signals()
	if call.Proof, err = secrets.Prove(signals[:], 2); err != nil {
		t.Fatal(err)
	}
	ix, err := p.Instruction(s.payer.PublicKey(), call)
	if err != nil {
		t.Fatal(err)
	}
	s.land(nil, ix)
	if s.Swap, err = p.Swap(call.Inputs.Nullifiers[0], *call.Swap); err != nil {
		t.Fatal(err)
	}
	s.net, _ = p.Profile.Fees.Net(uint64(oneSOL))
	s.land(nil, s.CreateAccounts(s.payer.PublicKey(), s.wallet)...)
	return s
}

// land sends a v0 transaction that must be accepted. It returns the transaction's size in bytes.
func (s *swapper) land(tables []shieldpool.LookupTable, instructions ...solana.Instruction) (size int) {
	s.t.Helper()
	tx := s.versioned(tables, instructions...)
	s.send(tx)
	s.Advance(1)
	raw, err := tx.MarshalBinary()
	if err != nil {
		s.t.Fatal(err)
	}
	return len(raw)
}

func (s *swapper) versioned(tables []shieldpool.LookupTable, instructions ...solana.Instruction) *solana.Transaction {
	s.t.Helper()
	tx, err := shieldpool.Versioned(s.payer.PublicKey(), shieldpool.Compute{Limit: 400_000}, s.blockhash(rpc.CommitmentProcessed), tables, instructions...)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := tx.PartialSign(func(of solana.PublicKey) *solana.PrivateKey {
		if of == s.payer.PublicKey() {
			return &s.payer
		}
		return nil
	}); err != nil {
		s.t.Fatal(err)
	}
	return tx
}

// fetch makes a request to the router and decodes the answer, which must have status 200.
func (s *swapper) fetch(request *http.Request, to any) {
	s.t.Helper()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		s.t.Fatalf("the router answers with status %d, body %s and error %v, want status 200", response.StatusCode, raw, err)
	}
	if err := json.Unmarshal(raw, to); err != nil {
		s.t.Fatal(err)
	}
}

// quoteAnswer is the router's answer to a quote.
type quoteAnswer struct {
	raw       json.RawMessage
	threshold uint64
}

func (s *swapper) quote(more ...string) quoteAnswer {
	s.t.Helper()
	q := url.Values{
		"inputMint": {solana.WrappedSol.String()}, "outputMint": {localnet.OutputMint().String()},
		"amount": {strconv.FormatUint(s.net, 10)}, "slippageBps": {"0"},
	}
	for i := 0; i < len(more); i += 2 {
		q.Set(more[i], more[i+1])
	}
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.router+"/quote?"+q.Encode(), http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	var out quoteAnswer
	s.fetch(request, &out.raw)
	var read struct {
		Threshold uint64 `json:"otherAmountThreshold,string"`
	}
	if err := json.Unmarshal(out.raw, &read); err != nil {
		s.t.Fatal(err)
	}
	out.threshold = read.Threshold
	return out
}

// execution makes the instructions PrepareSwapSol and ExecuteSwap for a quote, and
// reads the lookup tables that the router names.
func (s *swapper) execution(q quoteAnswer) (instructions []solana.Instruction, tables []shieldpool.LookupTable) {
	s.t.Helper()
	body, err := json.Marshal(map[string]any{"quoteResponse": q.raw, "userPublicKey": s.State, "wrapAndUnwrapSol": false})
	if err != nil {
		s.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.router+"/swap-instructions", bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	var out struct {
		Swap struct {
			ProgramID solana.PublicKey
			Accounts  []struct {
				Pubkey               solana.PublicKey
				IsSigner, IsWritable bool
			}
			Data string
		} `json:"swapInstruction"`
		Tables []solana.PublicKey `json:"addressLookupTableAddresses"`
	}
	s.fetch(request, &out)
	metas := make([]*solana.AccountMeta, len(out.Swap.Accounts))
	for i, a := range out.Swap.Accounts {
		metas[i] = &solana.AccountMeta{PublicKey: a.Pubkey, IsSigner: a.IsSigner, IsWritable: a.IsWritable}
	}
	data, err := base64.StdEncoding.DecodeString(out.Swap.Data)
	if err != nil {
		s.t.Fatal(err)
	}
	prepare, err := s.Prepare(s.payer.PublicKey())
	if err != nil {
		s.t.Fatal(err)
	}
	execute, err := s.Execute(s.payer.PublicKey(), out.Swap.ProgramID, metas, data)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, key := range out.Tables {
		account, err := s.GetAccountInfoWithOpts(s.t.Context(), key, &rpc.GetAccountInfoOpts{Commitment: rpc.CommitmentFinalized})
		if err != nil {
			s.t.Fatal(err)
		}
		table, active, err := shieldpool.ParseLookupTable(key, account.GetBinary())
		if err != nil || !active {
			s.t.Fatalf("the router's lookup table is active: %v, error %v; want it active", active, err)
		}
		tables = append(tables, table)
	}
	return []solana.Instruction{prepare, execute}, tables
}

// lamports is a balance at processed.
func (s *swapper) lamports(of solana.PublicKey) uint64 {
	s.t.Helper()
	out, err := s.GetBalance(context.Background(), of, rpc.CommitmentProcessed)
	if err != nil {
		s.t.Fatal(err)
	}
	return out.Value
}

// received is the balance of the recipient's token account.
func (s *swapper) received() uint64 {
	s.t.Helper()
	out, err := s.GetAccountInfoWithOpts(s.t.Context(), s.Terms.RecipientATA, &rpc.GetAccountInfoOpts{Commitment: rpc.CommitmentProcessed})
	if err != nil {
		s.t.Fatal(err)
	}
	account, err := shieldpool.ParseTokenAccount(out.GetBinary())
	if err != nil {
		s.t.Fatal(err)
	}
	return account.Amount
}

// preflightError sends an execution and returns the error of its preflight.
func (s *swapper) preflightError(instructions []solana.Instruction, tables []shieldpool.LookupTable) string {
	s.t.Helper()
	_, err := s.SendTransactionWithOpts(s.t.Context(), s.versioned(tables, instructions...),
		rpc.TransactionOpts{PreflightCommitment: rpc.CommitmentProcessed})
	if err == nil {
		return ""
	}
	return err.Error()
}

// checkRefund waits for the timeout, refunds the swap and checks the wallet's balance.
func (s *swapper) checkRefund() {
	s.t.Helper()
	s.Advance(200)
	refund, err := s.Close(s.payer.PublicKey(), s.wallet, false)
	if err != nil {
		s.t.Fatal(err)
	}
	s.land(nil, refund)
	if got, want := s.lamports(s.wallet), s.net+bank.RentExemption(shieldpool.SwapStateLength); got != want {
		s.t.Errorf("after the refund the wallet has %d lamports, want %d", got, want)
	}
}

func TestSwapRunsFromProofToTokens(t *testing.T) {
	t.Parallel()
	s := newSwapper(t, 140_000_000)
	q := s.quote()
	if q.threshold < s.Terms.MinOutput {
		t.Fatalf("the quote is %d, want at least %d", q.threshold, s.Terms.MinOutput)
	}
	before := s.lamports(s.payer.PublicKey())
	instructions, tables := s.execution(q)
	s.land(tables, instructions...)
	if got := s.received(); got != q.threshold {
		t.Errorf("the recipient has %d, want the quoted %d", got, q.threshold)
	}
	const fee = 5_000
	rents := bank.RentExemption(shieldpool.SwapStateLength) + 2*bank.RentExemption(shieldpool.TokenAccountLength)
	if got := s.lamports(s.payer.PublicKey()) - before; got != rents-fee {
		t.Errorf("the payer got %d lamports, want %d: the rents minus the fee", got, rents-fee)
	}
	for _, key := range []solana.PublicKey{s.State, s.WSOL, s.Output} {
		if got := s.lamports(key); got != 0 {
			t.Errorf("account %s still has %d lamports", key, got)
		}
	}
}

func TestWideRoutesFitWithLookupTableOrFewerAccounts(t *testing.T) {
	t.Parallel()
	s := newSwapper(t, 1)
	size := func(settings router.Settings, more ...string) int {
		t.Helper()
		if err := s.Router().Set(settings); err != nil {
			t.Fatal(err)
		}
		instructions, tables := s.execution(s.quote(more...))
		raw, err := s.versioned(tables, instructions...).MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		return len(raw)
	}
	outside := router.Settings{Wide: 30, Outside: true}
	if got := size(outside); got <= shieldpool.MaxTransactionSize {
		t.Errorf("the transaction with 30 accounts outside the table has %d bytes, want more than %d", got, shieldpool.MaxTransactionSize)
	}
	for name, got := range map[string]int{
		"fewer accounts":      size(outside, "maxAccounts", "20"),
		"direct routes":       size(outside, "onlyDirectRoutes", "true"),
		"30 in the table":     size(router.Settings{Wide: 30}),
		"no further accounts": size(router.Settings{}),
		"all 40 in the table": size(router.Settings{Wide: 40}),
	} {
		if got > shieldpool.MaxTransactionSize {
			t.Errorf("%s: %d bytes, want at most %d", name, got, shieldpool.MaxTransactionSize)
		}
	}
	if err := s.Router().Set(router.Settings{Wide: 30}); err != nil {
		t.Fatal(err)
	}
	instructions, tables := s.execution(s.quote())
	s.land(tables, instructions...)
	if s.received() == 0 {
		t.Error("the wide route paid no tokens")
	}
}

// TestDishonestRouters checks which false routes the program refuses. A relay itself must refuse the
// other ones; this client signs any route.
func TestDishonestRouters(t *testing.T) {
	t.Parallel()
	const reachable, unreachable = 140_000_000, 200_000_000
	tests := map[router.Lie]struct {
		minOutput uint64
		// want is part of the error; "" means that the swap is executed.
		want string
	}{
		router.LowThreshold:  {unreachable, "0x1038"},
		router.ShortOutput:   {reachable, "0x1038"},
		router.PartialFill:   {reachable, "0x1039"},
		router.WrongProgram:  {reachable, "Unsupported program id"},
		router.OtherUser:     {reachable, "signature verification"},
		router.ExtraSigner:   {reachable, "signature verification"},
		router.PayerAccount:  {reachable, ""},
		router.PayerWritable: {reachable, ""},
	}
	for lie, test := range tests {
		t.Run(string(lie), func(t *testing.T) {
			t.Parallel()
			s := newSwapper(t, test.minOutput)
			rule := router.LieRule{Lie: lie}
			if lie == router.PayerAccount || lie == router.PayerWritable {
				rule.Account = s.payer.PublicKey()
			}
			if err := s.Router().Set(router.Settings{Lies: []router.LieRule{rule}}); err != nil {
				t.Fatal(err)
			}
			q := s.quote()
			if q.threshold < test.minOutput {
				t.Fatalf("the quote is %d, want at least %d", q.threshold, test.minOutput)
			}
			instructions, tables := s.execution(q)
			if test.want == "" {
				s.land(tables, instructions...)
				if got := s.received(); got != q.threshold {
					t.Errorf("the recipient has %d, want %d", got, q.threshold)
				}
				return
			}
			if got := s.preflightError(instructions, tables); !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q in it", got, test.want)
			}
			s.checkRefund()
		})
	}
}

func TestSwapFailsWhileThePriceIsWorse(t *testing.T) {
	t.Parallel()
	s := newSwapper(t, 140_000_000)
	q := s.quote()
	lowerReserves := market.Reserves{Lamports: localnet.DefaultReserveLamports, Tokens: localnet.DefaultReserveTokens / 2}
	if err := s.SetReserves(lowerReserves); err != nil {
		t.Fatal(err)
	}
	instructions, tables := s.execution(q)
	if got := s.preflightError(instructions, tables); !strings.Contains(got, "0x1771") {
		t.Errorf("got %q, want the market's error 0x1771 (6001)", got)
	}
	if got := s.quote().threshold; got >= s.Terms.MinOutput {
		t.Errorf("the quote is %d, want it below %d", got, s.Terms.MinOutput)
	}
	// These reserves are larger than the market's tokens, so that the chain mints more.
	if err := s.SetReserves(market.Reserves{Lamports: 1 << 60, Tokens: 1 << 60}); err != nil {
		t.Fatal(err)
	}
	instructions, tables = s.execution(s.quote())
	s.land(tables, instructions...)
	if got := s.received(); got < s.Terms.MinOutput {
		t.Errorf("the recipient has %d, want at least %d", got, s.Terms.MinOutput)
	}
	if err := s.SetReserves(market.Reserves{}); err == nil {
		t.Error("reserves of 0 are accepted, want an error")
	}
}

func TestAdminPortSetsRouterSettings(t *testing.T) {
	t.Parallel()
	f, adminURL := newAdmin(t)
	ask := func(method, path, body string) map[string]any {
		t.Helper()
		status, raw := f.admin(adminURL, method, path, body)
		var out map[string]any
		if err := json.Unmarshal([]byte(raw), &out); err != nil || status != http.StatusOK {
			t.Fatalf("%s %s: status %d with %s, want 200 with JSON", method, path, status, raw)
		}
		return out
	}
	settings := ask("PUT", "/router", `{"wide":3,"faults":[{"status":503}],"lies":[{"lie":"garbage","probability":0.5}]}`)
	want := map[string]any{
		"lookupTable": localnet.RouterTable().String(),
		"settings": map[string]any{
			"wide": 3.0, "faults": []any{map[string]any{"status": 503.0}},
			"lies": []any{map[string]any{"lie": "garbage", "probability": 0.5}},
		},
		"stats": map[string]any{"calls": map[string]any{}, "refused": map[string]any{}, "faults": map[string]any{}, "lies": map[string]any{}},
	}
	if diff := cmp.Diff(want, settings); diff != "" {
		t.Errorf("router (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]fault.Rule{{Status: 503}}, f.Router().Settings().Faults); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	if got := ask("GET", "/router", "")["settings"]; !cmp.Equal(got, want["settings"]) {
		t.Errorf("settings are %v, want %v", got, want["settings"])
	}
	if got := ask("PUT", "/router", "{}")["settings"]; !cmp.Equal(got, map[string]any{}) {
		t.Errorf("after DELETE, settings are %v, want none", got)
	}

	for _, bad := range []struct{ method, path, body, want string }{
		{"PUT", "/router", `{"wide":-1}`, "wide is -1"},
		{"PUT", "/router", `{"lies":[{"lie":"white"}]}`, "lie is"},
	} {
		if status, got := f.admin(adminURL, bad.method, bad.path, bad.body); status != http.StatusBadRequest || !strings.Contains(got, bad.want) {
			t.Errorf("%s %s with %s: status %d with %s, want 400 and %q", bad.method, bad.path, bad.body, status, got, bad.want)
		}
	}
}

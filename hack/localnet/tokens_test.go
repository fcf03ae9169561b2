package localnet_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"
	tokenprogram "github.com/gagliardetto/solana-go/programs/token"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/hack/localnet/token"
	"github.com/relaypool/relaypool/hack/localnet/token/layout"
)

// mint makes a mint of 6 decimals.
func (f *fixture) mint() solana.PublicKey {
	f.t.Helper()
	mint, err := f.CreateMint(6, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	return mint
}

// give gives tokens, and gives the account that they are in.
func (f *fixture) give(mint, owner solana.PublicKey, amount uint64) solana.PublicKey {
	f.t.Helper()
	account, _, err := f.MintTo(mint, owner, amount)
	if err != nil {
		f.t.Fatal(err)
	}
	return account
}

// decode reads the result of a call as JSON.
func decode[T any](t testing.TB, from answer) (out T) {
	t.Helper()
	if from.Error != nil {
		t.Fatalf("error %d, %s", from.Error.Code, from.Error.Message)
	}
	if err := json.Unmarshal(from.Result, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTokensOverRPC(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	mint, owner := f.mint(), address("owner")
	account := f.give(mint, owner, 1_500_000)
	if again := f.give(mint, owner, 250_000); again != account {
		t.Errorf("the tokens went to %s, want the associated account %s again", again, account)
	}
	wrapped := f.give(solana.WrappedSol, owner, 7_000_000)
	f.Finalize()
	ctx := context.Background()
	balance, err := f.GetTokenAccountBalance(ctx, account, rpc.CommitmentFinalized)
	if err != nil {
		t.Fatal(err)
	}
	if v := balance.Value; v.Amount != "1750000" || v.Decimals != 6 || v.UiAmountString != "1.75" || *v.UiAmount != 1.75 {
		t.Errorf("balance is %+v, want 1.75 tokens", v)
	}
	byMint, err := f.GetTokenAccountsByOwner(ctx, owner, &rpc.GetTokenAccountsConfig{Mint: &mint},
		&rpc.GetTokenAccountsOpts{Encoding: solana.EncodingBase64})
	if err != nil {
		t.Fatal(err)
	}
	if len(byMint.Value) != 1 || byMint.Value[0].Pubkey != account {
		t.Fatalf("by mint there are %d accounts, want %s alone", len(byMint.Value), account)
	}
	parsed, err := layout.ParseAccount(byMint.Value[0].Account.Data.GetBinary())
	if err != nil || parsed.Amount != 1_750_000 || parsed.Owner != owner {
		t.Errorf("the account is %+v with error %v, want the owner's tokens", parsed, err)
	}
	byProgram, err := f.GetTokenAccountsByOwner(ctx, owner, &rpc.GetTokenAccountsConfig{ProgramId: &solana.TokenProgramID},
		&rpc.GetTokenAccountsOpts{Encoding: solana.EncodingBase64})
	if err != nil || len(byProgram.Value) != 2 {
		t.Errorf("by program there are %d accounts with error %v, want two", len(byProgram.Value), err)
	}
	none, err := f.GetTokenAccountsByOwner(ctx, owner, &rpc.GetTokenAccountsConfig{ProgramId: &solana.Token2022ProgramID},
		&rpc.GetTokenAccountsOpts{Encoding: solana.EncodingBase64})
	if err != nil || len(none.Value) != 0 {
		t.Errorf("of Token-2022 there are %d accounts with error %v, want none", len(none.Value), err)
	}
	type info struct {
		Value struct {
			Data struct {
				Program string
				Parsed  struct {
					Type string
					Info map[string]any
				}
				Space int
			}
		}
	}
	for _, test := range []struct {
		key  solana.PublicKey
		kind string
		want map[string]any
	}{
		{mint, "mint", map[string]any{"supply": "1750000", "decimals": 6.0, "isInitialized": true}},
		{wrapped, "account", map[string]any{
			"mint": solana.WrappedSol.String(), "owner": owner.String(), "isNative": true, "state": "initialized",
			"tokenAmount":       map[string]any{"amount": "7000000", "decimals": 9.0, "uiAmount": 0.007, "uiAmountString": "0.007"},
			"rentExemptReserve": map[string]any{"amount": "2039280", "decimals": 9.0, "uiAmount": 0.00203928, "uiAmountString": "0.00203928"},
		}},
	} {
		got := decode[info](t, f.call("getAccountInfo", `["`+test.key.String()+`",{"encoding":"jsonParsed"}]`)).Value.Data
		if got.Program != "spl-token" || got.Parsed.Type != test.kind {
			t.Errorf("parsed as %s of %s, want %s of spl-token", got.Parsed.Type, got.Program, test.kind)
		}
		for name, want := range test.want {
			if diff := cmp.Diff(want, got.Parsed.Info[name]); diff != "" {
				t.Errorf("%s of the %s (-want +got):\n%s", name, test.kind, diff)
			}
		}
	}
}

func TestTokenMethodsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	mint := f.mint()
	f.Finalize()
	payer, nowhere := `"`+f.payer.PublicKey().String()+`"`, `"`+address("nowhere").String()+`"`
	for name, test := range map[string]struct {
		method, params, want string
	}{
		"the balance of nothing":   {"getTokenAccountBalance", `[` + nowhere + `]`, "Invalid param: could not find account"},
		"the balance of a wallet":  {"getTokenAccountBalance", `[` + payer + `]`, "Invalid param: not a Token account"},
		"the balance of a mint":    {"getTokenAccountBalance", `["` + mint.String() + `"]`, "Invalid param: not a Token account"},
		"a mint that is nowhere":   {"getTokenAccountsByOwner", `[` + payer + `,{"mint":` + nowhere + `}]`, "Invalid param: could not find mint"},
		"a mint that is a wallet":  {"getTokenAccountsByOwner", `[` + payer + `,{"mint":` + payer + `}]`, "Invalid param: not a Token mint"},
		"another program":          {"getTokenAccountsByOwner", `[` + payer + `,{"programId":` + payer + `}]`, "Invalid param: unrecognized Token program id"},
		"no filter":                {"getTokenAccountsByOwner", `[` + payer + `,{}]`, "expected an object with either `mint` or `programId`"},
		"both filters":             {"getTokenAccountsByOwner", `[` + payer + `,{"mint":` + payer + `,"programId":` + payer + `}]`, "expected an object with either"},
		"a filter that is nothing": {"getTokenAccountsByOwner", `[` + payer + `,null]`, "expected an object with either"},
		"no filter at all":         {"getTokenAccountsByOwner", `[` + payer + `]`, "`params` should have at least 2 argument(s)"},
	} {
		if got := f.call(test.method, test.params); got.Error == nil || got.Error.Code != -32602 || !strings.Contains(got.Error.Message, test.want) {
			t.Errorf("%s gives %+v, want error -32602 with %q", name, got.Error, test.want)
		}
	}
}

type tokenBalance struct {
	AccountIndex           int
	Mint, Owner, ProgramID string
	UITokenAmount          struct {
		UIAmount       *float64
		Decimals       int
		Amount         string
		UIAmountString string
	}
}

func TestHistoryTellsTokenBalances(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	mint, to := f.mint(), address("to")
	from := f.give(mint, f.payer.PublicKey(), 1_000_000)
	create, err := token.CreateIdempotent(f.payer.PublicKey(), to, mint)
	if err != nil {
		t.Fatal(err)
	}
	at, _, err := token.Address(to, mint)
	if err != nil {
		t.Fatal(err)
	}
	tx := f.sign(f.blockhash(rpc.CommitmentProcessed), create,
		tokenprogram.NewTransferInstruction(1_000_000, from, at, f.payer.PublicKey(), nil).Build())
	signature := f.send(tx)
	plain := f.send(f.sign(f.blockhash(rpc.CommitmentProcessed), f.transfer(1_000_000)))
	f.Finalize()
	type transaction struct {
		Meta struct{ PreTokenBalances, PostTokenBalances []tokenBalance }
	}
	index := func(key solana.PublicKey) int {
		i, err := tx.GetAccountIndex(key)
		if err != nil {
			t.Fatal(err)
		}
		return int(i)
	}
	got := decode[transaction](t, f.call("getTransaction", `["`+signature.String()+`",{"maxSupportedTransactionVersion":0}]`)).Meta
	if n := len(got.PreTokenBalances); n != 1 || got.PreTokenBalances[0].UITokenAmount.Amount != "1000000" {
		t.Errorf("before there are %+v, want the payer's tokens alone", got.PreTokenBalances)
	}
	byIndex := map[int]tokenBalance{}
	for _, b := range got.PostTokenBalances {
		byIndex[b.AccountIndex] = b
	}
	emptied, filled := byIndex[index(from)], byIndex[index(at)]
	if emptied.UITokenAmount.Amount != "0" || emptied.UITokenAmount.UIAmount != nil || emptied.UITokenAmount.UIAmountString != "0" {
		t.Errorf("the payer's account has %+v afterwards, want nothing, without a fraction", emptied)
	}
	if len(got.PostTokenBalances) != 2 || filled.Owner != to.String() || filled.Mint != mint.String() ||
		filled.ProgramID != solana.TokenProgramID.String() || filled.UITokenAmount.Decimals != 6 || filled.UITokenAmount.UIAmountString != "1" {
		t.Errorf("afterwards there are %+v, want the recipient's token", got.PostTokenBalances)
	}
	none := decode[transaction](t, f.call("getTransaction", `["`+plain.String()+`",{"maxSupportedTransactionVersion":0}]`)).Meta
	if none.PreTokenBalances == nil || len(none.PreTokenBalances)+len(none.PostTokenBalances) != 0 {
		t.Errorf("a transfer of lamports has %+v, want empty lists", none)
	}
	type block struct{ Transactions []transaction }
	accounts := decode[block](t, f.call("getBlock", `[33,{"transactionDetails":"accounts","maxSupportedTransactionVersion":0}]`))
	if n := len(accounts.Transactions); n == 0 || len(accounts.Transactions[n-2].Meta.PostTokenBalances) != 2 {
		t.Errorf("the block with accounts tells %+v, want the same balances", accounts)
	}
}

func TestAFailedSimulationLeavesNoAccounts(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	mint := f.mint()
	from, to := f.give(mint, f.payer.PublicKey(), 10), f.give(mint, address("to"), 0)
	f.Finalize()
	type simulation struct {
		Value struct {
			Err      any
			Accounts []*struct{ Data []string }
		}
	}
	simulate := func(amount uint64) simulation {
		raw, err := f.sign(f.blockhash(rpc.CommitmentFinalized),
			tokenprogram.NewTransferInstruction(amount, from, to, f.payer.PublicKey(), nil).Build()).MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		return decode[simulation](t, f.call("simulateTransaction", `["`+base64.StdEncoding.EncodeToString(raw)+
			`",{"encoding":"base64","accounts":{"encoding":"base64","addresses":["`+to.String()+`","`+from.String()+`"]}}]`))
	}
	good := simulate(4)
	if good.Value.Err != nil || len(good.Value.Accounts) != 2 {
		t.Fatalf("got %+v, want a success with two accounts", good)
	}
	for i, want := range []uint64{4, 6} {
		data, err := base64.StdEncoding.DecodeString(good.Value.Accounts[i].Data[0])
		if err != nil {
			t.Fatal(err)
		}
		if parsed, err := layout.ParseAccount(data); err != nil || parsed.Amount != want {
			t.Errorf("account %d has %+v with error %v, want %d tokens", i, parsed, err, want)
		}
	}
	bad := simulate(11)
	if bad.Value.Err == nil || len(bad.Value.Accounts) != 2 || bad.Value.Accounts[0] != nil || bad.Value.Accounts[1] != nil {
		t.Errorf("got %+v, want an error with two nulls", bad)
	}
}

func TestTheAdminPortGovernsTokens(t *testing.T) {
	t.Parallel()
	f, url := newAdmin(t)
	post := func(path, body string) map[string]string {
		t.Helper()
		status, raw := f.admin(url, "POST", path, body)
		out := map[string]string{}
		if err := json.Unmarshal([]byte(raw), &out); err != nil || status != 200 {
			t.Fatalf("%s gives status %d with %s", path, status, raw)
		}
		return out
	}
	owner := address("owner").String()
	mint := post("/mint", `{"decimals":6}`)["mint"]
	account := post("/mint-to", `{"mint":"`+mint+`","owner":"`+owner+`","amount":18446744073709551615}`)["account"]
	state := func() string {
		f.Finalize()
		type info struct {
			Value struct {
				Data struct {
					Parsed struct {
						Info struct {
							State       string
							TokenAmount struct{ Amount string }
						}
					}
				}
			}
		}
		got := decode[info](t, f.call("getAccountInfo", `["`+account+`",{"encoding":"jsonParsed"}]`)).Value.Data.Parsed.Info
		return got.State + " with " + got.TokenAmount.Amount
	}
	if got := state(); got != "initialized with 18446744073709551615" {
		t.Errorf("the account is %s, want the tokens in it", got)
	}
	holding := `{"mint":"` + mint + `","owner":"` + owner + `"}`
	for _, want := range []string{"frozen", "initialized"} {
		path := map[string]string{"frozen": "/freeze", "initialized": "/thaw"}[want]
		post(path, holding)
		if got := state(); !strings.HasPrefix(got, want+" ") {
			t.Errorf("after %s the account is %s", path, got)
		}
	}
	table := post("/lookup-table", `{"addresses":["`+mint+`","`+owner+`"]}`)["table"]
	f.Finalize()
	if got := f.call("getAccountInfo", `["`+table+`",{"encoding":"base64","dataSlice":{"offset":0,"length":1}}]`); !strings.Contains(string(got.Result), `"AQ=="`) ||
		!strings.Contains(string(got.Result), solana.AddressLookupTableProgramID.String()) {
		t.Errorf("the table is %s, want one of its program", got.Result)
	}
	frozenBy := post("/mint", `{"decimals":0,"freezeAuthority":"`+owner+`"}`)["mint"]
	post("/mint-to", `{"mint":"`+frozenBy+`","owner":"`+owner+`","amount":1}`)
	for name, test := range map[string]struct{ path, body, want string }{
		"decimals beyond 64 bits":        {"/mint", `{"decimals":20}`, "decimals is 20, expected 0 to 19"},
		"a freeze authority that is not": {"/mint", `{"decimals":2,"freezeAuthority":"x"}`, "freezeAuthority: expected an address"},
		"tokens of no mint":              {"/mint-to", `{"mint":"` + owner + `","owner":"` + owner + `","amount":1}`, "incorrect program id"},
		"tokens of a mint not given":     {"/mint-to", `{"owner":"` + owner + `","amount":1}`, "mint: expected an address"},
		"tokens for nobody":              {"/mint-to", `{"mint":"` + mint + `","amount":1}`, "owner: expected an address"},
		"tokens below none":              {"/mint-to", `{"mint":"` + mint + `","owner":"` + owner + `","amount":-1}`, "amount: got a number -1, expected uint64"},
		"more tokens than there can be":  {"/mint-to", `{"mint":"` + mint + `","owner":"` + owner + `","amount":1}`, "custom program error: 0xe"},
		"a thaw of what is not frozen":   {"/thaw", holding, "thaw account: "},
		"a freeze that another governs":  {"/freeze", `{"mint":"` + frozenBy + `","owner":"` + owner + `"}`, "custom program error: 0x4"},
		"a table of nothing":             {"/lookup-table", `{}`, "want one address or more"},
		"a table of no address":          {"/lookup-table", `{"addresses":["` + owner + `","x"]}`, "addresses[1]: expected an address"},
	} {
		if status, got := f.admin(url, "POST", test.path, test.body); status != 400 || !strings.Contains(got, test.want) {
			t.Errorf("%s gives status %d with %s, want 400 with %q", name, status, got, test.want)
		}
	}
}

// TestAnEmptyNodeKnowsNoTokens has the fault that nothing exists.
func TestAnEmptyNodeKnowsNoTokens(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	mint := f.mint()
	account := f.give(mint, address("owner"), 5)
	f.Finalize()
	if err := f.SetFaults(map[string][]fault.Rule{localnet.DefaultEndpoint: {{Empty: true}}}); err != nil {
		t.Fatal(err)
	}
	got := f.call("getTokenAccountsByOwner", `["`+address("owner").String()+`",{"mint":"`+mint.String()+`"},{"encoding":"base64"}]`)
	if got.Error != nil || !strings.HasSuffix(string(got.Result), `"value":[]}`) {
		t.Errorf("got %s with %+v, want an empty list", got.Result, got.Error)
	}
	if got := f.call("getTokenAccountBalance", `["`+account.String()+`"]`); got.Error == nil || got.Error.Code != -32602 {
		t.Errorf("got %s, want the account unknown", got.Result)
	}
}

// TestAChainHasAccountsAndProgramsOfATestsOwn: a mint of Token-2022 is one that
// a relay must tell from others, and refuse.
func TestAChainHasAccountsAndProgramsOfATestsOwn(t *testing.T) {
	t.Parallel()
	program := bank.Program{
		ID: address("program"), Account: bank.ProgramAccount(), Process: func(*bank.Invocation) error { return bank.CustomError(77) },
	}
	f := newFixture(t, localnet.Options{
		Programs: []bank.Program{program},
		Accounts: map[solana.PublicKey]bank.Account{address("mint"): token.MintAccount2022(layout.Mint{Decimals: 6, Initialized: true})},
	})
	for key, owner := range map[solana.PublicKey]solana.PublicKey{
		address("mint"): solana.Token2022ProgramID, solana.WrappedSol: solana.TokenProgramID,
	} {
		info, err := f.GetAccountInfo(context.Background(), key)
		if err != nil || info.Value.Owner != owner {
			t.Errorf("%s is %+v with error %v, want it owned by %s", key, info, err, owner)
		}
	}
	_, err := f.SendTransaction(context.Background(), f.sign(f.blockhash(rpc.CommitmentFinalized), solana.NewInstruction(program.ID, nil, nil)))
	if err == nil || !strings.Contains(err.Error(), "custom program error: 0x4d") {
		t.Errorf("its program gives %v, want its own error", err)
	}
}

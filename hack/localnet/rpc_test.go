package localnet_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/big"
	"net/http"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

func TestGenesisHashIsTheDevelopmentHash(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	got, err := f.GetGenesisHash(context.Background())
	if err != nil || got != shieldpool.DevelopmentGenesisHash {
		t.Errorf("got %s with error %v, want %s", got, err, shieldpool.DevelopmentGenesisHash)
	}
}

func TestClusterMethodsReturnTheSlotOfTheCommitmentLevel(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	f.Skip(4)
	f.Advance(localnet.DefaultConfirmAfter)
	ctx := context.Background()
	tests := map[string]struct {
		level                rpc.CommitmentType
		wantSlot, wantHeight uint64
	}{
		"finalized is the default": {"", 4, 4},
		"finalized":                {rpc.CommitmentFinalized, 4, 4},
		"confirmed":                {rpc.CommitmentConfirmed, 38, 34},
		"processed":                {rpc.CommitmentProcessed, 40, 36},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			slot, err := f.GetSlot(ctx, test.level)
			if err != nil || slot != test.wantSlot {
				t.Errorf("slot is %d with error %v, want %d", slot, err, test.wantSlot)
			}
			height, err := f.GetBlockHeight(ctx, test.level)
			if err != nil || height != test.wantHeight {
				t.Errorf("height is %d with error %v, want %d", height, err, test.wantHeight)
			}
			latest, err := f.GetLatestBlockhash(ctx, test.level)
			if err != nil || latest.Context.Slot != test.wantSlot {
				t.Fatalf("latest blockhash at %v with error %v, want slot %d", latest, err, test.wantSlot)
			}
			wantLast := test.wantHeight + 150
			if test.level == rpc.CommitmentProcessed {
				wantLast-- // the open block has no hash yet: the node returns its parent's
			}
			if got := latest.Value.LastValidBlockHeight; got != wantLast {
				t.Errorf("last valid block height is %d, want %d", got, wantLast)
			}
			epoch, err := f.GetEpochInfo(ctx, test.level)
			if err != nil || epoch.AbsoluteSlot != test.wantSlot || epoch.BlockHeight != test.wantHeight || epoch.TransactionCount == nil || *epoch.TransactionCount != 1 {
				t.Errorf("epoch is %+v with error %v, want slot %d and one transaction", epoch, err, test.wantSlot)
			}
		})
	}
	if health, err := f.GetHealth(ctx); err != nil || health != "ok" {
		t.Errorf("health is %q with error %v, want ok", health, err)
	}
	if version, err := f.GetVersion(ctx); err != nil || !strings.HasPrefix(version.SolanaCore, "4.") {
		t.Errorf("version is %v with error %v, want 4.x", version, err)
	}
	if first, err := f.GetFirstAvailableBlock(ctx); err != nil || first != 0 {
		t.Errorf("first available block is %d with error %v, want 0", first, err)
	}
	last := uint64(50)
	if slots, err := f.GetBlocks(ctx, 32, &last, rpc.CommitmentConfirmed); err != nil ||
		!cmp.Equal(rpc.BlocksResult{32, 33, 38}, slots) {
		t.Errorf("blocks are %v with error %v, want 32, 33 and 38", slots, err)
	}
	if rent, err := f.GetMinimumBalanceForRentExemption(ctx, 4304, ""); err != nil || rent != (4304+128)*5080 {
		t.Errorf("rent is %d with error %v, want %d", rent, err, (4304+128)*5080)
	}
}

func TestAccountsAreBase64(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{Initialised: true})
	f.Finalize()
	p, ctx := pool(t), context.Background()
	tree := p.MerkleTree.String()
	empty := base64.StdEncoding.EncodeToString(make([]byte, 4))
	tests := map[string]struct {
		params   string
		wantData string
	}{
		"base64":                              {`["` + tree + `",{"encoding":"base64","dataSlice":{"offset":32,"length":4}}]`, `["` + empty + `","base64"]`},
		"without an encoding":                 {`["` + tree + `",{"dataSlice":{"offset":32,"length":4}}]`, `["` + empty + `","base64"]`},
		"a slice that ends beyond the data":   {`["` + tree + `",{"encoding":"base64","dataSlice":{"offset":4300,"length":100}}]`, `["` + empty + `","base64"]`},
		"a slice that starts beyond the data": {`["` + tree + `",{"encoding":"base64","dataSlice":{"offset":9999,"length":100}}]`, `["","base64"]`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out struct {
				Value struct{ Data json.RawMessage }
			}
			if err := json.Unmarshal(f.call("getAccountInfo", test.params).Result, &out); err != nil {
				t.Fatal(err)
			}
			if got := string(out.Value.Data); got != test.wantData {
				t.Errorf("data is %s, want %s", got, test.wantData)
			}
		})
	}

	accounts, err := f.GetMultipleAccountsWithOpts(ctx, []solana.PublicKey{p.Treasury, address("nobody"), f.payer.PublicKey()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if accounts.Value[1] != nil {
		t.Errorf("a missing account is %+v, want null", accounts.Value[1])
	}
	got := accounts.Value[0]
	if got.Owner != p.Profile.ProgramID || got.Lamports != 650_240 || got.Executable ||
		got.RentEpoch.Cmp(new(big.Int).SetUint64(math.MaxUint64)) != 0 {
		t.Errorf("treasury is %+v, want an account of the program with 650240 lamports", got)
	}
	if accounts.Value[2].Owner != solana.SystemProgramID {
		t.Errorf("the wallet is owned by %s, want the system program", accounts.Value[2].Owner)
	}
}

func TestRecentPrioritizationFees(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	ctx := context.Background()
	tx := f.sign(f.blockhash(rpc.CommitmentConfirmed), unitLimit(300_000), unitPrice(10_000), f.transfer(1_000_000))
	f.send(tx)
	f.Advance(1)
	recent, err := f.GetRecentPrioritizationFees(ctx, solana.PublicKeySlice{address("to")})
	if err != nil || recent[len(recent)-1].PrioritizationFee != 10_000 || recent[len(recent)-2].PrioritizationFee != 0 {
		t.Errorf("recent fees are %v with error %v, want 10000 last and 0 before", recent, err)
	}
}

func TestSendTransactionFollowsAgavesRules(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	encode := func(tx *solana.Transaction) string {
		raw, err := tx.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		return base64.StdEncoding.EncodeToString(raw)
	}
	params := func(tx *solana.Transaction, config string) string {
		return fmt.Sprintf(`[%q,{"encoding":"base64","preflightCommitment":"processed"%s}]`, encode(tx), config)
	}
	tests := map[string]struct {
		prepare     func(*fixture) string
		wantCode    int // 0 for success
		wantMessage string
		wantData    string // the beginning of the error's data
		wantPaid    uint64 // lamports that the payer has lost
	}{
		"a valid transaction is executed": {
			prepare:  func(f *fixture) string { return params(f.sign(f.blockhash("processed"), f.transfer(1_000_000)), "") },
			wantPaid: 1_005_000,
		},
		"a transaction that would fail is refused with its logs": {
			prepare:  func(f *fixture) string { return params(f.sign(f.blockhash("processed"), f.transfer(1<<60)), "") },
			wantCode: -32002, wantMessage: "Transaction simulation failed: Error processing Instruction 0: custom program error: 0x1",
			wantData: `{"accounts":null,"err":{"InstructionError":[0,{"Custom":1}]},"innerInstructions":null,"loadedAccountsDataSize":142,"logs":["Program 11111111111111111111111111111111 invoke [1]","Transfer: insufficient`,
		},
		"a transaction that would fail pays when preflight is skipped": {
			prepare: func(f *fixture) string {
				return params(f.sign(f.blockhash("processed"), f.transfer(1<<60)), `,"skipPreflight":true`)
			},
			wantPaid: 5000,
		},
		"a blockhash newer than the preflight's level is not found": {
			prepare: func(f *fixture) string {
				return fmt.Sprintf(`[%q,{"encoding":"base64"}]`, encode(f.sign(f.blockhash("processed"), f.transfer(1_000_000))))
			},
			wantCode: -32002, wantMessage: "Transaction simulation failed: Blockhash not found",
			wantData: `{"accounts":null,"err":"BlockhashNotFound","innerInstructions":null,"loadedAccountsDataSize":0,"logs":[],"replacementBlockhash":null,"returnData":null,"unitsConsumed":0}`,
		},
		"a transaction with an unknown blockhash is dropped when preflight is skipped": {
			prepare: func(f *fixture) string {
				return params(f.sign(solana.Hash{1}, f.transfer(1_000_000)), `,"skipPreflight":true`)
			},
		},
		"a transaction processed before is refused": {
			prepare: func(f *fixture) string {
				tx := f.sign(f.blockhash("processed"), f.transfer(1_000_000))
				f.send(tx)
				return params(tx, "")
			},
			wantCode: -32002, wantMessage: "Transaction simulation failed: This transaction has already been processed", wantData: `{"accounts":null,"err":"AlreadyProcessed"`,
			wantPaid: 1_005_000,
		},
		"a transaction processed before executes once when preflight is skipped": {
			prepare: func(f *fixture) string {
				tx := f.sign(f.blockhash("processed"), f.transfer(1_000_000))
				f.send(tx)
				return params(tx, `,"skipPreflight":true`)
			},
			wantPaid: 1_005_000,
		},
		"a wrong signature is refused": {
			prepare: func(f *fixture) string {
				tx := f.sign(f.blockhash("processed"), f.transfer(1_000_000))
				tx.Signatures[0][0] ^= 1
				return params(tx, "")
			},
			wantCode: -32003, wantMessage: "Transaction signature verification failure",
		},
		"a transaction with a wrong signature is dropped when preflight is skipped": {
			prepare: func(f *fixture) string {
				tx := f.sign(f.blockhash("processed"), f.transfer(1_000_000))
				tx.Signatures[0][0] ^= 1
				return params(tx, `,"skipPreflight":true`)
			},
		},
		"a node that is behind refuses": {
			prepare: func(f *fixture) string {
				tx := f.sign(f.blockhash("processed"), f.transfer(1_000_000))
				if err := f.Endpoint(localnet.DefaultEndpoint).SetFaults([]fault.Rule{{Method: "sendTransaction", Lag: 140}}); err != nil {
					t.Fatal(err)
				}
				return params(tx, "")
			},
			wantCode: -32005, wantMessage: "Node is behind by 140 slots", wantData: `{"numSlotsBehind":140}`,
		},
		"a minContextSlot that the node has not reached is refused": {
			prepare: func(f *fixture) string {
				return params(f.sign(f.blockhash("processed"), f.transfer(1_000_000)), `,"minContextSlot":1000`)
			},
			wantCode: -32016, wantMessage: "Minimum context slot has not been reached", wantData: `{"contextSlot":33}`,
		},
		"bytes that are no transaction are refused": {
			prepare:  func(*fixture) string { return `["AAAA",{"encoding":"base64"}]` },
			wantCode: -32602, wantMessage: "failed to deserialize solana_transaction::versioned::VersionedTransaction",
		},
		"text that is no base64 is refused": {
			prepare:  func(*fixture) string { return `["*",{"encoding":"base64"}]` },
			wantCode: -32602, wantMessage: "Invalid params: parameter 1: illegal base64 data",
		},
		"another encoding is refused": {
			prepare:  func(*fixture) string { return `["AAAA",{"encoding":"json"}]` },
			wantCode: -32602, wantMessage: "Invalid params: parameter 2: unknown variant `json`, expected `base64`",
		},
		"more than a packet is refused": {
			prepare: func(*fixture) string {
				return `["` + base64.StdEncoding.EncodeToString(make([]byte, 1233)) + `",{"encoding":"base64"}]`
			},
			wantCode: -32602, wantMessage: "decoded solana_transaction::versioned::VersionedTransaction too large: 1233 bytes (max: 1232 bytes)",
		},
		"offsets beyond the accounts are refused": {
			prepare: func(f *fixture) string {
				tx := f.sign(f.blockhash("processed"), f.transfer(1_000_000))
				tx.Message.Instructions[0].ProgramIDIndex = 9
				return params(tx, "")
			},
			wantCode: -32602, wantMessage: "invalid transaction: Transaction failed to sanitize accounts offsets correctly",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, localnet.Options{})
			before, err := f.GetBalance(ctx, f.payer.PublicKey(), rpc.CommitmentProcessed)
			if err != nil {
				t.Fatal(err)
			}
			checkError(t, f.call("sendTransaction", test.prepare(f)), test.wantCode, test.wantMessage, test.wantData)
			after, err := f.GetBalance(ctx, f.payer.PublicKey(), rpc.CommitmentProcessed)
			if err != nil {
				t.Fatal(err)
			}
			if got := before.Value - after.Value; got != test.wantPaid {
				t.Errorf("the payer paid %d lamports, want %d", got, test.wantPaid)
			}
		})
	}
}

// checkError compares an answer with an error's code and the beginnings of its message and data.
// Code 0 means success.
func checkError(t *testing.T, got answer, code int, message, data string) {
	t.Helper()
	if code == 0 {
		if got.Error != nil {
			t.Errorf("got error %d %q, want success", got.Error.Code, got.Error.Message)
		}
		return
	}
	if got.Error == nil {
		t.Fatalf("got result %s, want error %d", got.Result, code)
	}
	if got.Error.Code != code || !strings.HasPrefix(got.Error.Message, message) || !strings.HasPrefix(string(got.Error.Data), data) {
		t.Errorf("got %d %q %s, want %d %q %s", got.Error.Code, got.Error.Message, got.Error.Data, code, message, data)
	}
}

func TestErrorCodesMatchAgave(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{History: 300})
	f.Skip(1)
	f.Advance(300)
	wallet := `"` + f.payer.PublicKey().String() + `"`
	signature := `"` + solana.Signature{1}.String() + `"`
	many := func(n int, of string) string { return "[" + strings.TrimSuffix(strings.Repeat(of+",", n), ",") + "]" }
	tests := map[string]struct {
		method, params string
		wantCode       int
		wantMessage    string
	}{
		"a method that does not exist":    {"getMoon", `[]`, -32601, "Method not found"},
		"parameters by name":              {"getSlot", `{"commitment":"processed"}`, -32602, "Invalid params"},
		"a missing parameter":             {"getBalance", `[]`, -32602, "`params` should have at least 1 argument(s)"},
		"one parameter too many":          {"getHealth", `[1]`, -32602, "Invalid parameters"},
		"an address of another length":    {"getBalance", `["abc"]`, -32602, `Invalid params: parameter 1: invalid public key "abc"`},
		"an address that is no base58":    {"getBalance", `["0OIl"]`, -32602, "Invalid params: parameter 1: invalid public key"},
		"an address of another type":      {"getBalance", `[5]`, -32602, "Invalid params: parameter 1: "},
		"an unknown commitment":           {"getSlot", `[{"commitment":"root"}]`, -32602, "Invalid params: parameter 1: unknown variant `root`"},
		"a slot not reached yet":          {"getBalance", `[` + wallet + `,{"minContextSlot":5000}]`, -32016, "Minimum context slot has not been reached"},
		"an unknown account encoding":     {"getAccountInfo", `[` + wallet + `,{"encoding":"hex"}]`, -32602, "Invalid params: parameter 2: unknown variant `hex`"},
		"too many accounts":               {"getMultipleAccounts", `[` + many(101, wallet) + `]`, -32602, "Too many inputs provided; max 100"},
		"too many signatures":             {"getSignatureStatuses", `[` + many(257, signature) + `]`, -32602, "Too many inputs provided; max 256"},
		"a signature of another length":   {"getSignatureStatuses", `[["abc"]]`, -32602, "Invalid params: parameter 1: decode"},
		"too many fee addresses":          {"getRecentPrioritizationFees", `[` + many(129, wallet) + `]`, -32602, "Too many inputs provided; max 128"},
		"a limit of 0":                    {"getSignaturesForAddress", `[` + wallet + `,{"limit":0}]`, -32602, "Invalid limit; max 1000"},
		"a limit above the maximum":       {"getSignaturesForAddress", `[` + wallet + `,{"limit":1001}]`, -32602, "Invalid limit; max 1000"},
		"history at processed":            {"getSignaturesForAddress", `[` + wallet + `,{"commitment":"processed"}]`, -32602, "Method does not support commitment below `confirmed`"},
		"a transaction at processed":      {"getTransaction", `[` + signature + `,{"commitment":"processed"}]`, -32602, "Method does not support commitment below `confirmed`"},
		"a transaction as jsonParsed":     {"getTransaction", `[` + signature + `,{"encoding":"jsonParsed"}]`, -32602, "Invalid params: parameter 2: unknown variant `jsonParsed`"},
		"a block at processed":            {"getBlock", `[300,{"commitment":"processed"}]`, -32602, "Method does not support commitment below `confirmed`"},
		"unknown transaction details":     {"getBlock", `[200,{"transactionDetails":"some"}]`, -32602, "Invalid params: unknown variant `some`"},
		"a block in the future":           {"getBlock", `[5000]`, -32004, "Block not available for slot 5000"},
		"a block not yet finalized":       {"getBlock", `[330]`, -32004, "Block not available for slot 330"},
		"a skipped slot before history":   {"getBlock", `[34]`, -32001, "Block 34 cleaned up, does not exist on node. First available block: 36"},
		"a block older than the history":  {"getBlock", `[1]`, -32001, "Block 1 cleaned up, does not exist on node. First available block: 36"},
		"blocks beyond the newest":        {"getBlocks", `[400,1000000,{"commitment":"confirmed"}]`, 0, ""},
		"blocks at processed":             {"getBlocks", `[0,5,{"commitment":"processed"}]`, -32602, "Method does not support commitment below `confirmed`"},
		"rent above the largest account":  {"getMinimumBalanceForRentExemption", `[10485761]`, -32602, "Invalid params"},
		"rent of a negative size":         {"getMinimumBalanceForRentExemption", `[-1]`, -32602, "Invalid params: parameter 1: invalid type: number -1"},
		"an airdrop below rent exemption": {"requestAirdrop", `["` + address("new").String() + `",1]`, -32603, "Internal error: airdrop 1 lamports"},
		"an airdrop of more than exists":  {"requestAirdrop", `[` + wallet + `,18000000000000000000]`, -32603, "Internal error"},
		"an airdrop to no address":        {"requestAirdrop", `["x",1]`, -32602, "Invalid param"},
		"a simulation with both options":  {"simulateTransaction", `["AAAA",{"encoding":"base64","sigVerify":true,"replaceRecentBlockhash":true}]`, -32602, "sigVerify may not be used with replaceRecentBlockhash"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			checkError(t, f.call(test.method, test.params), test.wantCode, test.wantMessage, "")
		})
	}
}

func TestSkippedSlotHasItsOwnError(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	f.Skip(1)
	f.Finalize()
	checkError(t, f.call("getBlock", `[34]`), -32007, "Slot 34 was skipped, or missing due to ledger jump to recent snapshot", "")
}

func TestJSONRPCEnvelopes(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	tests := map[string]struct{ body, want string }{
		"a call":             {`{"jsonrpc":"2.0","id":"a","method":"getHealth"}`, `{"jsonrpc":"2.0","result":"ok","id":"a"}`},
		"a batch":            {`[{"jsonrpc":"2.0","id":7,"method":"getHealth"},1]`, `[{"jsonrpc":"2.0","result":"ok","id":7},{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request"},"id":null}]`},
		"an empty batch":     {`[]`, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request"},"id":null}`},
		"no JSON":            {`hello`, `{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null}`},
		"an empty body":      {``, `{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null}`},
		"another version":    {`{"jsonrpc":"1.0","id":1,"method":"getHealth"}`, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request"},"id":1}`},
		"parameters of null": {`{"jsonrpc":"2.0","id":1,"method":"getHealth","params":null}`, `{"jsonrpc":"2.0","result":"ok","id":1}`},
		"a result of null":   {`{"jsonrpc":"2.0","id":1,"method":"getTransaction","params":["` + solana.Signature{1}.String() + `"]}`, `{"jsonrpc":"2.0","result":null,"id":1}`},
		"a fractional slot":  {`{"jsonrpc":"2.0","id":1,"method":"getBlock","params":[1.5]}`, `{"jsonrpc":"2.0","error":{"code":-32602,"message":"Invalid params: parameter 1: invalid type: number 1.5, expected uint64"},"id":1}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := strings.TrimSpace(string(f.post(test.body))); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

func TestHTTPRefusals(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	tests := map[string]struct {
		method, path, kind string
		body               io.Reader
		want               int
	}{
		"GET without an upgrade": {http.MethodGet, "/", "", nil, http.StatusMethodNotAllowed},
		"another content type":   {http.MethodPost, "/", "text/plain", strings.NewReader(`{}`), http.StatusUnsupportedMediaType},
		"JSON with a charset":    {http.MethodPost, "/", "application/json; charset=utf-8", strings.NewReader(`{}`), http.StatusOK},
		"more than 50 KiB":       {http.MethodPost, "/", "application/json", bytes.NewReader(make([]byte, 51<<10)), http.StatusRequestEntityTooLarge},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request, err := http.NewRequestWithContext(t.Context(), test.method, f.url+test.path, test.body)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Content-Type", test.kind)
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			if err := response.Body.Close(); err != nil {
				t.Fatal(err)
			}
			if response.StatusCode != test.want {
				t.Errorf("status %d, want %d", response.StatusCode, test.want)
			}
		})
	}
}

package localnet_test

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go/rpc"

	"github.com/relaypool/relaypool/hack/localnet"
)

func TestReadMethodsCheckMinContextSlot(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	f.Advance(40)
	payer := `"` + f.payer.PublicKey().String() + `"`
	hash := f.blockhash(rpc.CommitmentFinalized)
	tx := f.sign(hash, f.transfer(1_000_000))
	raw, err := tx.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	sent := `"` + base64.StdEncoding.EncodeToString(raw) + `"`
	// The test replaces CONFIG by a commitment level and a minContextSlot.
	tests := map[string]string{
		"getSlot":                 `[{CONFIG}]`,
		"getBlockHeight":          `[{CONFIG}]`,
		"getEpochInfo":            `[{CONFIG}]`,
		"getLatestBlockhash":      `[{CONFIG}]`,
		"getBalance":              `[` + payer + `,{CONFIG}]`,
		"getAccountInfo":          `[` + payer + `,{"encoding":"base64",CONFIG}]`,
		"getMultipleAccounts":     `[[` + payer + `],{CONFIG}]`,
		"getSignaturesForAddress": `[` + payer + `,{CONFIG}]`,
		"getBlocks":               `[1,2,{CONFIG}]`,
		"simulateTransaction":     `[` + sent + `,{"encoding":"base64",CONFIG}]`,
	}
	for method, params := range tests {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			for level, slot := range map[string]string{"confirmed": "71", "finalized": "41"} {
				ask := func(minimum string) answer {
					return f.call(method, strings.ReplaceAll(params, "CONFIG", `"commitment":"`+level+`","minContextSlot":`+minimum))
				}
				if got := ask(slot); got.Error != nil {
					t.Errorf("at %s with its own slot %s: error %+v, want none", level, slot, got.Error)
				}
				got := ask("72")
				if got.Error == nil || got.Error.Code != -32016 || got.Error.Message != "Minimum context slot has not been reached" ||
					string(got.Error.Data) != `{"contextSlot":`+slot+`}` {
					t.Errorf("at %s with a later slot: %+v, want error -32016 with slot %s", level, got, slot)
				}
			}
		})
	}
}

func TestSendChecksMinContextSlot(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	const tip = 33
	tests := map[string]struct {
		config   string
		lands    bool
		wantSlot string
	}{
		"preflight at a level that reached it": {`"preflightCommitment":"processed","minContextSlot":33`, true, ""},
		"preflight at a level below it":        {`"preflightCommitment":"confirmed","minContextSlot":33`, false, "31"},
		"preflight at finalized by default":    {`"minContextSlot":2`, false, "1"},
		"without preflight, reached":           {`"skipPreflight":true,"minContextSlot":33`, true, ""},
		"without preflight, not reached":       {`"skipPreflight":true,"minContextSlot":34`, false, "33"},
	}
	if slot, err := f.GetSlot(context.Background(), rpc.CommitmentProcessed); err != nil || slot != tip {
		t.Fatalf("slot is %d with error %v, want %d", slot, err, tip)
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tx := f.sign(f.blockhash(rpc.CommitmentFinalized), f.transfer(uint64(1_000_000+len(name))))
			raw, err := tx.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			got := f.call("sendTransaction", `["`+base64.StdEncoding.EncodeToString(raw)+`",{"encoding":"base64",`+test.config+`}]`)
			if landed := f.landed(tx.Signatures[0]); landed != test.lands {
				t.Errorf("the transaction landed: %t with answer %+v, want %t", landed, got, test.lands)
			}
			if !test.lands && (got.Error == nil || got.Error.Code != -32016 || string(got.Error.Data) != `{"contextSlot":`+test.wantSlot+`}`) {
				t.Errorf("the answer is %+v, want error -32016 with slot %s", got, test.wantSlot)
			}
		})
	}
}

func TestGetBlocks(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	f.Skip(3) // no block in 34 to 36
	f.Advance(localnet.DefaultConfirmAfter)
	const confirmed = `{"commitment":"confirmed"}`
	tests := map[string]struct{ method, params, want string }{
		"a range":                           {"getBlocks", `[32,37,` + confirmed + `]`, `[32,33,37]`},
		"a range that ends above the level": {"getBlocks", `[33,500000,` + confirmed + `]`, `[33,37]`},
		"a range backwards":                 {"getBlocks", `[33,32,` + confirmed + `]`, `[]`},
		"finalized by default":              {"getBlocks", `[1,9]`, `[1,2,3,4]`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := f.call(test.method, test.params)
			if got.Error != nil || !strings.HasPrefix(string(got.Result), test.want) {
				t.Errorf("got %s with error %+v, want %s", got.Result, got.Error, test.want)
			}
		})
	}
	for name, test := range map[string]struct{ method, params, want string }{
		"processed": {"getBlocks", `[1,2,{"commitment":"processed"}]`, "Method does not support commitment below `confirmed`"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := f.call(test.method, test.params); got.Error == nil || got.Error.Code != -32602 || got.Error.Message != test.want {
				t.Errorf("got %+v, want error -32602 %s", got, test.want)
			}
		})
	}
}

func TestGetBlocksRangeIsLimited(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	f.Skip(600_000)
	f.Finalize()
	if got := f.call("getBlocks", `[33,500033]`); string(got.Result) != `[33]` {
		t.Errorf("the largest range returns %s with error %+v, want [33]", got.Result, got.Error)
	}
	if got := f.call("getBlocks", `[33,500034]`); got.Error == nil || got.Error.Message != "Slot range too large; max 500000" {
		t.Errorf("a larger range returns %+v, want the error Slot range too large", got)
	}
}

// TestRootHistoryHasTheGivenLength initialises pools whose root history is shorter and longer
// than the profile's.
func TestRootHistoryHasTheGivenLength(t *testing.T) {
	t.Parallel()
	for name, length := range map[string]int{"shorter": 4, "longer": 1000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, localnet.Options{Initialised: true, RootHistory: length})
			out, err := f.GetAccountInfo(context.Background(), pool(t).MerkleTree)
			if err != nil {
				t.Fatal(err)
			}
			profile := *pool(t).Profile
			profile.RootHistory = length
			tree, err := profile.ParseTree(out.GetBinary())
			if err != nil {
				t.Fatal(err)
			}
			if err := tree.SelfCheck(); err != nil || len(tree.History) != length {
				t.Errorf("the tree has a root history of %d with error %v, want %d", len(tree.History), err, length)
			}
		})
	}
}

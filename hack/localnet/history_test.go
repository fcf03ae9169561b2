package localnet_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/localnet"
)

// decodeGeneric decodes JSON into maps, lists and values, for comparison.
func decodeGeneric(t testing.TB, raw []byte) (out any) {
	t.Helper()
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return out
}

func TestSimulationReturnsTheOutcome(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	ctx := context.Background()
	tx := f.sign(f.blockhash(rpc.CommitmentProcessed), unitLimit(1000), f.transfer(1_000_000))
	out, err := f.SimulateTransactionWithOpts(ctx, tx, &rpc.SimulateTransactionOpts{
		SigVerify: true, Commitment: rpc.CommitmentProcessed,
	})
	if err != nil {
		t.Fatal(err)
	}
	if out.Value.Err != nil || *out.Value.UnitsConsumed != 300 || len(out.Value.Logs) != 4 {
		t.Errorf("error %v, %d units, logs %q; want none, 300 and four lines", out.Value.Err, *out.Value.UnitsConsumed, out.Value.Logs)
	}
	unsigned := f.sign(solana.Hash{}, f.transfer(1<<60))
	unsigned.Signatures[0] = solana.Signature{}
	out, err = f.SimulateTransactionWithOpts(ctx, unsigned, &rpc.SimulateTransactionOpts{ReplaceRecentBlockhash: true})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(out.Value.Err); err != nil || string(got) != `{"InstructionError":[0,{"Custom":1}]}` {
		t.Errorf("the error of a failing simulation is %s, want Custom 1", got)
	}
	if _, err = f.SimulateTransactionWithOpts(ctx, unsigned, &rpc.SimulateTransactionOpts{SigVerify: true}); err == nil || !strings.Contains(err.Error(), "-32003") {
		t.Errorf("a wrong signature with sigVerify returns %v, want -32003", err)
	}
	checkError(t, f.call("simulateTransaction", `["`+tx.MustToBase64()+`",{"minContextSlot":1000}]`), -32016, "Minimum context slot has not been reached", "")
}

func TestSignatureStatuses(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	succeeded := f.send(f.sign(f.blockhash(rpc.CommitmentProcessed), f.transfer(1_000_000)))
	failing := f.sign(f.blockhash(rpc.CommitmentProcessed), f.transfer(1<<60))
	if _, err := f.SendTransactionWithOpts(context.Background(), failing, rpc.TransactionOpts{SkipPreflight: true}); err != nil {
		t.Fatal(err)
	}
	statuses := func(search string) string {
		params := `[["` + succeeded.String() + `","` + failing.Signatures[0].String() + `","` + solana.Signature{1}.String() + `"],{"searchTransactionHistory":` + search + `}]`
		var out struct{ Value json.RawMessage }
		if err := json.Unmarshal(f.call("getSignatureStatuses", params).Result, &out); err != nil {
			t.Fatal(err)
		}
		return string(out.Value)
	}
	pair := func(level, confirmations string) string {
		return `[{"slot":33,"confirmations":` + confirmations + `,"err":null,"status":{"Ok":null},"confirmationStatus":"` + level + `"},` +
			`{"slot":33,"confirmations":` + confirmations + `,"err":{"InstructionError":[0,{"Custom":1}]},"status":{"Err":{"InstructionError":[0,{"Custom":1}]}},"confirmationStatus":"` + level + `"},null]`
	}
	steps := []struct {
		advance uint64
		search  string
		want    string
	}{
		{0, "false", pair("processed", "0")},
		{2, "false", pair("confirmed", "2")},
		{30, "false", pair("finalized", "null")},
		{118, "false", pair("finalized", "null")},
		{1, "false", "[null,null,null]"},
		{0, "true", pair("finalized", "null")},
	}
	for _, step := range steps {
		f.Advance(step.advance)
		if diff := cmp.Diff(decodeGeneric(t, []byte(step.want)), decodeGeneric(t, []byte(statuses(step.search)))); diff != "" {
			t.Errorf("after %d more blocks, search %s (-want +got):\n%s", step.advance, step.search, diff)
		}
	}
}

func TestSignaturesForAddressHasErrorsAndStatus(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	first := f.send(f.sign(f.blockhash(rpc.CommitmentProcessed), f.transfer(1_000_000)))
	failing := f.sign(f.blockhash(rpc.CommitmentProcessed), f.transfer(1<<60))
	if _, err := f.SendTransactionWithOpts(context.Background(), failing, rpc.TransactionOpts{SkipPreflight: true}); err != nil {
		t.Fatal(err)
	}
	f.Advance(localnet.DefaultConfirmAfter)
	ctx, limit := context.Background(), 2
	found, err := f.GetSignaturesForAddressWithOpts(ctx, address("to"), &rpc.GetSignaturesForAddressOpts{Limit: &limit, Commitment: rpc.CommitmentConfirmed})
	if err != nil || len(found) != 2 {
		t.Fatalf("found %v with error %v, want two", found, err)
	}
	if found[0].Signature != failing.Signatures[0] || found[0].Err == nil || found[1].Signature != first || found[1].Err != nil ||
		found[0].ConfirmationStatus != rpc.ConfirmationStatusConfirmed || found[0].BlockTime == nil || found[0].Slot != 33 {
		t.Errorf("found %+v and %+v, want the failed one of slot 33 first, confirmed", found[0], found[1])
	}
	older, err := f.GetSignaturesForAddressWithOpts(ctx, address("to"), &rpc.GetSignaturesForAddressOpts{Before: found[0].Signature, Commitment: rpc.CommitmentConfirmed})
	if err != nil || len(older) != 1 || older[0].Signature != first {
		t.Errorf("signatures before the newer one: %v with error %v, want the older one", older, err)
	}
	newer, err := f.GetSignaturesForAddressWithOpts(ctx, address("to"), &rpc.GetSignaturesForAddressOpts{Until: first, Commitment: rpc.CommitmentConfirmed})
	if err != nil || len(newer) != 1 || newer[0].Signature != found[0].Signature {
		t.Errorf("signatures until the older one: %v with error %v, want the newer one", newer, err)
	}
	if none, err := f.GetSignaturesForAddress(ctx, address("to")); err != nil || len(none) != 0 {
		t.Errorf("at finalized: %v with error %v, want none yet", none, err)
	}
}

func TestTransactionsHaveTheirMeta(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	tx := f.sign(f.blockhash(rpc.CommitmentProcessed), f.transfer(1_000_000))
	signature := f.send(tx)
	f.Finalize()
	want := decodeGeneric(t, []byte(`{
		"slot": 33, "blockTime": 0,
		"transaction": ["`+tx.MustToBase64()+`", "base64"],
		"meta": {
			"err": null, "status": {"Ok":null}, "fee": 5000,
			"preBalances": [1000000000000,0,1], "postBalances": [999998995000,1000000,1],
			"innerInstructions": [], "preTokenBalances": [], "postTokenBalances": [], "rewards": [],
			"logMessages": ["Program 11111111111111111111111111111111 invoke [1]","Program 11111111111111111111111111111111 success"],
			"loadedAddresses": {"writable":[],"readonly":[]}, "computeUnitsConsumed": 150, "costUnits": 1481
		}
	}`))
	got := decodeGeneric(t, f.call("getTransaction", `["`+signature.String()+`"]`).Result)
	if object, ok := got.(map[string]any); ok {
		object["blockTime"] = float64(0)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("getTransaction (-want +got):\n%s", diff)
	}
}

func TestVersion0IsRefusedUnlessTheClientSupportsIt(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	tx := f.sign(f.blockhash(rpc.CommitmentProcessed), f.transfer(1_000_000))
	if _, err := tx.Message.SetVersion(solana.MessageVersionV0); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Sign(func(solana.PublicKey) *solana.PrivateKey { return &f.payer }); err != nil {
		t.Fatal(err)
	}
	signature := f.send(tx)
	f.Finalize()
	const message = "Transaction version (0) is not supported by the requesting client."
	checkError(t, f.call("getTransaction", `["`+signature.String()+`"]`), -32015, message, "")
	checkError(t, f.call("getBlock", `[33]`), -32015, message, "")
	var out struct{ Version any }
	if err := json.Unmarshal(f.call("getTransaction", `["`+signature.String()+`",{"maxSupportedTransactionVersion":0}]`).Result, &out); err != nil {
		t.Fatal(err)
	}
	if out.Version != float64(0) {
		t.Errorf("got %+v, want version 0", out)
	}
}

func TestBlocksHaveTheirTransactionsInOrder(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	var sent []solana.Signature
	for i := range uint64(5) {
		sent = append(sent, f.send(f.sign(f.blockhash(rpc.CommitmentProcessed), f.transfer(1_000_000+i))))
	}
	f.Finalize()
	block, err := f.GetBlockWithOpts(t.Context(), 33, &rpc.GetBlockOpts{Encoding: solana.EncodingBase64, TransactionDetails: rpc.TransactionDetailsFull})
	if err != nil {
		t.Fatal(err)
	}
	for i := range sent {
		if tx, err := block.Transactions[i].GetTransaction(); err != nil || tx.Signatures[0] != sent[i] {
			t.Errorf("transaction %d has error %v or is out of order", i, err)
		}
	}
	if block.ParentSlot != 32 || *block.BlockHeight != 33 || block.BlockTime == nil || block.Blockhash == block.PreviousBlockhash {
		t.Errorf("block is %+v, want parent slot 32 and height 33", block)
	}
}

package localnet_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/fault"
)

// TestBlocksHoldForeignTransactions reads a block as clients of different ages do.
func TestBlocksHoldForeignTransactions(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{Strangers: 5})
	f.Advance(1)
	slot, err := f.GetSlot(t.Context(), rpc.CommitmentProcessed)
	if err != nil {
		t.Fatal(err)
	}
	f.Finalize()
	params := func(version int) string {
		return fmt.Sprintf(`[%d,{"encoding":"base64","maxSupportedTransactionVersion":%d}]`, slot-1, version)
	}
	checkError(t, f.call("getBlock", params(0)), -32015, "Transaction version (1) is not supported by the requesting client", "")
	var block struct {
		Transactions []struct {
			Version any
			Meta    struct{ Err any }
		}
	}
	if err := json.Unmarshal(f.call("getBlock", params(1)).Result, &block); err != nil {
		t.Fatal(err)
	}
	versions := map[any]int{}
	for _, tx := range block.Transactions {
		versions[tx.Version]++
		if tx.Meta.Err != nil {
			t.Errorf("a foreign transaction failed with %v", tx.Meta.Err)
		}
	}
	if versions["legacy"] != 2 || versions[1.0] != 3 {
		t.Errorf("the block has versions %v, want two legacy and three of version 1", versions)
	}

	if err := f.Endpoint(localnet.DefaultEndpoint).SetFaults([]fault.Rule{{Method: "getBlock", UnknownVersionBytes: 10 << 20}}); err != nil {
		t.Fatal(err)
	}
	checkError(t, f.call("getBlock", params(1)), -32015, "Transaction version (2) is not supported", "")
	raw := f.call("getBlock", params(2)).Result
	if err := json.Unmarshal(raw, &block); err != nil {
		t.Fatal(err)
	}
	if len(raw) < 10<<20 || len(block.Transactions) != 5+(10<<20)/4096 {
		t.Errorf("the block has %d transactions in %d bytes, want 2565 in more than 10 MiB", len(block.Transactions), len(raw))
	}
}

func TestAFeeIsToldForAMessage(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	hash := f.blockhash(rpc.CommitmentConfirmed)
	message := func(hash solana.Hash, options ...solana.TransactionOption) string {
		tx, err := solana.NewTransaction([]solana.Instruction{f.transfer(1)}, hash, append(options, solana.TransactionPayer(f.payer.PublicKey()))...)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := tx.Message.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		return base64.StdEncoding.EncodeToString(raw)
	}
	v1 := solana.TransactionV1Config(solana.TransactionConfig{}.WithPriorityFee(77).WithComputeUnitLimit(1000).WithLoadedAccountsDataSizeLimit(1 << 16))
	for name, test := range map[string]struct{ message, want string }{
		"a legacy message":            {message(hash), "5000"},
		"a message of version 1":      {message(hash, v1), "5077"},
		"a blockhash that is unknown": {message(solana.Hash{1}), "null"},
	} {
		var got struct{ Value json.RawMessage }
		if err := json.Unmarshal(f.call("getFeeForMessage", `["`+test.message+`",{"commitment":"confirmed"}]`).Result, &got); err != nil {
			t.Fatal(err)
		}
		if string(got.Value) != test.want {
			t.Errorf("%s costs %s, want %s", name, got.Value, test.want)
		}
	}
}

func TestTheGenesisCertificateTellsTheConsensus(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	if got := f.call("getAgGenesisCert", `[]`).Result; string(got) != "null" {
		t.Errorf("under TowerBFT the certificate is %s, want null", got)
	}
	if err := f.StartMigration(3); err != nil {
		t.Fatal(err)
	}
	f.Advance(3)
	var cert struct {
		Block struct {
			Slot    uint64
			BlockID []uint16
		}
		Signature struct{ Signature, Bitmap []uint16 }
	}
	if err := json.Unmarshal(f.call("getAgGenesisCert", `[]`).Result, &cert); err != nil {
		t.Fatal(err)
	}
	if cert.Block.Slot == 0 || len(cert.Block.BlockID) != 32 || len(cert.Signature.Signature) != 192 {
		t.Errorf("under Alpenglow the certificate is %+v, want a slot, 32 bytes and 192 bytes", cert)
	}
}

package localnet_test

import (
	"context"
	"encoding/base64"
	"sync"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

func TestNewRejectsInvalidOptions(t *testing.T) {
	t.Parallel()
	valid, err := secrets.VerifyingKey()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]localnet.Options{
		"no verifying key":                   {},
		"a verifying key that is no JSON":    {VerifyingKey: []byte("no")},
		"a negative slot duration":           {VerifyingKey: valid, SlotDuration: -1},
		"a history that is too short":        {VerifyingKey: valid, History: 10},
		"finalized before confirmed":         {VerifyingKey: valid, ConfirmAfter: 5, FinalizeAfter: 4},
		"a negative number of roots":         {VerifyingKey: valid, RootHistory: -1},
		"blocks too small for a transaction": {VerifyingKey: valid, Limits: bank.BlockLimits{Block: 1}},
		"seeded leaves without a pool":       {VerifyingKey: valid, SeedLeaves: 1},
		"a profile that lacks its accounts":  {VerifyingKey: valid, Profile: &shieldpool.Profile{}},
	}
	for name, opts := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := localnet.New(opts); err == nil {
				t.Error("got a chain, want an error")
			}
		})
	}
}

func TestSlotsFollowTheClockUntilClose(t *testing.T) {
	t.Parallel()
	valid, err := secrets.VerifyingKey()
	if err != nil {
		t.Fatal(err)
	}
	chain, err := localnet.New(localnet.Options{VerifyingKey: valid, SlotDuration: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	url, err := chain.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	chain.Start(t.Context())
	client := rpc.New(url)
	slot := uint64(0)
	for deadline := time.Now().Add(10 * time.Second); slot < 50 && time.Now().Before(deadline); {
		if slot, err = client.GetSlot(t.Context(), rpc.CommitmentFinalized); err != nil {
			t.Fatal(err)
		}
	}
	if slot < 50 {
		t.Errorf("slot %d is finalized after 10 seconds of 1 ms slots, want 50 or more", slot)
	}
	if err := chain.Close(); err != nil {
		t.Error(err)
	}
	if _, err := client.GetSlot(context.Background(), rpc.CommitmentFinalized); err == nil {
		t.Error("the chain still answers after Close")
	}
	if _, err := chain.Listen("no address"); err == nil {
		t.Error("Listen on an invalid address returns no error")
	}
}

func TestStatsCountCallsByMethod(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	f.call("getSlot", `[]`)
	f.call("getSlot", `["bad"]`)
	f.call("getMoon", `[]`)
	want := map[string]uint64{"getSlot": 2, "": 1}
	if diff := cmp.Diff(want, f.Stats()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEqualAirdropsInOneSlotAllLand(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if _, err := f.RequestAirdrop(context.Background(), address("to"), 1_000_000, ""); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	out, err := f.GetBalance(context.Background(), address("to"), rpc.CommitmentProcessed)
	if err != nil || out.Value != 10_000_000 {
		t.Errorf("balance is %v with error %v, want 10000000", out, err)
	}
}

func TestInitialisedChainHasThePool(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{Initialised: true})
	tree := f.tree(pool(t), rpc.CommitmentFinalized)
	if err := tree.SelfCheck(); err != nil {
		t.Error(err)
	}
	if tree.NextIndex != 0 {
		t.Errorf("the new tree has %d leaves, want none", tree.NextIndex)
	}
	if err := f.Initialize(); err == nil {
		t.Error("the pool is initialised a second time, want an error")
	}
}

// TestWithdrawalIsReadByAddressSignatureAndBlock sends a deposit and a withdrawal over RPC. It then
// reads them as an indexer does: by address, by signature and by block.
func TestWithdrawalIsReadByAddressSignatureAndBlock(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{Initialised: true})
	ctx, p, payer := context.Background(), pool(t), f.payer.PublicKey()
	deposit := f.send(f.sign(f.blockhash(rpc.CommitmentProcessed), unitLimit(400_000), unitPrice(1000),
		transact(t, p, payer, f.tree(p, rpc.CommitmentProcessed).Root, 1, 1_000_000_000, solana.PublicKey{})))
	withdraw := f.send(f.sign(f.blockhash(rpc.CommitmentProcessed), unitLimit(400_000), unitPrice(1000),
		transact(t, p, payer, f.tree(p, rpc.CommitmentProcessed).Root, 2, -100_000_000, address("recipient"))))
	if _, err := f.GetTransaction(ctx, withdraw, &rpc.GetTransactionOpts{Commitment: rpc.CommitmentConfirmed}); err == nil {
		t.Error("the transaction is found at confirmed while it is only processed")
	}
	f.Advance(localnet.DefaultConfirmAfter)

	found, err := f.GetSignaturesForAddressWithOpts(ctx, p.MerkleTree, &rpc.GetSignaturesForAddressOpts{Commitment: rpc.CommitmentConfirmed})
	if err != nil {
		t.Fatal(err)
	}
	var signatures []solana.Signature
	for _, entry := range found {
		signatures = append(signatures, entry.Signature)
	}
	if diff := cmp.Diff([]solana.Signature{withdraw, deposit}, signatures[:2]); diff != "" {
		t.Errorf("signatures of the tree (-want +got):\n%s", diff)
	}

	version := uint64(1)
	got, err := f.GetTransaction(ctx, withdraw, &rpc.GetTransactionOpts{
		Commitment: rpc.CommitmentConfirmed, Encoding: solana.EncodingBase64, MaxSupportedTransactionVersion: &version})
	if err != nil {
		t.Fatal(err)
	}
	if got.Meta.Err != nil || got.Meta.Fee != 5000+400 || got.Version != rpc.LegacyTransactionVersion {
		t.Errorf("error %v, fee %d, version %d; want none, 5400, legacy", got.Meta.Err, got.Meta.Fee, got.Version)
	}
	tx, err := got.Transaction.GetTransaction()
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range tx.Message.AccountKeys {
		if change := got.Meta.PostBalances[i] - got.Meta.PreBalances[i]; k == address("recipient") && change != 94_700_000 {
			t.Errorf("the recipient's balance changed by %d, want 94700000", change)
		}
	}
	if n := len(got.Meta.InnerInstructions); n != 1 || len(got.Meta.InnerInstructions[0].Instructions) != 2 ||
		got.Meta.InnerInstructions[0].Index != 2 || got.Meta.InnerInstructions[0].Instructions[0].StackHeight != 2 {
		t.Errorf("inner instructions are %+v, want two of instruction 2 at height 2", got.Meta.InnerInstructions)
	}
	if got.Meta.ComputeUnitsConsumed == nil || *got.Meta.ComputeUnitsConsumed < 150_000 {
		t.Errorf("compute units are %v, want 150000 or more", got.Meta.ComputeUnitsConsumed)
	}

	block, err := f.GetBlockWithOpts(ctx, got.Slot, &rpc.GetBlockOpts{
		Commitment: rpc.CommitmentConfirmed, Encoding: solana.EncodingBase64, MaxSupportedTransactionVersion: &version})
	if err != nil {
		t.Fatal(err)
	}
	var leaves [][32]byte
	for _, entry := range block.Transactions {
		inBlock, err := entry.GetTransaction()
		if err != nil {
			t.Fatal(err)
		}
		for _, ix := range inBlock.Message.Instructions {
			leaves = append(leaves, p.Profile.Leaves(ix.Data)...)
		}
	}
	want := p.Profile.NewTree(f.tree(p, rpc.CommitmentConfirmed).Authority)
	for _, leaf := range leaves {
		if err := want.Append(leaf); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, f.tree(p, rpc.CommitmentConfirmed), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the tree rebuilt from the block differs (-want +got):\n%s", diff)
	}
}

func TestConcurrentClientsWhileSlotsAdvance(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{SlotDuration: 2 * time.Millisecond})
	f.Start(t.Context())
	var wg sync.WaitGroup
	for i := range uint64(8) {
		wg.Go(func() {
			for j := range uint64(10) {
				tx := f.sign(f.blockhash(rpc.CommitmentConfirmed), f.transfer(1_000_000+i*10+j))
				signature, err := f.SendTransactionWithOpts(t.Context(), tx, rpc.TransactionOpts{PreflightCommitment: rpc.CommitmentConfirmed})
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := f.SendTransactionWithOpts(t.Context(), tx, rpc.TransactionOpts{SkipPreflight: true}); err != nil {
					t.Error(err)
				}
				if out, err := f.GetSignatureStatuses(t.Context(), true, signature); err != nil || out.Value[0] == nil {
					t.Errorf("status is %v with error %v, want a status", out, err)
				}
			}
		})
	}
	wg.Wait()
	out, err := f.GetBalance(t.Context(), address("to"), rpc.CommitmentProcessed)
	if err != nil {
		t.Fatal(err)
	}
	want := uint64(0)
	for i := range uint64(80) {
		want += 1_000_000 + i
	}
	if out.Value != want {
		t.Errorf("the recipient has %d lamports, want %d: each transfer once", out.Value, want)
	}
}

// BenchmarkTransact sends transfers in the pool over HTTP. Preflight and execution
// verify each proof.
func BenchmarkTransact(b *testing.B) {
	f := newFixture(b, localnet.Options{Initialised: true})
	p, payer := pool(b), f.payer.PublicKey()
	var batch []string
	for i := 0; b.Loop(); i++ {
		if len(batch) == 0 {
			b.StopTimer()
			batch = f.signedTransfers(p, payer, uint64(i))
			b.StartTimer()
		}
		if _, err := f.SendEncodedTransactionWithOpts(context.Background(), batch[0], rpc.TransactionOpts{PreflightCommitment: rpc.CommitmentProcessed}); err != nil {
			b.Fatal(err)
		}
		batch = batch[1:]
	}
}

// signedTransfers makes as many transfers as can land before the root history evicts
// their root.
func (f *fixture) signedTransfers(p *shieldpool.Pool, payer solana.PublicKey, first uint64) (batch []string) {
	f.t.Helper()
	f.Advance(1)
	root, hash := f.tree(p, rpc.CommitmentProcessed).Root, f.blockhash(rpc.CommitmentProcessed)
	for n := range uint64(p.Profile.RootHistory / 2) {
		raw, err := f.sign(hash, unitLimit(400_000), transact(f.t, p, payer, root, first+n, 0, solana.PublicKey{})).MarshalBinary()
		if err != nil {
			f.t.Fatal(err)
		}
		batch = append(batch, base64.StdEncoding.EncodeToString(raw))
	}
	return batch
}

package localnet_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/relay/merkle"
)

// seeded is an odd number of leaves: more than are hashed together, and their last block is not full.
const seeded = 3*4096 + 5

type listed struct {
	Signature          solana.Signature
	Slot               uint64
	ConfirmationStatus string
}

func (f *fixture) list(address solana.PublicKey, options string) (page []listed) {
	f.t.Helper()
	if err := json.Unmarshal(f.call("getSignaturesForAddress", fmt.Sprintf(`[%q,{%s}]`, address, options)).Result, &page); err != nil {
		f.t.Fatal(err)
	}
	return page
}

// history lists an address's signatures, oldest first, in pages as relays do.
func (f *fixture) history(address solana.PublicKey) (all []listed) {
	f.t.Helper()
	for options := `"limit":7`; ; {
		page := f.list(address, options)
		if len(page) == 0 {
			return all
		}
		for _, l := range page {
			all = append([]listed{l}, all...)
		}
		options = fmt.Sprintf(`"limit":1000,"before":%q`, page[len(page)-1].Signature)
	}
}

func TestSeededLeavesAreReadFromTheirBlocks(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{Initialised: true, SeedLeaves: seeded})
	p := pool(t)
	onChain := f.tree(p, rpc.CommitmentFinalized)
	if err := onChain.SelfCheck(); err != nil {
		t.Error(err)
	}
	tree, slots, seen := merkle.NewTree(), []uint64{}, map[[32]byte]bool{}
	all := f.history(p.MerkleTree)
	for _, l := range all {
		if len(slots) == 0 || slots[len(slots)-1] != l.Slot {
			slots = append(slots, l.Slot)
		}
		if l.ConfirmationStatus != "finalized" {
			t.Fatalf("a seeded transaction is %s, want finalized", l.ConfirmationStatus)
		}
	}
	var signatures []solana.Signature
	for _, slot := range slots {
		block, err := f.GetBlockWithOpts(t.Context(), slot, &rpc.GetBlockOpts{Encoding: solana.EncodingBase64, Commitment: rpc.CommitmentConfirmed})
		if err != nil {
			t.Fatal(err)
		}
		for _, in := range block.Transactions {
			tx, err := in.GetTransaction()
			if err != nil {
				t.Fatal(err)
			}
			signatures = append(signatures, tx.Signatures[0])
			for _, leaf := range p.Profile.Leaves(tx.Message.Instructions[len(tx.Message.Instructions)-1].Data) {
				e, err := merkle.FromBytes(leaf)
				if err == nil {
					err = tree.Append(&e)
				}
				if err != nil || seen[leaf] {
					t.Fatalf("leaf %d: %v, seen before: %v", tree.NextIndex(), err, seen[leaf])
				}
				seen[leaf] = true
			}
		}
	}
	if root := tree.Root(); tree.NextIndex() != seeded || merkle.Bytes(&root) != onChain.Root {
		t.Errorf("the blocks have %d leaves, with the chain's root: %v; want %d", tree.NextIndex(), merkle.Bytes(&root) == onChain.Root, seeded)
	}
	if len(all) != len(signatures) {
		t.Fatalf("%d transactions are listed, the blocks have %d", len(all), len(signatures))
	}
	for i := range all { // inside a block, this chain's list is in order
		if all[i].Signature != signatures[i] {
			t.Fatalf("transaction %d is listed as another one than in its block", i)
		}
	}
}

func TestSeededTransactionsAreFoundLikeOthers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{Initialised: true, SeedLeaves: 100})
	p := pool(t)
	if err := f.Fund(p.Address, 1); err != nil {
		t.Fatal(err)
	}
	f.Finalize()
	all := f.history(p.Address)
	if len(all) != 51 {
		t.Fatalf("%d transactions name the pool, want 50 of the history and one later", len(all))
	}
	if got := f.list(p.Address, fmt.Sprintf(`"until":%q,"before":%q`, all[3].Signature, all[6].Signature)); !cmp.Equal(got, []listed{all[5], all[4]}) {
		t.Errorf("between two transactions of the history, %d are listed, want the two newest first", len(got))
	}
	if got := f.list(p.Address, fmt.Sprintf(`"until":%q`, all[50].Signature)); len(got) != 0 {
		t.Errorf("after the newest transaction %d are listed, want none", len(got))
	}
	one, err := f.GetTransaction(t.Context(), all[20].Signature, &rpc.GetTransactionOpts{Encoding: solana.EncodingBase64})
	if err != nil || one.Slot != all[20].Slot {
		t.Errorf("a transaction of the history: %v, want it in slot %d", err, all[20].Slot)
	}
	if got := f.list(p.Address, fmt.Sprintf(`"before":%q`, solana.Signature{7: 3, 63: 1})); len(got) != 0 {
		t.Errorf("before an unknown signature %d are listed, want none", len(got))
	}
}

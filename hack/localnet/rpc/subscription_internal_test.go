package rpc

import (
	"crypto/ed25519"
	"crypto/sha256"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

// TestSubscriptionChangesWhenItsAccountIsWritten calls changed at exact moments. A client cannot do so,
// because its notifications come some time after a change of slot.
func TestSubscriptionChangesWhenItsAccountIsWritten(t *testing.T) {
	t.Parallel()
	seed := sha256.Sum256([]byte("faucet"))
	faucet := solana.PrivateKey(ed25519.NewKeyFromSeed(seed[:]))
	b, err := bank.New(bank.Options{
		Genesis: solana.Hash(seed), ConfirmAfter: 1, FinalizeAfter: 2, History: 200,
		Clock:    func() time.Time { return time.Unix(1_700_000_000, 0) },
		Programs: []bank.Program{bank.SystemProgram()},
		Faucet:   faucet.PublicKey(), FaucetLamports: 1 << 40,
	})
	if err != nil {
		t.Fatal(err)
	}
	to := solana.PublicKey{31: 9}
	fund := func(lamports uint64) func() {
		return func() {
			var hash solana.Hash
			b.Read(bank.Processed, func(v bank.View) { hash, _ = v.LatestBlockhash() })
			tx, err := solana.NewTransaction([]solana.Instruction{
				system.NewTransferInstruction(lamports, faucet.PublicKey(), to).Build(),
			}, hash)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Sign(func(solana.PublicKey) *solana.PrivateKey { return &faucet }); err != nil {
				t.Fatal(err)
			}
			raw, err := tx.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			decoded, err := bank.DecodeTransaction(raw)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := b.Submit(decoded); err != nil {
				t.Fatal(err)
			}
		}
	}
	fork := func() {
		if _, err := b.Fork(2, nil); err != nil {
			t.Fatal(err)
		}
	}
	sub := &subscription{key: to}
	for i, step := range []struct {
		name string
		do   func()
		want bool
		// lamports is the balance that the subscriber knows afterwards.
		lamports uint64
	}{
		{"there is no account", func() {}, false, 0},
		{"it is created", fund(1_000_000), true, 1_000_000},
		{"nothing more happens", func() {}, false, 1_000_000},
		{"it is written again in the same slot", fund(2_000_000), true, 3_000_000},
		{"a slot passes", func() { b.Advance(1) }, false, 3_000_000},
		{"it is written in the next slot", fund(1_500_000), true, 4_500_000},
		{"a fork undoes both slots", fork, true, 0},
		{"many slots pass without the account", func() { b.Advance(10) }, false, 0},
	} {
		step.do()
		b.Read(bank.Processed, func(v bank.View) {
			if got := sub.changed(view{View: v}); got != step.want {
				t.Errorf("step %d, %s: changed is %t, want %t", i, step.name, got, step.want)
			}
		})
		var got uint64
		if sub.last != nil {
			got = sub.last.Lamports
		}
		if got != step.lamports {
			t.Errorf("step %d, %s: the subscriber has %d lamports, want %d", i, step.name, got, step.lamports)
		}
	}
}

package bank_test

import (
	"sync/atomic"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

func TestDeferredWritesHappenOnTheNextRead(t *testing.T) {
	t.Parallel()
	var written atomic.Int64
	var steps func(*bank.AccountRef) error
	program := customProgram(func(v *bank.Invocation) error { return steps(at(v, 0)) })
	l := newLedger(t, program)
	l.land([]string{"faucet", "owned"}, system.NewCreateAccountInstruction(
		10_000_000, 4, program.ID, address("faucet"), address("owned")).Build())
	later := func(a *bank.AccountRef, text string) error {
		return a.SetDataLater(func() []byte {
			written.Add(1)
			return []byte(text)
		})
	}
	call := solana.NewInstruction(program.ID, solana.AccountMetaSlice{meta("owned", false, true)}, nil)
	stored := func() (data string) {
		l.Read(bank.Processed, func(v bank.View) { data = string(v.Account(address("owned")).Data) })
		return data
	}
	expect := func(when string, writes int64, data string) {
		t.Helper()
		if diff := cmp.Diff([]any{writes, data}, []any{written.Swap(0), stored()}); diff != "" {
			t.Errorf("%s: writes done and data stored (-want +got):\n%s", when, diff)
		}
	}

	steps = func(a *bank.AccountRef) error { return later(a, "aBC\x00") }
	tx := l.sign(l.blockhash(bank.Processed), []solana.PrivateKey{l.wallet}, call)
	l.Simulate(tx, bank.Processed, false)
	expect("simulated", 0, "\x00\x00\x00\x00")
	if _, err := l.Submit(tx); err != nil {
		t.Fatal(err)
	}
	expect("executed", 1, "aBC\x00")

	steps = func(a *bank.AccountRef) error {
		if err := later(a, "aBCD"); err != nil {
			return err
		}
		if got := string(a.Data()); got != "aBCD" {
			t.Errorf("the instruction reads %q after its write, want aBCD", got)
		}
		if err := later(a, "xxxx"); err != nil {
			return err
		}
		return a.SetData([]byte("1234"))
	}
	l.Advance(1)
	l.mustLand(l.wallet, call)
	expect("read and then replaced", 1, "1234")

	steps = func(a *bank.AccountRef) error {
		if err := later(a, "xxxx"); err != nil {
			return err
		}
		return bank.CustomError(1)
	}
	l.Advance(1)
	failing := l.sign(l.blockhash(bank.Processed), []solana.PrivateKey{l.wallet}, call)
	if landed, err := l.Submit(failing); !landed || err == nil {
		t.Fatalf("landed %v with error %v, want it to land and fail", landed, err)
	}
	expect("failed", 0, "1234")
}

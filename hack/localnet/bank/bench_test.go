package bank_test

import (
	"fmt"
	"testing"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

const benchBlock = 120

// busyLedger is a chain with thousands of accounts and benchBlock transactions in each block, which
// is a rate of 300 a second.
func busyLedger(b *testing.B, blocks int) *ledger {
	b.Helper()
	opts := options()
	opts.FaucetLamports = 1 << 60
	opts.Limits = bank.BlockLimits{Account: 1 << 40, Block: 1 << 40}
	made, err := bank.New(opts)
	if err != nil {
		b.Fatal(err)
	}
	l := &ledger{Bank: made, t: b}
	for n := range blocks {
		l.fill(n)
		l.Advance(1)
	}
	return l
}

// fill puts benchBlock transfers to new accounts into the open block. n makes the accounts differ
// from those of other calls.
func (l *ledger) fill(n int) {
	l.t.Helper()
	hash := l.blockhash(bank.Confirmed)
	for i := range benchBlock {
		tx := l.sign(hash, []solana.PrivateKey{key("faucet")}, transferFrom("faucet", fmt.Sprint(n, "/", i), 2_000_000))
		if landed, err := l.Submit(tx); !landed || err != nil {
			l.t.Fatalf("landed %v with error %v, want success", landed, err)
		}
	}
}

// BenchmarkFork undoes three full blocks. Their transactions land again, except for those whose
// blockhash is undone as well.
func BenchmarkFork(b *testing.B) {
	l := busyLedger(b, 40)
	for n := 1000; b.Loop(); n += 3 {
		b.StopTimer()
		for i := range 3 {
			l.fill(n + i)
			l.Advance(1)
		}
		b.StartTimer()
		if undone, err := l.Fork(4, bank.LandAgain); err != nil || len(undone) < 3*benchBlock {
			b.Fatalf("undone %d with error %v", len(undone), err)
		}
		b.StopTimer()
		l.Advance(4) // so that the next fork does not reach these blocks
		b.StartTimer()
	}
}

// BenchmarkAdvance closes a full block and drops the oldest data.
func BenchmarkAdvance(b *testing.B) {
	l := busyLedger(b, 200)
	for n := 1000; b.Loop(); n++ {
		b.StopTimer()
		l.fill(n)
		b.StartTimer()
		l.Advance(1)
	}
}

// BenchmarkRead reads an account that every transaction of 200 blocks changed.
func BenchmarkRead(b *testing.B) {
	l, faucet := busyLedger(b, 200), address("faucet")
	for _, behind := range []uint64{0, bank.MaxBehind} {
		for _, c := range []bank.Commitment{bank.Processed, bank.Finalized} {
			b.Run(fmt.Sprintf("%s, %d slots behind", c, behind), func(b *testing.B) {
				for b.Loop() {
					l.Behind(behind).Read(c, func(v bank.View) {
						if v.Account(faucet) == nil {
							b.Fatal("the account is not there")
						}
					})
				}
			})
		}
	}
}

package poolprogram_test

import (
	"sync/atomic"
	"testing"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// BenchmarkTransact measures the chain's work for one submission of a relay: a simulation, the
// verification of signatures and the simulation of a preflight, and the execution. Proving and
// signing are not included.
func BenchmarkTransact(b *testing.B) {
	w := newWorld(b)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		tx := w.sign(w.payer, w.instruction(w.call(nil)))
		b.StartTimer()
		w.simulate(tx)
		if !tx.VerifySignatures() {
			b.Fatal("the signature does not verify")
		}
		w.simulate(tx)
		if landed, err := w.Submit(tx); !landed || err != nil {
			b.Fatalf("landed %v with error %v, want success", landed, err)
		}
		if i%64 == 63 {
			w.Advance(1)
		}
	}
}

// BenchmarkSimulate repeats the simulation of one transaction whose proof has a cached verdict. A
// busy chain must run such simulations concurrently.
func BenchmarkSimulate(b *testing.B) {
	w := newWorld(b)
	tx := w.sign(w.payer, w.instruction(w.call(nil)))
	w.simulate(tx)
	b.Run("one at a time", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			w.simulate(tx)
		}
	})
	b.Run("in parallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				w.simulate(tx)
			}
		})
	})
}

// BenchmarkSimulateDuringExecution runs BenchmarkSimulate in parallel. Every 16th call also
// executes a transaction with a new proof, which has to be verified.
func BenchmarkSimulateDuringExecution(b *testing.B) {
	profile := shieldpool.Development()
	profile.RootHistory = 4096
	w := limitedWorld(b, bank.BlockLimits{Account: 1 << 40, Block: 1 << 40}, profile, nil)
	w.initialize()
	tx := w.sign(w.payer, w.instruction(w.call(nil)))
	txs := make([]*bank.Transaction, b.N/16)
	for i := range txs {
		txs[i] = w.sign(w.payer, w.instruction(w.call(nil)))
	}
	if len(txs) > profile.RootHistory/2 {
		b.Fatal("more leaves than fit in the root history: run with -benchtime of at most 30000x")
	}
	w.simulate(tx)
	var turn atomic.Int64
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if n := turn.Add(1) - 1; n%16 == 0 && int(n/16) < len(txs) {
				if landed, err := w.Submit(txs[n/16]); !landed || err != nil {
					b.Errorf("landed %v with error %v, want success", landed, err)
				}
			}
			w.simulate(tx)
		}
	})
}

func (w *world) simulate(tx *bank.Transaction) {
	if err := w.Simulate(tx, bank.Processed, true).Meta.Err; err != nil {
		w.t.Errorf("the simulation failed: %v", err)
	}
}

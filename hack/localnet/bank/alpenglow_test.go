package bank_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

// position is the slot and height that a reader sees at each commitment level.
type position struct{ Slot, Height uint64 }

func (l *ledger) positions() (out [3]position) {
	for _, c := range []bank.Commitment{bank.Finalized, bank.Confirmed, bank.Processed} {
		l.Read(c, func(v bank.View) { out[c] = position{v.Slot(), v.Height()} })
	}
	return out
}

func TestTheMigrationPausesTheChainAndDeletesItsBlocks(t *testing.T) {
	t.Parallel()
	const pause = 200 // more blocks than a blockhash lives
	l := newLedger(t)
	l.Advance(50)
	tx := l.mustLand(l.wallet, transferFrom("wallet", "to", rentMinimum))
	before := l.positions()
	if err := l.StartMigration(pause); err != nil {
		t.Fatal(err)
	}
	if err := l.StartMigration(pause); err == nil {
		t.Error("a second migration begins, want an error")
	}
	oldHash := l.blockhash(bank.Finalized)
	l.Advance(pause / 2)
	during, duringHash := l.positions(), l.blockhash(bank.Processed)
	if during[bank.Finalized] != before[bank.Finalized] || during[bank.Confirmed] != before[bank.Confirmed] {
		t.Errorf("during the pause finalized and confirmed are at %v, want them still at %v", during[:2], before[:2])
	}
	if want := (position{before[bank.Processed].Slot + 1 + pause/2, before[bank.Processed].Height + 1 + pause/2}); during[bank.Processed] != want {
		t.Errorf("during the pause processed is at %v, want %v", during[bank.Processed], want)
	}
	if landed, err := l.Submit(l.sign(duringHash, []solanaKey{l.wallet}, transferFrom("wallet", "to", 1))); landed || err != nil {
		t.Errorf("during the pause a transaction landed %v with %v, want it dropped", landed, err)
	}
	if _, err := l.Fork(1, nil); err == nil {
		t.Error("the chain forks during the pause, want an error")
	}
	l.Advance(pause / 2)
	after := l.positions()
	if after[bank.Processed].Slot <= during[bank.Processed].Slot || after[bank.Processed].Height != before[bank.Processed].Height+1 {
		t.Errorf("after the pause processed is at %v, want a slot after %d and height %d", after[bank.Processed], during[bank.Processed].Slot, before[bank.Processed].Height+1)
	}
	if after[bank.Finalized] != after[bank.Confirmed] || after[bank.Finalized].Height != after[bank.Processed].Height-1 {
		t.Errorf("after the pause finalized is at %v and confirmed at %v, want both one block below %v", after[bank.Finalized], after[bank.Confirmed], after[bank.Processed])
	}
	l.Read(bank.Finalized, func(v bank.View) {
		if v.Transaction(tx.Signature()) == nil {
			t.Error("the transaction from before is lost, want it finalized")
		}
		if got := []bool{v.ValidBlockhash(oldHash), v.ValidBlockhash(duringHash)}; !cmp.Equal([]bool{true, false}, got) {
			t.Errorf("blockhashes of before and of the pause are valid: %v, want true and false", got)
		}
		if g := v.GenesisBlock(); g == nil || g.Slot != before[bank.Processed].Slot {
			t.Errorf("Alpenglow's genesis block is %v, want that of slot %d", g, before[bank.Processed].Slot)
		}
	})
	l.mustLand(l.wallet, transferFrom("wallet", "to", 1))
	l.Advance(1000) // beyond the history: pruning works on
}

func TestSamplesMeasureTheSlots(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	opts := options()
	opts.Clock = func() time.Time { return now }
	b, err := bank.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	run := func(slots int, each time.Duration) {
		for range slots {
			now = now.Add(each)
			b.Advance(1)
		}
	}
	samples := func() (out []bank.Sample) {
		b.Read(bank.Processed, func(v bank.View) { out = v.Samples(10) })
		return out
	}
	run(150, 200*time.Millisecond)
	if got := samples(); len(got) != 0 {
		t.Errorf("after half a minute there are samples %v, want none", got)
	}
	run(150, 200*time.Millisecond)
	run(150, 400*time.Millisecond)
	got := samples()
	want := []bank.Sample{{Slot: 451, Slots: 150, Seconds: 60}, {Slot: 301, Slots: 300, Seconds: 60}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
}

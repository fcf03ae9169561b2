package submission

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// purse is fee payers of which the best holds so much.
type purse struct {
	FeePayers
	lamports uint64
}

func (p purse) Ready(_ context.Context, lamports uint64) error {
	if lamports > p.lamports {
		return refusal.New(refusal.FeePayerEmpty, "too little")
	}
	return nil
}

// TestAQueueGoesOnWhenAnyTransactionCanBePaid: one that resumed for less would be
// held again by the first that makes two nullifiers.
func TestAQueueGoesOnWhenAnyTransactionCanBePaid(t *testing.T) {
	t.Parallel()
	const dearest = 2*shieldpool.RentExempt + shieldpool.SignatureFee
	for name, test := range map[string]struct {
		lamports uint64
		want     string
	}{
		"a payer that can make two nullifiers":   {dearest, ""},
		"one that lacks a lamport for that":      {dearest - 1, string(refusal.FeePayerEmpty)},
		"one that can make a single nullifier":   {shieldpool.RentExempt + shieldpool.SignatureFee, string(refusal.FeePayerEmpty)},
		"one that has been emptied to the limit": {0, string(refusal.FeePayerEmpty)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &Engine{
				EngineOptions: EngineOptions{Payers: purse{lamports: test.lamports}, Now: time.Now, Timing: DefaultTiming(), Log: slog.New(slog.DiscardHandler)},
				claimSoon:     make(chan struct{}, 1),
			}
			e.paused.set(string(refusal.FeePayerEmpty))
			e.tryResume(t.Context())
			if got := e.paused.reason(); got != test.want {
				t.Errorf("the queue is held for %q, want %q", got, test.want)
			}
		})
	}
}

// reaped counts the looks for dead workers.
type reaped struct {
	Store
	looks int
}

func (r *reaped) FreeDeadProcesses(context.Context) (int, error) {
	r.looks++
	return 0, nil
}

// TestWhoComesBackLetsTheOthersComeBack: after an outage of the database all leases
// have lapsed, and nobody has died.
func TestWhoComesBackLetsTheOthersComeBack(t *testing.T) {
	t.Parallel()
	const lease = time.Hour
	for name, test := range map[string]struct {
		alive func(*leaseHealth)
		want  int
	}{
		"a process that never got through":          {func(*leaseHealth) {}, 0},
		"one that has just got through":             {func(a *leaseHealth) { a.renewed(time.Now(), true) }, 0},
		"one whose last beat was missed":            {func(a *leaseHealth) { a.renewed(time.Now().Add(-2*lease), true); a.failed() }, 0},
		"one whose leases have been good for long":  {func(a *leaseHealth) { a.renewed(time.Now().Add(-2*lease), true) }, 1},
		"one that had lapsed, and came back lately": {func(a *leaseHealth) { a.renewed(time.Now().Add(-2*lease), true); a.renewed(time.Now(), true) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := &reaped{}
			e := &Engine{EngineOptions: EngineOptions{Store: db, Timing: Timing{Lease: lease}, Log: slog.New(slog.DiscardHandler)}}
			test.alive(&e.leaseHealth)
			e.freeDeadProcesses(t.Context())
			if db.looks != test.want {
				t.Errorf("it looks for dead workers %d times, want %d", db.looks, test.want)
			}
		})
	}
}

// phases keeps what is written of a swap.
type phases struct {
	Store
	wrote []Swap
}

func (p *phases) UpdateSwap(_ context.Context, _ Lease, phase Phase, timeout uint64) error {
	p.wrote = append(p.wrote, Swap{Phase: phase, TimeoutSlot: timeout})
	return nil
}

// TestWhatTheChainShowsOfASwapIsWrittenOnce, its timeout too: by that it is told
// overdue, and its lamports go back.
func TestWhatTheChainShowsOfASwapIsWrittenOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		order SwapOrder
		want  bool
	}{
		"the same as before":                {SwapOrder{Phase: PhaseFunded, Timeout: 100}, false},
		"another phase":                     {SwapOrder{Phase: PhaseQuoted, Timeout: 100}, true},
		"another timeout of the same phase": {SwapOrder{Phase: PhaseFunded, Timeout: 101}, true},
		"nothing, because it is not there":  {SwapOrder{}, false},
		"its end, which its landing tells":  {SwapOrder{Phase: PhaseRefunded, Timeout: 101, Ended: &Outcome{Signature: solana.Signature{1}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := &phases{}
			e := &Engine{EngineOptions: EngineOptions{Store: db}}
			c := &Claimed{Submission: &Submission{Kind: KindSwapExecution, Swap: &Swap{Phase: PhaseFunded, TimeoutSlot: 100}}}
			for range 2 {
				if err := e.updateSwap(t.Context(), c, &test.order); err != nil {
					t.Fatal(err)
				}
			}
			want := 0
			if test.want {
				want = 1
			}
			if len(db.wrote) != want {
				t.Fatalf("it is written %v, want %d times", db.wrote, want)
			}
			if test.want && (db.wrote[0] != Swap{Phase: test.order.Phase, TimeoutSlot: test.order.Timeout} || c.Swap.TimeoutSlot != test.order.Timeout) {
				t.Errorf("written is %v, and known %v, want %v", db.wrote[0], c.Swap, test.order)
			}
		})
	}
}

package txmgr

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// purse is fee payers the best of which holds that much.
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

// TestAQueueGoesOnWhenAnyTransactionCanBePaid: a queue that resumed with less would be paused again
// by the first transaction that makes two nullifiers.
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
			e := &Manager{
				Options: Options{Payers: purse{lamports: test.lamports}, Now: time.Now, Timing: DefaultTiming(), Log: slog.New(slog.DiscardHandler)},
				lanes:   []*Lane{{due: make(chan struct{}, 1)}},
			}
			e.paused.set(string(refusal.FeePayerEmpty))
			e.tryResume(t.Context())
			if got := e.paused.reason(); got != test.want {
				t.Errorf("the queue is held for %q, want %q", got, test.want)
			}
		})
	}
}

// reaped counts the searches for dead workers.
type reaped struct {
	Store
	looks int
}

func (r *reaped) FreeDeadProcesses(context.Context) (int, error) {
	r.looks++
	return 0, nil
}

// TestWhoComesBackLetsTheOthersComeBack: after an outage of the database all leases have lapsed,
// although no process has died.
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
			e := &Manager{Options: Options{Store: db, Timing: Timing{Lease: lease}, Log: slog.New(slog.DiscardHandler)}}
			test.alive(&e.leaseHealth)
			e.freeDeadProcesses(t.Context())
			if db.looks != test.want {
				t.Errorf("it looks for dead workers %d times, want %d", db.looks, test.want)
			}
		})
	}
}

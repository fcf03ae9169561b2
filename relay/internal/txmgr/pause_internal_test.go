package txmgr

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// richestPayer stands for fee payers, the richest of which holds that many lamports.
type richestPayer struct {
	FeePayers
	lamports uint64
}

func (p richestPayer) Ready(_ context.Context, lamports uint64) error {
	if lamports > p.lamports {
		return refusal.New(refusal.FeePayerEmpty, "too little")
	}
	return nil
}

// TestQueueResumesOnceEveryTransactionCanBePaid: a queue that resumed with fewer lamports would be
// paused again by the first transaction that creates two nullifiers.
func TestQueueResumesOnceEveryTransactionCanBePaid(t *testing.T) {
	t.Parallel()
	const maxCost = 2*shieldpool.RentExempt + shieldpool.SignatureFee
	for name, test := range map[string]struct {
		lamports uint64
		want     string
	}{
		"a payer that can create two nullifiers":     {maxCost, ""},
		"a payer that lacks one lamport for that":    {maxCost - 1, string(refusal.FeePayerEmpty)},
		"a payer that can create only one nullifier": {shieldpool.RentExempt + shieldpool.SignatureFee, string(refusal.FeePayerEmpty)},
		"a payer without lamports above its minimum": {0, string(refusal.FeePayerEmpty)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &Manager{
				Options: Options{Payers: richestPayer{lamports: test.lamports}, Now: time.Now, Timing: DefaultTiming(), Log: slog.New(slog.DiscardHandler)},
				queues:  []*Queue{{due: make(chan struct{}, 1)}},
			}
			e.paused.set(string(refusal.FeePayerEmpty))
			e.tryResume(t.Context())
			if got := e.paused.reason(); got != test.want {
				t.Errorf("the queue is paused by %q, want %q", got, test.want)
			}
		})
	}
}

// freeCounter counts the calls of FreeDeadProcesses.
type freeCounter struct {
	Store
	calls int
}

func (r *freeCounter) FreeDeadProcesses(context.Context) (int, error) {
	r.calls++
	return 0, nil
}

// TestReconnectedProcessDoesNotFreeOtherLeases: after an outage of the database all leases have lapsed,
// although no process has died, so a process frees no leases at once.
func TestReconnectedProcessDoesNotFreeOtherLeases(t *testing.T) {
	t.Parallel()
	const lease = time.Hour
	for name, test := range map[string]struct {
		alive func(*leaseHealth)
		want  int
	}{
		"a process without a successful heartbeat": {func(*leaseHealth) {}, 0},
		"the first heartbeat has just succeeded":   {func(a *leaseHealth) { a.renewed(time.Now(), true) }, 0},
		"the last heartbeat failed":                {func(a *leaseHealth) { a.renewed(time.Now().Add(-2*lease), true); a.failed() }, 0},
		"the leases have been valid for long":      {func(a *leaseHealth) { a.renewed(time.Now().Add(-2*lease), true) }, 1},
		"lapsed leases were renewed a moment ago":  {func(a *leaseHealth) { a.renewed(time.Now().Add(-2*lease), true); a.renewed(time.Now(), true) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := &freeCounter{}
			e := &Manager{Options: Options{Store: db, Timing: Timing{Lease: lease}, Log: slog.New(slog.DiscardHandler)}}
			test.alive(&e.leaseHealth)
			e.freeDeadProcesses(t.Context())
			if db.calls != test.want {
				t.Errorf("the process frees dead processes %d times, want %d", db.calls, test.want)
			}
		})
	}
}

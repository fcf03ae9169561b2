package txmgr

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// noObserver is an observer that ignores all events.
type noObserver struct{}

func (noObserver) Stage(string, time.Duration)        {}
func (noObserver) Attempt(string)                     {}
func (noObserver) Lease(string, int)                  {}
func (noObserver) Poll(int, bool)                     {}
func (noObserver) LandedAfter(string, uint64, uint64) {}
func (noObserver) LaneExpired(string)                 {}

// fakePayer is one fee payer. It keeps the reserved amount, and the keys that were marked as working.
type fakePayer struct {
	FeePayers
	key      solana.PrivateKey
	reserved int64
	working  []solana.PublicKey
}

func (p *fakePayer) PublicKey() solana.PublicKey { return p.key.PublicKey() }
func (p *fakePayer) Sign(_ context.Context, message []byte) (solana.Signature, error) {
	return p.key.Sign(message)
}
func (p *fakePayer) Release(_ solana.PublicKey, lamports uint64)  { p.reserved -= int64(lamports) }
func (p *fakePayer) Cancel(key solana.PublicKey, lamports uint64) { p.Release(key, lamports) }
func (p *fakePayer) MarkRefused(solana.PublicKey, error)          {}
func (p *fakePayer) MarkWorking(key solana.PublicKey)             { p.working = append(p.working, key) }
func (p *fakePayer) Pick(_ context.Context, lamports uint64, _ bool) (Payer, error) {
	p.reserved += int64(lamports)
	return p, nil
}

// fixedSimulation is a chain on which every simulation has the same result.
type fixedSimulation struct {
	Chain
	fails *shieldpool.TransactionError
}

func (fixedSimulation) PriorityFees(context.Context, []solana.PublicKey) ([]uint64, error) {
	return nil, nil
}
func (c fixedSimulation) Simulate(context.Context, []byte, bool, uint64) (onchain.Simulation, error) {
	return onchain.Simulation{Err: c.fails, UnitsConsumed: 1000, Slot: 1}, nil
}

func (fixedSimulation) LatestBlockhash(context.Context) (onchain.Blockhash, error) {
	return onchain.Blockhash{Hash: solana.Hash{1}, Slot: 1, LastValidBlockHeight: 151}, nil
}
func (fixedSimulation) Send(context.Context, []byte, onchain.Sending, uint64) error { return nil }

// attemptStore is a store whose RecordAttempt returns err.
type attemptStore struct {
	Store
	err error
}

func (s attemptStore) RecordAttempt(context.Context, Lease, Attempt) error { return s.err }

// TestReservationsAreReleasedCompletely: no part of rent, fee and upfront cost stays reserved after
// an attempt has ended, or when none was made.
func TestReservationsAreReleasedCompletely(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		chain fixedSimulation
		store attemptStore
		held  bool // whether the amount stays reserved until the attempt ends
	}{
		"an attempt that is recorded":             {held: true},
		"an attempt whose simulation fails":       {chain: fixedSimulation{fails: &shieldpool.TransactionError{Kind: "AccountInUse"}}},
		"an attempt whose recording has an error": {store: attemptStore{err: errors.New("the connection is gone")}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			payer := &fakePayer{key: solana.NewWallet().PrivateKey}
			e := &Manager{
				Options: Options{
					Chain: test.chain, Store: test.store, Payers: payer, Class: transient,
					Observer: noObserver{}, Log: slog.New(slog.DiscardHandler), Now: time.Now, Timing: DefaultTiming(), Rent: currentRent,
				},
				compute: newComputeLimits(), price: newPriceCache(PriceRule{}, time.Now, nominalSlotDuration),
			}
			c := &Job{Lease: Lease{ID: uuid.New()}, Row: testRow{}}
			draft := &Draft{Purpose: PurposeExecute, EndsWork: true, Creates: shieldpool.NewAccounts{Nullifiers: 2}, Closes: shieldpool.NewAccounts{TokenAccounts: 2}, Build: memo}
			failure, err := e.Launch(t.Context(), c, draft, 0)
			launched := failure == nil && err == nil
			if held := payer.reserved >= 2*(128+128+165)*6960+shieldpool.SignatureFee; launched != test.held || held != test.held {
				t.Errorf("%d lamports are reserved, and the attempt is under way: %t; the rent has to be reserved and the attempt under way: %t", payer.reserved, launched, test.held)
			}
			e.releaseReservations(c, func(solana.Signature) bool { return true })
			if payer.reserved != 0 {
				t.Errorf("%d lamports stay reserved after the release, want 0", payer.reserved)
			}
		})
	}
}

// capRecorder is a spend cap that keeps the arguments of the calls of done.
type capRecorder struct {
	Spending
	recorded []bool
}

func (e *capRecorder) Allow(context.Context, bool, uint64) (func(bool), error) {
	return func(recorded bool) { e.recorded = append(e.recorded, recorded) }, nil
}

// emptyPayer stands for fee payers, none of which can pay.
type emptyPayer struct{ fakePayer }

func (*emptyPayer) Pick(context.Context, uint64, bool) (Payer, error) {
	return nil, refusal.New(refusal.FeePayerEmpty, "no lamports")
}

// TestCapsLearnWhetherAttemptsWereRecorded: without a call of done an attempt would count for ever, and a
// wrong argument would let spending exceed the cap.
func TestCapsLearnWhetherAttemptsWereRecorded(t *testing.T) {
	t.Parallel()
	wallet := fakePayer{key: solana.NewWallet().PrivateKey}
	tests := map[string]struct {
		payers FeePayers
		chain  fixedSimulation
		store  attemptStore
		build  Build
		want   bool // whether the attempt may have been recorded
	}{
		"an attempt that is recorded":             {want: true},
		"an attempt whose recording has an error": {store: attemptStore{err: errors.New("the connection is gone")}, want: true},
		"an attempt whose simulation fails":       {chain: fixedSimulation{fails: &shieldpool.TransactionError{Kind: "AccountInUse"}}},
		"an attempt that no payer can pay":        {payers: &emptyPayer{wallet}},
		"an attempt whose step panics": {build: func(solana.PublicKey, shieldpool.Compute, solana.Hash) (*solana.Transaction, error) {
			panic("of the test")
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			caps, own := new(capRecorder), wallet
			e := &Manager{
				Options: Options{
					Chain: test.chain, Store: test.store, Payers: &own, Spending: caps, Class: transient,
					Observer: noObserver{}, Log: slog.New(slog.DiscardHandler), Now: time.Now, Timing: DefaultTiming(), Rent: currentRent,
				},
				compute: newComputeLimits(), price: newPriceCache(PriceRule{}, time.Now, nominalSlotDuration),
			}
			draft := &Draft{Purpose: PurposeTransact, Creates: shieldpool.NewAccounts{Nullifiers: 2}, Build: memo}
			if test.payers != nil {
				e.Payers = test.payers
			}
			if test.build != nil {
				draft.Build = test.build
			}
			func() {
				defer func() { _ = recover() }()
				_, _ = e.Launch(t.Context(), &Job{Lease: Lease{ID: uuid.New()}, Row: testRow{}}, draft, 0)
			}()
			if !slices.Equal(caps.recorded, []bool{test.want}) {
				t.Errorf("done was called with %v, want %v once", caps.recorded, test.want)
			}
		})
	}
}

// testRow is a row with the id zero.
type testRow struct{ Row }

func (testRow) RequestID() uuid.UUID { return uuid.UUID{} }

func transient(Purpose, shieldpool.Format, *shieldpool.TransactionError) shieldpool.Class {
	return shieldpool.ClassTransient
}

func memo(payer solana.PublicKey, compute shieldpool.Compute, hash solana.Hash) (*solana.Transaction, error) {
	return shieldpool.Versioned(payer, compute, hash, nil, solana.NewInstruction(solana.MemoProgramID, nil, []byte("swap")))
}

// TestReplacedStepReleasesItsReservationOnce: the step of a later lease of the same row has its own
// reservations.
func TestReplacedStepReleasesItsReservationOnce(t *testing.T) {
	t.Parallel()
	payer := &fakePayer{}
	e := &Manager{Options: Options{Payers: payer, Now: time.Now}}
	queue := &Queue{inUse: capacity{limit: 2}}
	e.tracker = newTracker(e)
	queue.inUse.acquire(2)
	first := &Job{Lease: Lease{ID: uuid.New(), Epoch: 1}, queue: queue}
	w, _ := e.tracker.add(first)
	first.reserved = []reservation{{lamports: 7}}
	payer.reserved = 7
	e.tracker.add(&Job{Lease: Lease{ID: first.ID, Epoch: 2}, queue: queue})
	if payer.reserved != 7 {
		t.Fatalf("%d lamports are reserved while the first step still runs, want 7", payer.reserved)
	}
	e.tracker.stepEnded(w)
	e.tracker.drop(w)
	if used := queue.inUse.inUse(); payer.reserved != 0 || used != 1 {
		t.Errorf("after the first step %d lamports are reserved and %d of the capacity is used; want 0, and 1 for the later lease", payer.reserved, used)
	}
}

// TestPanicReleasesTheReservation: a row whose steps panic is claimed again and again, so it must
// not keep the payers' lamports reserved.
func TestPanicReleasesTheReservation(t *testing.T) {
	t.Parallel()
	payer := &fakePayer{key: solana.NewWallet().PrivateKey}
	m := &Manager{
		Options: Options{Chain: fixedSimulation{}, Payers: payer, Class: transient, Observer: noObserver{}, Log: slog.New(slog.DiscardHandler), Now: time.Now, Timing: DefaultTiming(), Rent: currentRent},
		compute: newComputeLimits(), price: newPriceCache(PriceRule{}, time.Now, nominalSlotDuration),
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("Launch did not panic")
			}
		}()
		draft := &Draft{Purpose: PurposeExecute, EndsWork: true, Creates: shieldpool.NewAccounts{Nullifiers: 1}, Build: func(solana.PublicKey, shieldpool.Compute, solana.Hash) (*solana.Transaction, error) {
			panic("an unexpected route")
		}}
		_, _ = m.Launch(t.Context(), &Job{Row: testRow{}}, draft, 0)
	}()
	if payer.reserved != 0 {
		t.Errorf("%d lamports stay reserved, want none", payer.reserved)
	}
}

// currentRent is below the highest rate, at which reservations are made.
func currentRent() shieldpool.Rent { return 5080 }

func nominalSlotDuration() time.Duration { return onchain.NominalSlot }

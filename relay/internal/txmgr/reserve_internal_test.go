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

// quiet is an observer that counts nothing.
type quiet struct{}

func (quiet) Stage(string, time.Duration) {}
func (quiet) Attempt(string)              {}
func (quiet) Lease(string, int)           {}
func (quiet) Poll(int, bool)              {}

// till is one fee payer, and the amount reserved with it.
type till struct {
	FeePayers
	key      solana.PrivateKey
	reserved int64
	worked   []solana.PublicKey
}

func (p *till) PublicKey() solana.PublicKey                   { return p.key.PublicKey() }
func (p *till) Sign(message []byte) (solana.Signature, error) { return p.key.Sign(message) }
func (p *till) Release(_ solana.PublicKey, lamports uint64)   { p.reserved -= int64(lamports) }
func (p *till) Cancel(key solana.PublicKey, lamports uint64)  { p.Release(key, lamports) }
func (p *till) MarkRefused(solana.PublicKey, error)           {}
func (p *till) MarkWorking(key solana.PublicKey)              { p.worked = append(p.worked, key) }
func (p *till) Pick(_ context.Context, lamports uint64, _ bool) (Payer, error) {
	p.reserved += int64(lamports)
	return p, nil
}

// rehearsed is a chain on which every simulation ends in the same way.
type rehearsed struct {
	Chain
	fails *shieldpool.TransactionError
}

func (rehearsed) PriorityFees(context.Context, []solana.PublicKey) ([]uint64, error) { return nil, nil }
func (c rehearsed) Simulate(context.Context, []byte, bool, uint64) (onchain.Simulation, error) {
	return onchain.Simulation{Err: c.fails, UnitsConsumed: 1000, Slot: 1}, nil
}

func (rehearsed) LatestBlockhash(context.Context) (onchain.Blockhash, error) {
	return onchain.Blockhash{Hash: solana.Hash{1}, Slot: 1, LastValidBlockHeight: 151}, nil
}
func (rehearsed) Send(context.Context, []byte, bool, uint64) error { return nil }

// noted accepts attempts, or loses the answer.
type noted struct {
	Store
	err error
}

func (s noted) RecordAttempt(context.Context, Lease, Attempt) error { return s.err }

// TestReservationsAreReleasedCompletely: no part of rent, fee and upfront cost stays reserved
// with a payer whose attempt is over, or was never made.
func TestReservationsAreReleasedCompletely(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		chain rehearsed
		store noted
		held  bool // until the attempt is over
	}{
		"an attempt that is recorded":            {held: true},
		"one that would fail":                    {chain: rehearsed{fails: &shieldpool.TransactionError{Kind: "AccountInUse"}}},
		"one whose record's answer is not heard": {store: noted{err: errors.New("the connection is gone")}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			payer := &till{key: solana.NewWallet().PrivateKey}
			e := &Manager{
				Options: Options{
					Chain: test.chain, Store: test.store, Payers: payer, Class: transient,
					Observer: quiet{}, Log: slog.New(slog.DiscardHandler), Now: time.Now, Timing: DefaultTiming(),
				},
				compute: newComputeLimits(), price: newPriceCache(PriceRule{}, time.Now),
			}
			c := &Job{Lease: Lease{ID: uuid.New()}, Row: nameless{}}
			draft := &Draft{Purpose: PurposeExecute, EndsWork: true, Rent: 2_000_000, UpfrontCost: 3_000_000, Build: memo}
			failure, err := e.Launch(t.Context(), c, draft, 0)
			follow := failure == nil && err == nil
			if held := payer.reserved >= 5_000_000+shieldpool.SignatureFee; follow != test.held || held != test.held {
				t.Errorf("%d lamports are reserved, and it is followed: %t; want both as %t", payer.reserved, follow, test.held)
			}
			e.releaseReservations(c, func(solana.Signature) bool { return true })
			if payer.reserved != 0 {
				t.Errorf("%d lamports stay reserved for nothing, want 0", payer.reserved)
			}
		})
	}
}

// ended is a cap, and what it is told of the attempts that it allowed.
type ended struct {
	Spending
	recorded []bool
}

func (e *ended) Allow(context.Context, bool, uint64) (func(bool), error) {
	return func(recorded bool) { e.recorded = append(e.recorded, recorded) }, nil
}

// broke is a payer that cannot pay.
type broke struct{ till }

func (*broke) Pick(context.Context, uint64, bool) (Payer, error) {
	return nil, refusal.New(refusal.FeePayerEmpty, "no lamports")
}

// TestTheCapsLearnEachAttemptsEnd: what they are not told of counts as spent for ever, and
// what they are told wrongly passes them.
func TestTheCapsLearnEachAttemptsEnd(t *testing.T) {
	t.Parallel()
	wallet := till{key: solana.NewWallet().PrivateKey}
	tests := map[string]struct {
		payers FeePayers
		chain  rehearsed
		store  noted
		build  Build
		want   bool // that it may have been recorded
	}{
		"an attempt that is recorded":            {want: true},
		"one whose record's answer is not heard": {store: noted{err: errors.New("the connection is gone")}, want: true},
		"one that would fail":                    {chain: rehearsed{fails: &shieldpool.TransactionError{Kind: "AccountInUse"}}},
		"one that no payer can pay":              {payers: &broke{wallet}},
		"one that panics": {build: func(solana.PublicKey, shieldpool.Compute, solana.Hash) (*solana.Transaction, error) {
			panic("of the test")
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			caps, own := new(ended), wallet
			e := &Manager{
				Options: Options{
					Chain: test.chain, Store: test.store, Payers: &own, Spending: caps, Class: transient,
					Observer: quiet{}, Log: slog.New(slog.DiscardHandler), Now: time.Now, Timing: DefaultTiming(),
				},
				compute: newComputeLimits(), price: newPriceCache(PriceRule{}, time.Now),
			}
			draft := &Draft{Purpose: PurposeTransact, Rent: 2_000_000, Build: memo}
			if test.payers != nil {
				e.Payers = test.payers
			}
			if test.build != nil {
				draft.Build = test.build
			}
			func() {
				defer func() { _ = recover() }()
				_, _ = e.Launch(t.Context(), &Job{Lease: Lease{ID: uuid.New()}, Row: nameless{}}, draft, 0)
			}()
			if !slices.Equal(caps.recorded, []bool{test.want}) {
				t.Errorf("the caps are told %v, want %v once", caps.recorded, test.want)
			}
		})
	}
}

// nameless is a row whose methods are never called.
type nameless struct{ Row }

func (nameless) RequestID() uuid.UUID { return uuid.UUID{} }

func transient(Purpose, *shieldpool.TransactionError) shieldpool.Class {
	return shieldpool.ClassTransient
}

func memo(payer solana.PublicKey, compute shieldpool.Compute, hash solana.Hash) (*solana.Transaction, error) {
	return shieldpool.Versioned(payer, compute, hash, nil, solana.NewInstruction(solana.MemoProgramID, nil, []byte("swap")))
}

// TestAReplacedStepReleasesItsReservationOnce: the later lease of the same row has
// reservations of its own.
func TestAReplacedStepReleasesItsReservationOnce(t *testing.T) {
	t.Parallel()
	payer := &till{}
	e := &Manager{Options: Options{Payers: payer, Now: time.Now}}
	lane := &Lane{inUse: capacity{limit: 2}}
	e.tracker = newTracker(e)
	lane.inUse.acquire(2)
	first := &Job{Lease: Lease{ID: uuid.New(), Epoch: 1}, lane: lane}
	w, _ := e.tracker.add(first)
	first.reserved = []reservation{{lamports: 7}}
	payer.reserved = 7
	e.tracker.add(&Job{Lease: Lease{ID: first.ID, Epoch: 2}, lane: lane})
	if payer.reserved != 7 {
		t.Fatalf("%d lamports are reserved while the first step still runs, want 7", payer.reserved)
	}
	e.tracker.stepEnded(w)
	e.tracker.drop(w)
	if taken := lane.inUse.inUse(); payer.reserved != 0 || taken != 1 {
		t.Errorf("%d lamports and %d places are taken after the first step's end, want none and the later one's", payer.reserved, taken)
	}
}

// TestAPanicGivesTheReservationBack: a row whose steps panic is claimed again and again, and must
// not use up the payers' balances.
func TestAPanicGivesTheReservationBack(t *testing.T) {
	t.Parallel()
	payer := &till{key: solana.NewWallet().PrivateKey}
	m := &Manager{
		Options: Options{Chain: rehearsed{}, Payers: payer, Class: transient, Observer: quiet{}, Log: slog.New(slog.DiscardHandler), Now: time.Now, Timing: DefaultTiming()},
		compute: newComputeLimits(), price: newPriceCache(PriceRule{}, time.Now),
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the build does not panic")
			}
		}()
		draft := &Draft{Purpose: PurposeExecute, EndsWork: true, Rent: 7, Build: func(solana.PublicKey, shieldpool.Compute, solana.Hash) (*solana.Transaction, error) {
			panic("a route that nobody thought of")
		}}
		_, _ = m.Launch(t.Context(), &Job{Row: nameless{}}, draft, 0) // it panics
	}()
	if payer.reserved != 0 {
		t.Errorf("%d lamports stay reserved, want none", payer.reserved)
	}
}

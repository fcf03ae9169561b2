package txmgr

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// countedSimulation counts the simulations. If hangs is set, they last until their context ends.
type countedSimulation struct {
	fixedSimulation
	hangs bool
	count atomic.Int64
}

func (c *countedSimulation) Simulate(ctx context.Context, raw []byte, replaceBlockhash bool, minContextSlot uint64) (onchain.Simulation, error) {
	c.count.Add(1)
	if c.hangs {
		<-ctx.Done()
	}
	return c.fixedSimulation.Simulate(ctx, raw, replaceBlockhash, minContextSlot)
}

// emptyAtFirst is a payer that cannot pay the first transaction.
type emptyAtFirst struct {
	*fakePayer
	asked atomic.Bool
}

func (p *emptyAtFirst) Pick(ctx context.Context, lamports uint64, endsWork bool) (Payer, error) {
	if !p.asked.Swap(true) {
		return nil, refusal.New(refusal.FeePayerEmpty, "no lamports")
	}
	return p.fakePayer.Pick(ctx, lamports, endsWork)
}

func TestLaunchUsesWhatWasPrepared(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		fails, hangs   bool  // the simulation
		draft          error // of the preparation
		panics, empty  bool  // at first
		urgent, cancel bool
		over           bool // the time of the step
		minContextSlot uint64

		simulations int64
		launched    bool
	}{
		"a simulation that succeeded, at an older slot":    {minContextSlot: 2, simulations: 1, launched: true},
		"a simulation that failed is repeated":             {fails: true, simulations: 2},
		"a draft that is urgent only now":                  {urgent: true, simulations: 2, launched: true},
		"a draft that was not possible":                    {draft: errors.New("no tree"), simulations: 1, launched: true},
		"a payer that had no lamports":                     {empty: true, simulations: 1, launched: true},
		"a preparation that panicked":                      {panics: true, simulations: 1, launched: true},
		"a step whose time is over does not wait for it":   {hangs: true, over: true, simulations: 2, launched: true},
		"a job that is not accepted":                       {cancel: true, simulations: 1},
		"a job that is not accepted during the simulation": {cancel: true, hangs: true, simulations: 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			payer, caps, chain := &fakePayer{key: solana.NewWallet().PrivateKey}, new(capRecorder), &countedSimulation{hangs: test.hangs}
			if test.fails {
				chain.fails = &shieldpool.TransactionError{Kind: "AccountInUse"}
			}
			m := &Manager{
				Options: Options{
					Chain: chain, Store: attemptStore{}, Payers: payer, Spending: caps, Class: transient, Observer: noObserver{},
					Log: slog.New(slog.DiscardHandler), Now: time.Now, Timing: DefaultTiming(), Rent: currentRent, SlotDuration: nominalSlotDuration,
				},
				compute: newComputeLimits(), price: newPriceCache(PriceRule{}, time.Now, nominalSlotDuration), queues: []*Queue{{}},
			}
			if test.empty {
				m.Payers = &emptyAtFirst{fakePayer: payer}
			}
			m.stopping, m.stop = context.WithCancel(t.Context())
			defer m.stop()
			var built atomic.Int64
			draft := Draft{Purpose: PurposeTransact, Creates: shieldpool.NewAccounts{Nullifiers: 2}, Build: func(payer solana.PublicKey, compute shieldpool.Compute, hash solana.Hash) (*solana.Transaction, error) {
				if built.Add(1) == 1 && test.panics {
					panic("of the test")
				}
				return memo(payer, compute, hash)
			}}
			j, early := &Job{Lease: Lease{ID: uuid.New()}, Row: testRow{}}, draft
			j.prepared = m.Prepare(t.Context(), &Job{Row: testRow{}}, func(context.Context) (*Draft, uint64, error) {
				return &early, 0, test.draft
			})
			launched := false
			for test.hangs && chain.count.Load() == 0 {
				runtime.Gosched()
			}
			if test.cancel {
				if !test.hangs {
					<-j.prepared.done
				}
			} else {
				draft.Urgent = test.urgent
				ctx, end := context.WithCancel(t.Context())
				if test.over {
					end()
				}
				failure, err := m.Launch(ctx, j, &draft, test.minContextSlot)
				end()
				launched = failure == nil && err == nil
			}
			j.cancelPrepared()
			m.steps.Wait()
			if n := chain.count.Load(); launched != test.launched || n != test.simulations {
				t.Errorf("the transaction was launched: %t, after %d simulations; want %t after %d", launched, n, test.launched, test.simulations)
			}
			if recorded := slices.Contains(caps.recorded, true); recorded != test.launched {
				t.Errorf("the caps were told %v, want true only for an attempt that may be recorded", caps.recorded)
			}
			m.releaseReservations(j, func(solana.Signature) bool { return true })
			if payer.reserved != 0 {
				t.Errorf("%d lamports stay reserved, want none", payer.reserved)
			}
		})
	}
}

package txmgr

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// countedSimulation counts the simulations.
type countedSimulation struct {
	fixedSimulation
	count atomic.Int64
}

func (c *countedSimulation) Simulate(ctx context.Context, raw []byte, replaceBlockhash bool, minContextSlot uint64) (onchain.Simulation, error) {
	c.count.Add(1)
	return c.fixedSimulation.Simulate(ctx, raw, replaceBlockhash, minContextSlot)
}

func TestLaunchUsesWhatWasPreparedAhead(t *testing.T) {
	t.Parallel()
	refused := &shieldpool.TransactionError{Kind: "AccountInUse"}
	tests := map[string]struct {
		fails          *shieldpool.TransactionError
		ahead          error // of the draft ahead
		panics, urgent bool
		cancel         bool
		minContextSlot uint64

		simulations int64
		launched    bool
	}{
		"a simulation that succeeded":                           {simulations: 1, launched: true},
		"a simulation that succeeded at an older slot":          {minContextSlot: 2, simulations: 1, launched: true},
		"a simulation that failed":                              {fails: refused, minContextSlot: 1, simulations: 1},
		"a simulation that failed at an older slot is repeated": {fails: refused, minContextSlot: 2, simulations: 2},
		"a draft that is urgent only now is simulated anew":     {urgent: true, simulations: 2, launched: true},
		"a draft that was not possible is made anew":            {ahead: errors.New("no tree"), simulations: 1, launched: true},
		"a preparation that panicked":                           {panics: true, simulations: 1, launched: true},
		"a job that is not accepted, or not launched":           {cancel: true, simulations: -1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			payer, caps := &fakePayer{key: solana.NewWallet().PrivateKey}, new(capRecorder)
			chain := &countedSimulation{fixedSimulation: fixedSimulation{fails: test.fails}}
			m := &Manager{
				Options: Options{
					Chain: chain, Store: attemptStore{}, Payers: payer, Spending: caps, Class: transient, Observer: noObserver{},
					Log: slog.New(slog.DiscardHandler), Now: time.Now, Timing: DefaultTiming(), Rent: currentRent, SlotDuration: nominalSlotDuration,
				},
				compute: newComputeLimits(), price: newPriceCache(PriceRule{}, time.Now, nominalSlotDuration), queues: []*Queue{{}},
			}
			m.stopping, m.stop = context.WithCancel(t.Context())
			defer m.stop()
			draft := Draft{Purpose: PurposeTransact, Creates: shieldpool.NewAccounts{Nullifiers: 2}, Build: memo}
			j := &Job{Lease: Lease{ID: uuid.New()}, Row: testRow{}}
			j.ahead = m.PrepareAhead(t.Context(), &Job{Row: testRow{}}, func(context.Context) (*Draft, uint64, error) {
				if test.panics {
					panic("of the test")
				}
				ahead := draft
				return &ahead, 0, test.ahead
			})
			launched := false
			if !test.cancel {
				now := draft
				now.Urgent = test.urgent
				failure, err := m.Launch(t.Context(), j, &now, test.minContextSlot)
				launched = failure == nil && err == nil
			}
			j.cancelAhead()
			m.steps.Wait()
			if n := chain.count.Load(); launched != test.launched || test.simulations >= 0 && n != test.simulations {
				t.Errorf("the transaction was launched: %t, after %d simulations; want %t after %d", launched, n, test.launched, test.simulations)
			}
			if n := len(j.Live); (n == 1) != test.launched {
				t.Errorf("the job has %d live attempts", n)
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

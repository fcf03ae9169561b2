package txmgr_test

import (
	"cmp"
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/feepayer"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// No fee payer of the relay may be a recipient, whichever payer signs.
func TestFeePayerIsRefusedAsRecipient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	others := []txmgr.Payer{w.newKey(), w.newKey()}
	r := w.assemble(parts{payers: others})
	for _, payer := range append(others, txmgr.Payer(w.payer)) {
		in := w.inputs(-sol, payer.PublicKey())
		_, err := r.Submit(t.Context(), submission.Request{Proof: w.prove(in), PublicInputs: in.Bytes(), Recipient: payer.PublicKey().String(), Notes: [][]byte{{1}}})
		_ = wantCode(t, err, refusal.InvalidRecipient)
	}
}

// walletState reports that the recipient holds lamports.
type walletState struct {
	submission.PoolState
	lamports uint64
}

func (s *walletState) Inspect(ctx context.Context, in *shieldpool.PublicInputs, recipient solana.PublicKey, minContextSlot uint64) (onchain.Inspection, error) {
	seen, err := s.PoolState.Inspect(ctx, in, recipient, minContextSlot)
	seen.RecipientExists, seen.RecipientLamports = s.lamports > 0, s.lamports
	return seen, err
}

// spentState reports the first note as spent by one endpoint; all says whether all endpoints
// report it as spent.
type spentState struct {
	submission.PoolState
	all bool
}

func (s *spentState) Inspect(ctx context.Context, in *shieldpool.PublicInputs, recipient solana.PublicKey, minContextSlot uint64) (onchain.Inspection, error) {
	seen, err := s.PoolState.Inspect(ctx, in, recipient, minContextSlot)
	seen.Spent[0] = true
	return seen, err
}

func (s *spentState) Spent(context.Context, [32]byte) (bool, error) { return s.all, nil }

// TestNoteReportedSpentByOneEndpointIsAccepted: a user believes that a note which is refused as spent is lost.
func TestNoteReportedSpentByOneEndpointIsAccepted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	req, _ := w.withdrawal(sol)
	fails := func(c txmgr.Chain) txmgr.Chain { return &slowSimulations{Chain: c, err: errNoSimulation} }
	_, err := w.assemble(parts{state: &spentState{w.state, true}, chain: fails}).Submit(t.Context(), req)
	if refused := wantCode(t, err, refusal.NullifierSpent); refused.Fields["nullifier_index"] != 0 {
		t.Errorf("the refusal has the fields %v, want nullifier_index 0", refused.Fields)
	}
	r := w.assemble(parts{state: &spentState{w.state, false}, chain: fails})
	if s := w.submit(r, req); s.State != submission.Pending {
		t.Errorf("the submission is %+v, want it accepted", s)
	}
	r.WaitSteps()
}

var errNoSimulation = &onchain.Unavailable{Method: "simulateTransaction", Kind: onchain.KindTimeout}

// slowSimulations is a chain whose simulations take a while, or fail.
type slowSimulations struct {
	txmgr.Chain
	took time.Duration
	err  error
}

func (s *slowSimulations) Simulate(ctx context.Context, raw []byte, replaceBlockhash bool, minContextSlot uint64) (onchain.Simulation, error) {
	time.Sleep(s.took)
	if s.err != nil {
		return onchain.Simulation{}, s.err
	}
	return s.Chain.Simulate(ctx, raw, replaceBlockhash, minContextSlot)
}

// countedState counts reads of notes and recipient.
type countedState struct {
	submission.PoolState
	lamports  uint64 // of the recipient
	inspected atomic.Int64
}

func (s *countedState) Inspect(ctx context.Context, in *shieldpool.PublicInputs, recipient solana.PublicKey, minContextSlot uint64) (onchain.Inspection, error) {
	s.inspected.Add(1)
	seen, err := s.PoolState.Inspect(ctx, in, recipient, minContextSlot)
	seen.RecipientLamports += s.lamports
	return seen, err
}

// TestASimulationShowsThatNotesAreUnspent: each request takes a call less, and a round trip.
func TestASimulationShowsThatNotesAreUnspent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const net = 700_000
	for name, test := range map[string]struct {
		simulations slowSimulations
		timeout     time.Duration // of the wait for the simulation; 0 means one that suffices
		concurrency int
		minimum     uint64 // of the program, for the recipient
		busy        bool   // the relay's capacity is used
		want        int64
	}{
		"the simulation succeeds":                         {want: 0},
		"the withdrawal may be too small for a recipient": {minimum: net + 1, want: 1},
		"the simulation fails":                            {simulations: slowSimulations{err: errNoSimulation}, want: 1},
		"the simulation is slow":                          {simulations: slowSimulations{took: 100 * time.Millisecond}, timeout: time.Millisecond, want: 1},
		"no capacity is left":                             {concurrency: 1, busy: true, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			state := &countedState{PoolState: w.state, lamports: test.minimum}
			r := w.assemble(parts{state: state, concurrency: test.concurrency, simulationTimeout: cmp.Or(test.timeout, time.Minute), chain: func(c txmgr.Chain) txmgr.Chain {
				test.simulations.Chain = c
				return &test.simulations
			}})
			r.HeartbeatOnce(t.Context())
			w.pool.Profile.RecipientMinimum = test.minimum
			if test.busy {
				first, _ := w.withdrawal(w.gross(net))
				w.submit(r, first)
				state.inspected.Store(0)
			}
			req, _ := w.withdrawal(w.gross(net))
			if s := w.submit(r, req); s.State != submission.Pending && s.State != submission.Processing {
				t.Errorf("the submission is %+v, want it accepted", s)
			}
			r.WaitSteps()
			if got := state.inspected.Load(); got != test.want {
				t.Errorf("notes and recipient were read %d times, want %d", got, test.want)
			}
		})
	}
}

// spentAtAll confirms each note that one endpoint reports as spent.
type spentAtAll struct{ submission.PoolState }

func (spentAtAll) Spent(context.Context, [32]byte) (bool, error) { return true, nil }

// TestASpentNoteIsRefusedAfterItsSimulation: the simulation fails, and then the notes are read, so that the
// request is refused with the index of its note.
func TestASpentNoteIsRefusedAfterItsSimulation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.assemble(parts{state: &spentAtAll{w.state}})
	req, _ := w.withdrawal(sol)
	_, to := w.withdrawal(sol)
	spent := w.inputs(-sol, to)
	in, err := shieldpool.ParsePublicInputs(req.PublicInputs)
	must(t, err)
	spent.Nullifiers[1] = in.Nullifiers[1]
	call := &shieldpool.Call{Inputs: spent, Proof: w.prove(spent)}
	call.Recipient = to
	w.land(w.payer, call)
	_, err = r.Submit(t.Context(), req)
	if refused := wantCode(t, err, refusal.NullifierSpent); refused.Fields["nullifier_index"] != 1 {
		t.Errorf("the refusal has the fields %v, want nullifier_index 1", refused.Fields)
	}
	inFlight, _ := r.InProgress()
	if payer := r.handler.Payers.(*feepayer.Payers).Balances()[0]; inFlight != 0 || payer.Reserved != 0 || payer.InFlight != 0 {
		t.Errorf("after the refusal %d submissions are in progress, and %d lamports reserved for %d transactions; want none", inFlight, payer.Reserved, payer.InFlight)
	}
}

func TestRecipientMustReachRentExemptMinimum(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const least = 650_240
	tests := map[string]struct {
		net, held, programs uint64
		refused             bool
	}{
		"empty wallet, withdrawal of the minimum":              {least, 0, 0, false},
		"empty wallet, withdrawal one lamport too small":       {least - 1, 0, 0, true},
		"a wallet below a minimum that has risen":              {1, 1, 0, false},
		"the wallet holds what lacks to the program's minimum": {least - 1, 1, least, false},
		"the program's minimum is one lamport above both":      {1, least - 2, least, true},
		"the program's minimum, into an empty wallet":          {least, 0, least + 1, true},
	}
	for name, test := range tests {
		r := w.assemble(parts{state: &walletState{PoolState: w.state, lamports: test.held}})
		w.pool.Profile.RecipientMinimum = test.programs
		req, _ := w.withdrawal(w.gross(test.net))
		_, err := r.Submit(t.Context(), req)
		if test.refused {
			_ = wantCode(t, err, refusal.RecipientBelowRent)
		} else if err != nil {
			t.Errorf("%s: %v, want it accepted", name, err)
		}
	}
}

// gross returns the smallest withdrawal that pays the recipient net lamports after fees.
func (w *world) gross(net uint64) int64 {
	w.t.Helper()
	fees := w.pool.Profile.Fees
	for gross := net + fees.Base; gross < net+2*fees.Base; gross++ {
		if got, ok := fees.Net(gross); ok && got == net {
			return int64(gross)
		}
	}
	w.t.Fatalf("no withdrawal pays %d lamports", net)
	return 0
}

// TestARepeatWithLongNotesIsRecognisedByARelayWithoutVersion1 sends one withdrawal to two relays
// of a fleet, of which only the first sends version 1.
func TestARepeatWithLongNotesIsRecognisedByARelayWithoutVersion1(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v1 := w.assemble(parts{formats: func() []shieldpool.Format { return []shieldpool.Format{shieldpool.Legacy, shieldpool.V1} }})
	legacy := w.assemble(parts{})
	long, _ := w.withdrawal(sol)
	long.Notes = [][]byte{make([]byte, 2000)}
	first := w.submit(v1, long)
	if again := w.submit(legacy, long); again.ID != first.ID {
		t.Errorf("the repeat is submission %s, want %s", again.ID, first.ID)
	}
	fresh, _ := w.withdrawal(sol)
	fresh.Notes = long.Notes
	_, err := legacy.Submit(t.Context(), fresh)
	_ = wantCode(t, err, refusal.NotesTooLarge)
	long.Notes = [][]byte{make([]byte, 4000)}
	_, err = v1.Submit(t.Context(), long)
	_ = wantCode(t, err, refusal.NotesTooLarge)
}

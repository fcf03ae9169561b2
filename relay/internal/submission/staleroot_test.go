package submission

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// TestRootIsEvictedByTheLeafThatReplacesIt: a submission that fails one leaf too early
// would have landed.
func TestRootIsEvictedByTheLeafThatReplacesIt(t *testing.T) {
	t.Parallel()
	const seq = 10
	for name, test := range map[string]struct {
		leaves uint64
		want   bool
	}{
		"the newest root":                          {seq, false},
		"the oldest root in the root history":      {seq + 2, false},
		"a root that the newest leaf has evicted":  {seq + 3, true},
		"a root that was evicted long ago":         {seq + 100, true},
		"a root that the node has not reached yet": {seq - 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := evicted(seq, &shieldpool.TreeAccount{NextIndex: test.leaves, History: make([][32]byte, 3)}); got != test.want {
				t.Errorf("the root is evicted: %t, want %t", got, test.want)
			}
		})
	}
}

// poolWithTree is a pool whose nullifiers are unspent and whose tree is given; corroborated is true if
// two endpoints show the tree.
type poolWithTree struct {
	PoolState
	tree         *shieldpool.TreeAccount
	corroborated bool
}

func (poolWithTree) Inspect(context.Context, *shieldpool.PublicInputs, solana.PublicKey, uint64) (onchain.Inspection, error) {
	return onchain.Inspection{}, nil
}

func (s poolWithTree) TreeWith(context.Context, [32]byte, time.Duration) (onchain.Snapshot, error) {
	return onchain.Snapshot{Tree: s.tree, Slot: 7, Checked: true, Corroborated: s.corroborated}, nil
}

// failureRecorder keeps the codes of failed submissions.
type failureRecorder struct {
	Store
	codes []refusal.Code
}

func (*failureRecorder) HighestTreeSlot(context.Context, solana.PublicKey) (uint64, error) {
	return 7, nil
}
func (s *failureRecorder) Fail(_ context.Context, _ txmgr.Lease, why *refusal.Refusal) error {
	s.codes = append(s.codes, why.Code)
	return nil
}

// onePayer is one fee payer.
type onePayer struct {
	txmgr.FeePayers
	key solana.PrivateKey
}

func (p onePayer) PublicKey() solana.PublicKey { return p.key.PublicKey() }
func (p onePayer) Sign(_ context.Context, message []byte) (solana.Signature, error) {
	return p.key.Sign(message)
}
func (p onePayer) Keys() []solana.PublicKey          { return []solana.PublicKey{p.PublicKey()} }
func (onePayer) Cancel(solana.PublicKey, uint64)     {}
func (onePayer) MarkRefused(solana.PublicKey, error) {}
func (p onePayer) Pick(context.Context, uint64, bool) (txmgr.Payer, error) {
	return p, nil
}

// noCaps has no spend caps.
type noCaps struct{ txmgr.Spending }

func (noCaps) Allow(context.Context, bool, uint64) (func(bool), error) { return func(bool) {}, nil }

// noLeaves is an index that is never used.
type noLeaves struct{ LeafIndex }

// fixedSimulation is a chain on which every simulation has the same result.
type fixedSimulation struct {
	txmgr.Chain
	fails *shieldpool.TransactionError
}

func (fixedSimulation) PriorityFees(context.Context, []solana.PublicKey) ([]uint64, error) {
	return nil, nil
}
func (c fixedSimulation) Simulate(context.Context, []byte, bool, uint64) (onchain.Simulation, error) {
	return onchain.Simulation{Err: c.fails, UnitsConsumed: 1000, Slot: 1}, nil
}

// newTransferJob makes a claimed transfer whose root is not in the tree, and its handler and store.
func newTransferJob(t *testing.T, chain txmgr.Chain, payers txmgr.FeePayers) (*Handler, *txmgr.Job, *failureRecorder) {
	t.Helper()
	profile := shieldpool.Development()
	pool, err := profile.Pool(profile.Mints[0])
	if err != nil {
		t.Fatal(err)
	}
	db := &failureRecorder{}
	h, err := New(Options{
		Chain: chain, Store: db, Payers: payers, Spending: noCaps{}, Pool: pool, Leaves: noLeaves{}, ProofA: new(ProofAPolicy), Worker: uuid.New(), Concurrency: 1,
		State: poolWithTree{tree: profile.NewTree(solana.PublicKey{})}, Observer: noObserver{}, Log: slog.New(slog.DiscardHandler), Now: time.Now, Timing: txmgr.DefaultTiming(), Rent: func() shieldpool.Rent { return 5080 }, SlotDuration: func() time.Duration { return onchain.NominalSlot },
	})
	if err != nil {
		t.Fatal(err)
	}
	in := &shieldpool.PublicInputs{Root: [32]byte{31: 1}, MintAddress: profile.Mints[0].Field, Nullifiers: [2][32]byte{{31: 1}, {31: 2}}}
	call := &shieldpool.Call{Proof: make([]byte, shieldpool.ProofLength), Inputs: in}
	return h, (&Submission{ID: uuid.New(), Kind: shieldpool.KindTransfer, Call: call, RootSeq: 5}).Job(), db
}

// TestUnseenRootFailsAfterTenTries: after ten tries the root's fork counts as dead.
// Before that the node may lag, and the submission does not fail.
func TestUnseenRootFailsAfterTenTries(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		tries int
		want  []refusal.Code
	}{
		"on the first try":      {0, nil},
		"after nine tries":      {rootLagTries - 1, nil},
		"after ten tries":       {rootLagTries, []refusal.Code{refusal.RootNotFound}},
		"after a hundred tries": {10 * rootLagTries, []refusal.Code{refusal.RootNotFound}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, j, db := newTransferJob(t, fixedSimulation{fails: &shieldpool.TransactionError{
				Kind: "InstructionError", Instruction: shieldpool.PoolInstruction, Detail: "Custom", Custom: shieldpool.CodeRootNotFound,
			}}, onePayer{key: solana.NewWallet().PrivateKey})
			j.Tries = test.tries
			if _, err := h.Advance(t.Context(), j); errors.Is(err, errRootNotSeen) != (test.want == nil) {
				t.Errorf("the step returned %v; errRootNotSeen is expected: %t", err, test.want == nil)
			}
			if diff := cmp.Diff(test.want, db.codes); diff != "" {
				t.Errorf("codes of failures (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAnEvictionThatTwoEndpointsShowNeedsNoSimulation: with one endpoint that lies about every
// simulation, and one that says the truth, no failure is ever confirmed.
func TestAnEvictionThatTwoEndpointsShowNeedsNoSimulation(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		corroborated bool
		age          time.Duration
		want         []refusal.Code
	}{
		"two endpoints show the tree":                  {true, rootLag, []refusal.Code{refusal.RootNotFound}},
		"one endpoint shows the tree":                  {false, rootLag, nil},
		"both may lag behind the root of a submission": {true, rootLag - time.Second, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lie := onchain.Simulation{Err: custom(shieldpool.CodeProofInvalid), Unverified: true}
			h, j, db := newTransferJob(t, fixedAnswer{answer: lie}, onePayer{key: solana.NewWallet().PrivateKey})
			tree := shieldpool.Development().NewTree(solana.PublicKey{})
			for i := range len(tree.History) + 5 {
				if err := tree.Append([32]byte{30: byte(i >> 8), 31: byte(i)}); err != nil {
					t.Fatal(err)
				}
			}
			h.State = poolWithTree{tree: tree, corroborated: test.corroborated}
			now := time.Now()
			h.Now, j.CreatedAt = func() time.Time { return now }, now.Add(-test.age)
			if _, err := h.Advance(t.Context(), j); (err == nil) != (test.want != nil) {
				t.Errorf("the step returned %v; an end is expected: %t", err, test.want != nil)
			}
			if diff := cmp.Diff(test.want, db.codes); diff != "" {
				t.Errorf("codes of failures (-want +got):\n%s", diff)
			}
		})
	}
}

// payerKeys is fee payers with the given keys.
type payerKeys struct {
	txmgr.FeePayers
	keys []solana.PublicKey
}

func (p payerKeys) Keys() []solana.PublicKey          { return p.keys }
func (payerKeys) MarkRefused(solana.PublicKey, error) {}

var errUnexpectedPayer = errors.New("a simulation with this payer is not expected")

// simulationByPayer is a chain on which the result of a simulation depends on the fee payer.
type simulationByPayer struct {
	txmgr.Chain
	fails map[solana.PublicKey]*shieldpool.TransactionError
}

func (c simulationByPayer) Simulate(_ context.Context, raw []byte, _ bool, _ uint64) (onchain.Simulation, error) {
	tx, err := solana.TransactionFromBytes(raw)
	if err != nil {
		return onchain.Simulation{}, err
	}
	fails, known := c.fails[tx.Message.AccountKeys[0]]
	if !known {
		return onchain.Simulation{}, errUnexpectedPayer
	}
	return onchain.Simulation{Err: fails}, nil
}

// TestSimulationSkipsEmptyPayers: a simulation with an empty payer shows nothing about the
// proof.
func TestSimulationSkipsEmptyPayers(t *testing.T) {
	t.Parallel()
	one, other := solana.NewWallet().PublicKey(), solana.NewWallet().PublicKey()
	empty := &shieldpool.TransactionError{Kind: "InsufficientFundsForFee"}
	wrong := &shieldpool.TransactionError{Kind: "InstructionError", Instruction: shieldpool.PoolInstruction, Detail: "Custom", Custom: shieldpool.CodeProofInvalid}
	for name, test := range map[string]struct {
		fails map[solana.PublicKey]*shieldpool.TransactionError
		want  *shieldpool.TransactionError
	}{
		"the first payer is empty, the second is not": {map[solana.PublicKey]*shieldpool.TransactionError{one: empty, other: nil}, nil},
		"the second payer's simulation fails":         {map[solana.PublicKey]*shieldpool.TransactionError{one: empty, other: wrong}, wrong},
		"the first payer's simulation fails":          {map[solana.PublicKey]*shieldpool.TransactionError{one: wrong}, wrong},
		"the first payer's simulation succeeds":       {map[solana.PublicKey]*shieldpool.TransactionError{one: nil}, nil},
		"all payers are empty":                        {map[solana.PublicKey]*shieldpool.TransactionError{one: empty, other: empty}, empty},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, j, _ := newTransferJob(t, simulationByPayer{fails: test.fails}, payerKeys{keys: []solana.PublicKey{one, other}})
			draft, err := h.draft(FromJob(j))
			if err != nil {
				t.Fatal(err)
			}
			got, err := h.Manager.SimulateDraft(t.Context(), draft, 0)
			if err != nil || (got == nil) != (test.want == nil) || got != nil && got.Err != test.want {
				t.Errorf("SimulateDraft returned %v, error %v; want %v", got, err, test.want)
			}
		})
	}
}

// fixedAnswer is a chain on which every simulation returns answer.
type fixedAnswer struct {
	fixedSimulation
	answer onchain.Simulation
}

func (c fixedAnswer) Simulate(context.Context, []byte, bool, uint64) (onchain.Simulation, error) {
	return c.answer, nil
}

func custom(code uint32) *shieldpool.TransactionError {
	return &shieldpool.TransactionError{Kind: "InstructionError", Instruction: shieldpool.PoolInstruction, Detail: "Custom", Custom: code}
}

// TestProofsOfTheOtherEncodingAreSimulated: a proof is refused only if the program refuses it, and two
// endpoints report that.
func TestProofsOfTheOtherEncodingAreSimulated(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer onchain.Simulation
		want   refusal.Code // "" when the proof is accepted
	}{
		"the program accepts the proof":   {onchain.Simulation{}, ""},
		"the program refuses the proof":   {onchain.Simulation{Err: custom(shieldpool.CodeProofInvalid)}, refusal.ProofInvalid},
		"one endpoint alone reports that": {onchain.Simulation{Err: custom(shieldpool.CodeProofInvalid), Unverified: true}, refusal.ChainUnavailable},
		"the notes are already spent":     {onchain.Simulation{Err: custom(shieldpool.CodeDoubleSpend)}, refusal.ChainUnavailable},
		"the node lags behind the root":   {onchain.Simulation{Err: custom(shieldpool.CodeRootNotFound)}, refusal.ChainUnavailable},
		"another permanent error":         {onchain.Simulation{Err: custom(shieldpool.CodeConservation)}, refusal.ProgramError},
		"the recipient stays below rent":  {onchain.Simulation{Err: &shieldpool.TransactionError{Kind: "InsufficientFundsForRent", Account: 1}}, refusal.RecipientBelowRent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, j, _ := newTransferJob(t, fixedAnswer{answer: test.answer}, onePayer{key: solana.NewWallet().PrivateKey})
			var got refusal.Code
			switch why, badProof, err := h.TryCall(t.Context(), FromJob(j)); {
			case err != nil:
				got = refusal.ChainUnavailable // the refusal that admission returns
			case badProof:
				got = refusal.ProofInvalid
			case why != nil:
				got = why.Code
			}
			if got != test.want {
				t.Errorf("the refusal is %q, want %q", got, test.want)
			}
		})
	}
}

// TestSpentNotesDoNotMakeARootStale: after a double spend the spender is searched instead.
func TestSpentNotesDoNotMakeARootStale(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		code uint32
		gone bool
	}{
		"the program does not know the root": {shieldpool.CodeRootNotFound, true},
		"the program says double spend":      {shieldpool.CodeDoubleSpend, false},
		"the program says nullifier used":    {shieldpool.CodeNullifierAlreadyUsed, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, j, _ := newTransferJob(t, fixedSimulation{fails: custom(test.code)}, onePayer{key: solana.NewWallet().PrivateKey})
			if err := h.tryRoot(t.Context(), j, &progress{}); (err == nil) != test.gone {
				t.Errorf("the root counts as gone: %t (%v), want %t", err == nil, err, test.gone)
			}
		})
	}
}

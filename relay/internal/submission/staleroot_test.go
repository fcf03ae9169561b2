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

// TestARootHasLeftTheRingWithTheLeafThatTakesItsPlace: a submission that fails one leaf too early
// would have landed.
func TestARootHasLeftTheRingWithTheLeafThatTakesItsPlace(t *testing.T) {
	t.Parallel()
	const seq = 10
	for name, test := range map[string]struct {
		leaves uint64
		want   bool
	}{
		"the newest root": {seq, false},
		"the oldest one that the root history holds": {seq + 2, false},
		"one whose place another has taken":          {seq + 3, true},
		"one that left long ago":                     {seq + 100, true},
		"one that a node behind has not seen":        {seq - 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := evicted(seq, &shieldpool.TreeAccount{NextIndex: test.leaves, History: make([][32]byte, 3)}); got != test.want {
				t.Errorf("it has left the root history: %t, want %t", got, test.want)
			}
		})
	}
}

// rooted is a pool whose tree holds none of the roots that are asked for.
type rooted struct {
	PoolState
	tree *shieldpool.TreeAccount
}

func (rooted) Inspect(context.Context, *shieldpool.PublicInputs, solana.PublicKey, uint64) (onchain.Inspection, error) {
	return onchain.Inspection{}, nil
}

func (s rooted) TreeWith(context.Context, [32]byte, time.Duration) (onchain.Snapshot, error) {
	return onchain.Snapshot{Tree: s.tree, Slot: 7, Checked: true}, nil
}

// ended keeps how submissions fail.
type ended struct {
	Store
	codes []refusal.Code
}

func (*ended) HighestTreeSlot(context.Context, solana.PublicKey) (uint64, error) { return 7, nil }
func (s *ended) Fail(_ context.Context, _ txmgr.Lease, why *refusal.Refusal) error {
	s.codes = append(s.codes, why.Code)
	return nil
}

// purse is one fee payer.
type purse struct {
	txmgr.FeePayers
	key solana.PrivateKey
}

func (p purse) PublicKey() solana.PublicKey                   { return p.key.PublicKey() }
func (p purse) Sign(message []byte) (solana.Signature, error) { return p.key.Sign(message) }
func (p purse) Keys() []solana.PublicKey                      { return []solana.PublicKey{p.PublicKey()} }
func (purse) Cancel(solana.PublicKey, uint64)                 {}
func (purse) MarkRefused(solana.PublicKey, error)             {}
func (p purse) Pick(context.Context, uint64, bool) (txmgr.Payer, error) {
	return p, nil
}

// free caps nothing.
type free struct{ txmgr.Spending }

func (free) Allow(context.Context, bool, uint64) (func(bool), error) { return func(bool) {}, nil }

// noLeaves is an index that is never asked.
type noLeaves struct{ LeafIndex }

// rehearsed is a chain on which every simulation ends in the same way.
type rehearsed struct {
	txmgr.Chain
	fails *shieldpool.TransactionError
}

func (rehearsed) PriorityFees(context.Context, []solana.PublicKey) ([]uint64, error) { return nil, nil }
func (c rehearsed) Simulate(context.Context, []byte, bool, uint64) (onchain.Simulation, error) {
	return onchain.Simulation{Err: c.fails, UnitsConsumed: 1000, Slot: 1}, nil
}

// aTransfer is a claimed transfer whose root is not in the tree, and a handler that works on it.
func aTransfer(t *testing.T, chain txmgr.Chain, payers txmgr.FeePayers) (*Handler, *txmgr.Job, *ended) {
	t.Helper()
	profile := shieldpool.Development()
	pool, err := profile.Pool(profile.Mints[0])
	if err != nil {
		t.Fatal(err)
	}
	db := &ended{}
	h, err := New(Options{
		Chain: chain, Store: db, Payers: payers, Spending: free{}, Pool: pool, Leaves: noLeaves{}, ProofA: new(ProofAPolicy), Worker: uuid.New(), Concurrency: 1,
		State: rooted{tree: profile.NewTree(solana.PublicKey{})}, Observer: quiet{}, Log: slog.New(slog.DiscardHandler), Now: time.Now, Timing: txmgr.DefaultTiming(),
	})
	if err != nil {
		t.Fatal(err)
	}
	in := &shieldpool.PublicInputs{Root: [32]byte{31: 1}, MintAddress: profile.Mints[0].Field, Nullifiers: [2][32]byte{{31: 1}, {31: 2}}}
	call := &shieldpool.Call{Proof: make([]byte, shieldpool.ProofLength), Inputs: in}
	return h, (&Submission{ID: uuid.New(), Kind: shieldpool.KindTransfer, Call: call, RootSeq: 5}).Job(), db
}

// TestARootThatDoesNotComeIsGivenUpAfterTenTries: its fork died. Before that the node may lag, and
// the submission does not fail.
func TestARootThatDoesNotComeIsGivenUpAfterTenTries(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		tries int
		want  []refusal.Code
	}{
		"on the first try":     {0, nil},
		"after nine tries":     {rootLagTries - 1, nil},
		"after the tenth":      {rootLagTries, []refusal.Code{refusal.RootNotFound}},
		"after ever more ones": {10 * rootLagTries, []refusal.Code{refusal.RootNotFound}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, j, db := aTransfer(t, rehearsed{fails: &shieldpool.TransactionError{
				Kind: "InstructionError", Instruction: shieldpool.PoolInstruction, Detail: "Custom", Custom: shieldpool.CodeRootNotFound,
			}}, purse{key: solana.NewWallet().PrivateKey})
			j.Tries = test.tries
			if _, err := h.Advance(t.Context(), j); errors.Is(err, errRootNotSeen) != (test.want == nil) {
				t.Errorf("the step ends with %v", err)
			}
			if diff := cmp.Diff(test.want, db.codes); diff != "" {
				t.Errorf("it fails by (-want +got):\n%s", diff)
			}
		})
	}
}

// crowd is fee payers with that many keys.
type crowd struct {
	txmgr.FeePayers
	keys []solana.PublicKey
}

func (p crowd) Keys() []solana.PublicKey          { return p.keys }
func (crowd) MarkRefused(solana.PublicKey, error) {}

var errNotAsked = errors.New("nobody was to ask with this payer")

// byPayer is a chain that has an answer for each fee payer.
type byPayer struct {
	txmgr.Chain
	fails map[solana.PublicKey]*shieldpool.TransactionError
}

func (c byPayer) Simulate(_ context.Context, raw []byte, _ bool, _ uint64) (onchain.Simulation, error) {
	tx, err := solana.TransactionFromBytes(raw)
	if err != nil {
		return onchain.Simulation{}, err
	}
	fails, known := c.fails[tx.Message.AccountKeys[0]]
	if !known {
		return onchain.Simulation{}, errNotAsked
	}
	return onchain.Simulation{Err: fails}, nil
}

// TestAProofIsTriedWithAPayerThatCanPay: an empty payer shows nothing about the proof, which would
// otherwise be refused.
func TestAProofIsTriedWithAPayerThatCanPay(t *testing.T) {
	t.Parallel()
	one, other := solana.NewWallet().PublicKey(), solana.NewWallet().PublicKey()
	empty := &shieldpool.TransactionError{Kind: "InsufficientFundsForFee"}
	wrong := &shieldpool.TransactionError{Kind: "InstructionError", Instruction: shieldpool.PoolInstruction, Detail: "Custom", Custom: shieldpool.CodeProofInvalid}
	for name, test := range map[string]struct {
		fails map[solana.PublicKey]*shieldpool.TransactionError
		want  *shieldpool.TransactionError
	}{
		"the first payer is empty, and the second not": {map[solana.PublicKey]*shieldpool.TransactionError{one: empty, other: nil}, nil},
		"the program refuses it to the second":         {map[solana.PublicKey]*shieldpool.TransactionError{one: empty, other: wrong}, wrong},
		"the program refuses it to the first":          {map[solana.PublicKey]*shieldpool.TransactionError{one: wrong}, wrong},
		"it would land with the first":                 {map[solana.PublicKey]*shieldpool.TransactionError{one: nil}, nil},
		"all are empty":                                {map[solana.PublicKey]*shieldpool.TransactionError{one: empty, other: empty}, empty},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, j, _ := aTransfer(t, byPayer{fails: test.fails}, crowd{keys: []solana.PublicKey{one, other}})
			got, err := h.Manager.SimulateDraft(t.Context(), h.draft(FromJob(j)), 0)
			if err != nil || (got == nil) != (test.want == nil) || got != nil && got.Err != test.want {
				t.Errorf("the try ends with %v (%v), want %v", got, err, test.want)
			}
		})
	}
}

// simulated is a chain that simulates all transactions alike.
type simulated struct {
	rehearsed
	answer onchain.Simulation
}

func (c simulated) Simulate(context.Context, []byte, bool, uint64) (onchain.Simulation, error) {
	return c.answer, nil
}

func custom(code uint32) *shieldpool.TransactionError {
	return &shieldpool.TransactionError{Kind: "InstructionError", Instruction: shieldpool.PoolInstruction, Detail: "Custom", Custom: code}
}

// TestProofsOfTheOtherEncodingAreTried: only the program can find a proof wrong, and more
// than one endpoint has to report it.
func TestProofsOfTheOtherEncodingAreTried(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer onchain.Simulation
		want   refusal.Code // "" when it is accepted
	}{
		"it takes it":                        {onchain.Simulation{}, ""},
		"it refuses the proof":               {onchain.Simulation{Err: custom(shieldpool.CodeProofInvalid)}, refusal.ProofInvalid},
		"one endpoint alone says so":         {onchain.Simulation{Err: custom(shieldpool.CodeProofInvalid), Unverified: true}, refusal.ChainUnavailable},
		"the notes are spent meanwhile":      {onchain.Simulation{Err: custom(shieldpool.CodeDoubleSpend)}, refusal.ChainUnavailable},
		"the node lags behind the root":      {onchain.Simulation{Err: custom(shieldpool.CodeRootNotFound)}, refusal.ChainUnavailable},
		"it refuses something else for good": {onchain.Simulation{Err: custom(shieldpool.CodeConservation)}, refusal.ProgramError},
		"it would pay too little rent":       {onchain.Simulation{Err: &shieldpool.TransactionError{Kind: "InsufficientFundsForRent", Account: 1}}, refusal.RecipientBelowRent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, j, _ := aTransfer(t, simulated{answer: test.answer}, purse{key: solana.NewWallet().PrivateKey})
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
				t.Errorf("it is answered %q, want %q", got, test.want)
			}
		})
	}
}

// TestARootIsNotGoneBecauseTheNotesAreSpent: the spender is looked up anew.
func TestARootIsNotGoneBecauseTheNotesAreSpent(t *testing.T) {
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
			h, j, _ := aTransfer(t, rehearsed{fails: custom(test.code)}, purse{key: solana.NewWallet().PrivateKey})
			if err := h.tryRoot(t.Context(), j, &progress{}); (err == nil) != test.gone {
				t.Errorf("the root is gone: %t (%v), want %t", err == nil, err, test.gone)
			}
		})
	}
}

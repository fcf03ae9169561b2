package submission

import (
	"errors"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// TestTheFormatOfASubmission drafts transfers with notes of different lengths.
func TestTheFormatOfASubmission(t *testing.T) {
	t.Parallel()
	h, j, _ := newTransferJob(t, fixedSimulation{}, onePayer{key: solana.NewWallet().PrivateKey})
	s := FromJob(j)
	for name, test := range map[string]struct {
		formats []shieldpool.Format // nil for a relay that sends no version 1
		note    int                 // the note's length; its envelope has 8 bytes more
		want    shieldpool.Format
	}{
		"no note":                    {nil, 0, shieldpool.Legacy},
		"the longest note of legacy": {[]shieldpool.Format{shieldpool.Legacy, shieldpool.V1}, 281, shieldpool.Legacy},
		"one byte more":              {[]shieldpool.Format{shieldpool.Legacy, shieldpool.V1}, 282, shieldpool.V1},
		"version 1 for all":          {[]shieldpool.Format{shieldpool.V1}, 1, shieldpool.V1},
	} {
		h.Formats = nil
		if test.formats != nil {
			h.Formats = func() []shieldpool.Format { return test.formats }
		}
		s.Call.Notes = nil
		if test.note > 0 {
			s.Call.Notes = [][]byte{make([]byte, test.note)}
		}
		d, err := h.draft(s)
		if err != nil {
			t.Fatal(err)
		}
		if d.Format != test.want {
			t.Errorf("%s: the format is %s, want %s", name, d.Format, test.want)
		}
		tx, err := d.Build(solana.PublicKey{9}, shieldpool.Compute{Format: d.Format, Limit: 1, LoadedData: 1}, solana.Hash{})
		if err != nil {
			t.Fatal(err)
		}
		tx.Signatures = make([]solana.Signature, 1)
		raw, err := tx.MarshalBinary()
		if err != nil || len(raw) > d.Format.MaxSize() {
			t.Errorf("%s: the transaction has %d bytes, want at most %d (%v)", name, len(raw), d.Format.MaxSize(), err)
		}
	}
}

// TestNotesThatFitNoFormatWaitForTheOperator has a submission that a relay of version 1 accepted,
// at a relay without it. It ends all the same when its root is gone.
func TestNotesThatFitNoFormatWaitForTheOperator(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		rootSeq uint64
		want    []refusal.Code
	}{
		"its root is in the root history": {5, nil},
		"its root is gone":                {0, []refusal.Code{refusal.RootNotFound}},
	} {
		h, j, db := newTransferJob(t, fixedSimulation{fails: custom(shieldpool.CodeRootNotFound)}, onePayer{key: solana.NewWallet().PrivateKey})
		s := FromJob(j)
		s.Call.Notes, s.RootSeq = [][]byte{make([]byte, 282)}, test.rootSeq
		tree := *h.State.(poolWithTree).tree
		if test.want == nil {
			s.Call.Inputs.Root = tree.Root
		} else {
			tree.NextIndex = uint64(len(tree.History))
		}
		h.State = poolWithTree{tree: &tree}
		_, err := h.Advance(t.Context(), j)
		var held *txmgr.Deferral
		if errors.As(err, &held) != (test.want == nil) || held != nil && (held.Reason != HoldFormat || !held.Fault) {
			t.Errorf("%s: the step returned %v, want that it is held by the format: %t", name, err, test.want == nil)
		}
		if diff := cmp.Diff(test.want, db.codes); diff != "" {
			t.Errorf("%s: codes of failures (-want +got)\n%s", name, diff)
		}
	}
}

// TestTheNetworkWithoutVersion1HoldsItsTransactions simulates a transaction that the network
// refuses for its version: no client is at fault.
func TestTheNetworkWithoutVersion1HoldsItsTransactions(t *testing.T) {
	t.Parallel()
	h, j, db := newTransferJob(t, fixedSimulation{fails: &shieldpool.TransactionError{Kind: "UnsupportedVersion"}}, onePayer{key: solana.NewWallet().PrivateKey})
	FromJob(j).Call.Inputs.Root = h.State.(poolWithTree).tree.Root
	_, err := h.Advance(t.Context(), j)
	var held *txmgr.Deferral
	if !errors.As(err, &held) || held.Reason != string(shieldpool.ClassOperator) || len(db.codes) > 0 {
		t.Errorf("the step returned %v and failures %v, want that it is held for the operator", err, db.codes)
	}
}

// TestTheProgramsInstructionIsFoundByFormat classifies one error at each position.
func TestTheProgramsInstructionIsFoundByFormat(t *testing.T) {
	t.Parallel()
	h, _, _ := newTransferJob(t, fixedSimulation{}, onePayer{key: solana.NewWallet().PrivateKey})
	bug, spent := shieldpool.ClassBug, shieldpool.ClassSpent
	for format, want := range map[shieldpool.Format][]shieldpool.Class{
		shieldpool.Legacy: {bug, bug, spent}, shieldpool.V0: {bug, bug, spent}, shieldpool.V1: {spent, bug, bug},
	} {
		var got []shieldpool.Class
		for i := range want {
			got = append(got, h.class(txmgr.PurposeTransact, format, &shieldpool.TransactionError{
				Kind: "InstructionError", Instruction: i, Detail: "Custom", Custom: shieldpool.CodeDoubleSpend,
			}))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("classes of %s (-want +got)\n%s", format, diff)
		}
	}
}

package store

import (
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/refusal"
)

func TestCompleteReopenFinalizeAndPin(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	c := acceptLeased(t, s, withdrawal(1, 2))
	root := [32]byte{5}
	o := submission.Outcome{Signature: solana.Signature{1}, Slot: 77, LeafIndices: []uint64{4, 5}, Root: &root}
	l := submission.Landing{Lease: c.Lease, Outcome: o}
	complete(t, s, l)
	got := get(t, s, c.ID)
	if got.State != submission.Completed || got.Finalized || *got.Signature != o.Signature || got.Slot != 77 || *got.Root != root || !cmp.Equal(got.LeafIndices, o.LeafIndices) || got.CompletedAt == nil {
		t.Errorf("completed submission is %+v, want the landing's values", got)
	}
	if encoding, err := s.PinnedProofA(ctx, [32]byte{8}); err != nil || encoding != "" {
		t.Errorf("pinned encoding before finality is %q (%v), want none", encoding, err)
	}
	ok(t, s.Reopen(ctx, c.Lease))
	if got = get(t, s, c.ID); got.State != submission.Processing || !got.RolledBack || got.Signature != nil || got.CompletedAt != nil || got.LeafIndices != nil {
		t.Errorf("reopened submission is %+v, want it processing without a landing", got)
	}
	complete(t, s, l)
	pin := submission.ProofAPin{KeyHash: [32]byte{8}, Encoding: "negated", Signature: o.Signature}
	finalize(t, s, submission.Landing{Lease: c.Lease, Outcome: submission.Outcome{Signature: o.Signature, Slot: 78}}, pin)
	if got = get(t, s, c.ID); !got.Finalized || got.RolledBack || got.Slot != 78 || !cmp.Equal(got.LeafIndices, o.LeafIndices) {
		t.Errorf("finalized submission is %+v, want slot 78 and the leaves of the landing", got)
	}
	if encoding, err := s.PinnedProofA(ctx, [32]byte{8}); err != nil || encoding != "negated" {
		t.Errorf("pinned encoding is %q (%v), want negated", encoding, err)
	}
	if _, err := s.Accept(ctx, withdrawal(1, 9), nil, nil); err == nil {
		t.Error("a note of a landed submission is accepted again, want a refusal")
	}
	// A later landing with the other encoding replaces the pin.
	d := acceptLeased(t, s, withdrawal(11, 12))
	complete(t, s, landing(d.Lease, 2))
	finalize(t, s, landing(d.Lease, 2), submission.ProofAPin{KeyHash: [32]byte{8}, Encoding: "plain", Signature: solana.Signature{2}})
	if encoding, err := s.PinnedProofA(ctx, [32]byte{8}); err != nil || encoding != "plain" {
		t.Errorf("pinned encoding is %q (%v), want plain, which landed last", encoding, err)
	}
	e := acceptLeased(t, s, withdrawal(13, 14))
	complete(t, s, landing(e.Lease, 3))
	finalize(t, s, landing(e.Lease, 3), submission.ProofAPin{KeyHash: [32]byte{8}, Encoding: "plain", Signature: solana.Signature{3}},
		submission.ProofAPin{KeyHash: [32]byte{9}, Encoding: "plain", Signature: solana.Signature{4}})
	pins, err := s.ProofAPins(ctx)
	if err != nil || len(pins) != 1 || pins[0].Encoding != "plain" || pins[0].Signature != (solana.Signature{2}) || pins[0].KeyHash != [32]byte{8} || pins[0].Since.IsZero() {
		t.Errorf("pins are %+v (%v), want only the pin proven by signature 2", pins, err)
	}
	if n, err := s.ForgetProofAPins(ctx); err != nil || n != 1 {
		t.Errorf("%d pins were deleted (%v), want 1", n, err)
	}
	if encoding, err := s.PinnedProofA(ctx, [32]byte{8}); err != nil || encoding != "" {
		t.Errorf("pinned encoding is %q (%v) after all pins were deleted, want none", encoding, err)
	}
}

func TestFinalizeAddsMissingLeavesAndRoot(t *testing.T) {
	t.Parallel()
	s := open(t)
	c := acceptLeased(t, s, withdrawal(1, 2))
	complete(t, s, landing(c.Lease, 1))
	l := landing(c.Lease, 1)
	l.LeafIndices, l.Root = []uint64{8, 9}, &[32]byte{7}
	finalize(t, s, l)
	if got := get(t, s, c.ID); !cmp.Equal(got.LeafIndices, l.LeafIndices) || !cmp.Equal(got.Root, l.Root) {
		t.Errorf("leaves are %v and root is %v, want %v and %v", got.LeafIndices, got.Root, l.LeafIndices, l.Root)
	}
	withRoot := acceptLeased(t, s, withdrawal(3, 4))
	first, last := landing(withRoot.Lease, 2), landing(withRoot.Lease, 2)
	first.Root, last.Root = &[32]byte{1}, &[32]byte{2}
	complete(t, s, first)
	finalize(t, s, last)
	if got := get(t, s, withRoot.ID).Root; !cmp.Equal(got, first.Root) {
		t.Errorf("the root is %v, want the root of the landing, %v", got, first.Root)
	}
}

func TestABatchWritesLeasedRowsAndReturnsLostLeases(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	var batch []submission.Landing
	for n := range byte(6) {
		l := landing(stateOf(t, s, submission.Processing, w, uint64(n)+1), n+1)
		l.LeafIndices = make([]uint64, n%3) // batches mix lengths
		batch = append(batch, l)
	}
	ok(t, s.Release(ctx, batch[1].Lease, 0, "")) // released
	claimByAnother(t, s, batch[1].ID)            // and claimed by another worker
	ok(t, s.Release(ctx, batch[3].Lease, time.Hour, ""))
	batch[4].ID = uuid.New() // unknown
	lostLeases := []txmgr.Lease{batch[1].Lease, batch[3].Lease, batch[4].Lease}

	lost, err := s.Complete(ctx, batch)
	if diff := cmp.Diff(lostLeases, lost); diff != "" || err != nil {
		t.Errorf("leases that Complete reports lost (%v) (-want +got):\n%s", err, diff)
	}
	var pins []submission.ProofAPin
	for i, l := range batch {
		pins = append(pins, submission.ProofAPin{KeyHash: [32]byte{byte(i)}, Encoding: "plain", Signature: l.Signature})
	}
	lost, err = s.Finalize(ctx, batch, pins)
	if diff := cmp.Diff(lostLeases, lost); diff != "" || err != nil {
		t.Errorf("leases that Finalize reports lost (%v) (-want +got):\n%s", err, diff)
	}
	for i, l := range batch {
		encoding, err := s.PinnedProofA(ctx, [32]byte{byte(i)})
		ok(t, err)
		if leaseLost := i == 1 || i == 3 || i == 4; leaseLost != (encoding == "") {
			t.Errorf("landing %d: pinned encoding is %q, want none exactly if the lease is lost", i, encoding)
		} else if !leaseLost {
			if got := get(t, s, l.ID); !got.Finalized || *got.Signature != l.Signature || got.Slot != l.Slot || len(got.LeafIndices) != len(l.LeafIndices) {
				t.Errorf("landing %d: the submission is %+v, want it finalized with the landing's values", i, got)
			}
		}
	}
	for _, run := range []func() ([]txmgr.Lease, error){
		func() ([]txmgr.Lease, error) { return s.Complete(ctx, nil) },
		func() ([]txmgr.Lease, error) { return s.Finalize(ctx, nil, nil) },
	} {
		if lost, err := run(); err != nil || lost != nil {
			t.Errorf("an empty batch returns %v, error %v; want neither", lost, err)
		}
	}
}

func TestAFailureFreesItsOwnNullifiersAndNoOthers(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	c := acceptLeased(t, s, withdrawal(1, 2))
	accept(t, s, withdrawal(3, 4), nil)
	elsewhere := withdrawal(1, 2)
	elsewhere.Pool = solana.PublicKey{10} // each pool has its own notes
	accept(t, s, elsewhere, nil)
	ok(t, s.Fail(ctx, c.Lease, refusal.New(refusal.ProgramError, "refused").With("program_code", "0x1031")))
	if n := one[int](t, s, `SELECT count(*) FROM reservations`); n != 4 {
		t.Errorf("%d nullifiers are reserved, want the 4 of the other submissions", n)
	}
	got := get(t, s, c.ID)
	if got.State != submission.Failed || got.Failure.Code != refusal.ProgramError || got.Failure.Fields["program_code"] != "0x1031" || got.CompletedAt == nil {
		t.Errorf("failed submission is %+v, want it failed with the refusal", got)
	}
}

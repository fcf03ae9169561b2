package store

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/refusal"
)

func TestAcceptStoresTheWholeSubmission(t *testing.T) {
	t.Parallel()
	s := open(t)
	for name, sub := range map[string]*submission.Submission{"withdrawal": withdrawal(1, 2), "transfer": transfer(3)} {
		sub.RootSeq = 17
		accept(t, s, sub, nil)
		if sub.CreatedAt.IsZero() || sub.State != submission.Pending || sub.Epoch != 0 {
			t.Errorf("%s is accepted in state %s with epoch %d at %s; want pending, 0 and a time", name, sub.State, sub.Epoch, sub.CreatedAt)
		}
		if diff := cmp.Diff(sub, get(t, s, sub.ID)); diff != "" {
			t.Errorf("%s: stored submission (-want +got):\n%s", name, diff)
		}
	}
}

func TestAcceptGivesTheLeaseToALiveWorker(t *testing.T) {
	t.Parallel()
	s := open(t)
	dead := worker(t, s)
	expireWorker(t, s, dead)
	unknown, living := uuid.New(), worker(t, s)
	tests := map[string]struct {
		worker *uuid.UUID
		state  submission.State
		epoch  int64
	}{
		"a live worker gets the lease":               {&living, submission.Processing, 1},
		"without a worker it is pending":             {nil, submission.Pending, 0},
		"an expired worker gets no lease":            {&dead, submission.Pending, 0},
		"a worker without a heartbeat gets no lease": {&unknown, submission.Pending, 0},
		"the same worker gets a second lease":        {&living, submission.Processing, 1},
	}
	n := uint64(0)
	for name, test := range tests {
		n++
		sub, err := s.Accept(t.Context(), withdrawal(n, 0), nil, test.worker)
		ok(t, err)
		if sub.State != test.state || sub.Epoch != test.epoch {
			t.Errorf("%s: the row is %s with epoch %d, want %s and %d", name, sub.State, sub.Epoch, test.state, test.epoch)
		}
		if diff := cmp.Diff(sub, get(t, s, sub.ID)); diff != "" {
			t.Errorf("%s: stored submission (-want +got):\n%s", name, diff)
		}
	}
	if leases, err := s.Leases(t.Context(), living); err != nil || len(leases) != 2 {
		t.Errorf("leases of the live worker are %v (%v), want two", leases, err)
	}
	if got := len(claim(t, s, living)); got != 3 {
		t.Errorf("claimed %d submissions, want the 3 without a lease", got)
	}
}

func TestRepeatedContentNotesAndKeysAreRecognised(t *testing.T) {
	t.Parallel()
	s := open(t)
	key := []byte("key hash of thirty-two bytes len")
	first := accept(t, s, withdrawal(1, 2), key)

	otherProof := withdrawal(1, 2)
	otherProof.Call.Proof[0], otherProof.Call.Notes = 1, nil
	if got := accept(t, s, otherProof, nil); got.ID != first.ID {
		t.Error("the same inputs with another proof and other note ciphertexts made another submission, want the first")
	}
	otherRecipient := withdrawal(1, 2)
	otherRecipient.Call.Recipient = solana.PublicKey{7}
	for name, sub := range map[string]*submission.Submission{"another recipient": otherRecipient, "first note shared": withdrawal(1, 3), "only note shared": withdrawal(1, 0)} {
		_, err := s.Accept(t.Context(), sub, nil, nil)
		if r := wantCode(t, err, refusal.NullifierReserved); r.Fields["nullifier_index"] != 0 {
			t.Errorf("%s: the index is %v, want 0", name, r.Fields["nullifier_index"])
		}
	}
	_, err := s.Accept(t.Context(), withdrawal(3, 2), nil, nil)
	if r := wantCode(t, err, refusal.NullifierReserved); r.Fields["nullifier_index"] != 1 {
		t.Errorf("a shared second note has index %v, want 1", r.Fields["nullifier_index"])
	}
	if _, err := s.Accept(t.Context(), withdrawal(3, 0), nil, nil); err != nil {
		t.Errorf("the refused submission left note 3 reserved: %v", err)
	}
	if _, err := s.Accept(t.Context(), withdrawal(4, 0), nil, nil); err != nil {
		t.Errorf("second submission without a second note: %v, want it accepted", err)
	}
	if rows := one[int](t, s, `SELECT count(*) FROM requests r FULL JOIN submissions s ON s.id = r.submission_id`); rows != 3 {
		t.Errorf("got %d rows, want only those of the 3 accepted submissions", rows)
	}

	_, err = s.Accept(t.Context(), withdrawal(5, 6), key, nil)
	_ = wantCode(t, err, refusal.IdempotencyKeyReused)
	c := claim(t, s, worker(t, s))[0]
	ok(t, s.Fail(t.Context(), c.Lease, refusal.New(refusal.RootNotFound, "RootNotFound").With("current_root", "aa")))
	replay, err := s.FindRepeated(t.Context(), withdrawal(1, 2), key)
	if err != nil || replay == nil || replay.ID != first.ID || replay.State != submission.Failed {
		t.Fatalf("the key returns %+v, error %v; want the failed submission", replay, err)
	}
	want := &refusal.Refusal{Code: refusal.RootNotFound, Message: "RootNotFound", Fields: map[string]any{"current_root": "aa"}}
	if diff := cmp.Diff(want, replay.Failure); diff != "" {
		t.Errorf("stored failure (-want +got):\n%s", diff)
	}
	if again := accept(t, s, withdrawal(1, 2), nil); again.ID == first.ID {
		t.Error("a failed submission is returned for its notes, want a new submission")
	}
}

// Whoever copies a proof from the chain and sends it with another key does not
// become the owner of the submission.
func TestKeyOfARepeatedContentIsNotStored(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	acceptedKey, otherKey := make([]byte, 32), append(make([]byte, 31), 1)
	first := accept(t, s, withdrawal(1, 2), acceptedKey)
	for name, tt := range map[string]struct {
		key          []byte
		wantRepeated bool
	}{
		"without a key":                  {nil, true},
		"with another key":               {otherKey, true},
		"with the other key again":       {otherKey, true},
		"with the key of its acceptance": {acceptedKey, false},
	} {
		got, err := s.FindRepeated(ctx, withdrawal(1, 2), tt.key)
		if err != nil || got == nil || got.ID != first.ID || got.Repeated != tt.wantRepeated {
			t.Errorf("%s: the repeat returns %+v, %v, want repeated %t", name, got, err, tt.wantRepeated)
		}
	}
	if n := one[int](t, s, `SELECT count(*) FROM idempotency_keys`); n != 1 {
		t.Errorf("%d keys are stored, want only the key of the acceptance", n)
	}
}

func TestAnExpiredIdempotencyKeyCanBeReused(t *testing.T) {
	t.Parallel()
	s := open(t)
	oldKey, deletedKey := make([]byte, 32), append(make([]byte, 31), 1)
	accept(t, s, withdrawal(1, 0), oldKey)
	exec(t, s, `UPDATE idempotency_keys SET created_at = now() - $1::interval`, idempotencyWindow+time.Hour)
	c := acceptLeased(t, s, withdrawal(2, 0))
	if got, err := s.FindRepeated(t.Context(), withdrawal(2, 0), deletedKey); err != nil || got == nil {
		t.Fatalf("the repeat returns %v, %v", got, err)
	}
	ok(t, s.Fail(t.Context(), c.Lease, refusal.New(refusal.RootNotFound, "RootNotFound")))
	exec(t, s, `DELETE FROM submissions WHERE id = $1`, c.ID)
	for name, key := range map[string][]byte{"older than its window": oldKey, "of a deleted submission": deletedKey} {
		sub := withdrawal(100, 0)
		if key[31] == 1 {
			sub = withdrawal(2, 0) // a key within its window accepts no other content
		}
		if got := accept(t, s, sub, key); got.ID != sub.ID {
			t.Errorf("a key %s returns submission %s, want the new one", name, got.ID)
		}
		if got, err := s.FindRepeated(t.Context(), sub, key); err != nil || got == nil || got.ID != sub.ID {
			t.Errorf("a key %s finds %v (%v), want the new submission", name, got, err)
		}
	}
}

func TestOneSpendAmongRacingPods(t *testing.T) {
	t.Parallel()
	s := open(t)
	const pods, rounds = 16, 10
	for round := range uint64(rounds) {
		a, b := 2*round+1, 2*round+2
		ids := make(chan uuid.UUID, pods)
		var wg sync.WaitGroup
		for i := range pods {
			wg.Go(func() {
				// The requests name both notes in either order, or one note:
				// sorted inserts prevent a deadlock.
				sub := []*submission.Submission{withdrawal(a, b), withdrawal(b, a), withdrawal(b, 0)}[i%3]
				got, err := s.Accept(context.Background(), sub, nil, nil)
				if r, ok := refusal.As(err); ok && r.Code == refusal.NullifierReserved {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				ids <- got.ID
			})
		}
		wg.Wait()
		close(ids)
		seen := map[uuid.UUID]bool{}
		for id := range ids {
			seen[id] = true
		}
		if rows := one[uint64](t, s, "SELECT count(*) FROM submissions"); len(seen) != 1 || rows != round+1 {
			t.Fatalf("round %d: %d submissions were accepted and %d rows exist, want 1 and %d", round, len(seen), rows, round+1)
		}
	}
	if rows := one[int](t, s, `SELECT count(*) FROM reservations v LEFT JOIN submissions s ON s.id = v.submission_id WHERE s.id IS NULL`); rows != 0 {
		t.Errorf("%d reservations belong to no submission", rows)
	}
}

func TestOneSubmissionForOneKeyAmongRacingRequests(t *testing.T) {
	t.Parallel()
	s := open(t)
	key := make([]byte, 32)
	var accepted, reused sync.Map
	var wg sync.WaitGroup
	for i := range uint64(12) {
		wg.Go(func() {
			got, err := s.Accept(context.Background(), withdrawal(1+i%3, 0), key, nil)
			if r, ok := refusal.As(err); ok && r.Code == refusal.IdempotencyKeyReused {
				reused.Store(i, true)
			} else if err != nil {
				t.Error(err)
			} else {
				accepted.Store(got.ID, true)
			}
		})
	}
	wg.Wait()
	count := func(m *sync.Map) (n int) { m.Range(func(any, any) bool { n++; return true }); return n }
	if rows := one[int](t, s, "SELECT count(*) FROM submissions"); rows != 1 || count(&accepted) != 1 || count(&reused) != 8 {
		t.Errorf("%d rows, %d submissions returned and %d requests refused; want 1, 1 and the 8 with other notes", rows, count(&accepted), count(&reused))
	}
}

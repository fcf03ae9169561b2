package store

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

// Leased submissions are counted but not claimed. Kinds of a later release are neither
// counted nor claimed.
func TestLeasedSubmissionsCountAsUndecided(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	exec(t, s, `ALTER TABLE submissions DROP CONSTRAINT submissions_kind_check`)
	free, leased, loan := acceptLeased(t, s, withdrawal(1, 0)), acceptLeased(t, s, withdrawal(2, 0)), acceptLeased(t, s, withdrawal(3, 0))
	for _, c := range []*txmgr.Job{free, leased, loan} {
		ok(t, s.Release(ctx, c.Lease, time.Hour, txmgr.HoldExpiry))
	}
	exec(t, s, `UPDATE submissions SET lease_owner = $2 WHERE id = $1`, leased.ID, worker(t, s))
	exec(t, s, `UPDATE submissions SET kind = 'loan' WHERE id = $1`, loan.ID)
	if n, err := s.CountUndecided(ctx); err != nil || n != 2 {
		t.Errorf("undecided submissions: %d (%v), want 2", n, err)
	}
	got, err := s.ClaimUndecided(ctx, worker(t, s), 10)
	if err != nil || !slices.Equal(ids(got), []uuid.UUID{free.ID}) {
		t.Errorf("claimed %v (%v), want the one without a lease", ids(got), err)
	}
}

// Probe claims all submissions that are started or held for a second endpoint, because
// they may have landed already, and one of the others.
func TestProbeClaimsStartedSubmissions(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	for n, reason := range []string{"", txmgr.HoldSecondEndpoint, txmgr.HoldSecondEndpoint, txmgr.HoldChain, txmgr.HoldChain} {
		ok(t, s.Release(ctx, acceptLeased(t, s, withdrawal(uint64(n)+1, 0)).Lease, 0, reason))
	}
	if got, err := s.Probe(ctx, worker(t, s), 10); err != nil || len(got) != 4 {
		t.Errorf("Probe claimed %d submissions (%v), want the 3 that may have landed and 1 other", len(got), err)
	}
}

// If Finalize locked the pin, all landings of the fleet would wait for each other.
func TestFinalizeDoesNotLockAnExistingPin(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	pin := func(n byte) submission.ProofAPin {
		return submission.ProofAPin{Encoding: "plain", Signature: attempt(n).Signature}
	}
	first, second := acceptLeased(t, s, withdrawal(1, 0)).Lease, acceptLeased(t, s, withdrawal(2, 0)).Lease
	complete(t, s, landing(first, 1))
	complete(t, s, landing(second, 2))
	finalize(t, s, landing(first, 1), pin(1))
	tx, err := s.Pool.Begin(ctx)
	ok(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	_, err = tx.Exec(ctx, `SELECT FROM proof_signs FOR UPDATE`)
	ok(t, err)
	soon, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if _, err := s.Finalize(soon, []submission.Landing{landing(second, 2)}, []submission.ProofAPin{pin(2)}); err != nil {
		t.Errorf("finalizing waits for a lock on the pin: %v", err)
	}
}

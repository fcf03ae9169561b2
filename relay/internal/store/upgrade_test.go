package store

import (
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/sweep"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

// completeBeforeSQL completes submissions like a relay that knows the schema up to
// version 7, in which the kind of a second leg is settlement.
const completeBeforeSQL = landingsSQL + `'processing' ORDER BY s.id FOR UPDATE OF s
), done AS (
	UPDATE submissions s SET state = 'completed', signature = l.signature, slot = l.slot, leaf_indices = l.leaves, root = l.root,
		rolled_back = false, tries = 0, hold_reason = NULL, due_at = now(), completed_at = now()
	FROM held l WHERE s.id = l.id
	RETURNING s.id, s.epoch, l.owner, s.pool, s.kind, s.content_hash, s.parent, l.phase, l.timeout
), phase_set AS (
	UPDATE swaps w SET phase = d.phase FROM done d WHERE w.id = d.id AND d.phase <> ''
), second_leg AS (
	INSERT INTO submissions (id, parent, pool, kind, state, content_hash, root_seq, due_at)
	SELECT gen_random_uuid(), id, pool, 'settlement', 'pending', content_hash, ` + lastRootSeq + `, now() FROM done WHERE kind = 'swap'
	ON CONFLICT (parent) WHERE parent IS NOT NULL DO NOTHING RETURNING id, parent
), funded AS (
	INSERT INTO swaps (id, phase, timeout_slot) SELECT b.id, 'funded', d.timeout FROM second_leg b JOIN done d ON d.id = b.parent
)
SELECT id, epoch, owner, ` + notifyDone + ` FROM done`

// During a rolling update a relay of the previous release inserts second legs with the old
// kind, in the same statement that completes transfers.
func TestThePreviousReleaseCompletesSubmissionsOnTheNewSchema(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	plain, err := s.Accept(ctx, transfer(1), nil, &w)
	ok(t, err)
	first, err := s.Accept(ctx, swap(2, 0), nil, &w)
	ok(t, err)
	landed := []submission.Landing{landing(plain.Lease(), 1), landing(first.Lease(), 2)}
	landed[1].Timeout = firstTimeout
	for range 2 { // the repetition of a commit whose answer was lost
		if _, err := s.writeOutcomes(ctx, "complete submissions", completeBeforeSQL, landed); err != nil {
			t.Fatalf("a relay of the previous release completes a transfer and a first leg: %v", err)
		}
	}
	for _, l := range landed {
		if got := get(t, s, l.ID).State; got != submission.Completed {
			t.Errorf("submission %s is %s, want completed", l.ID, got)
		}
	}
	got := claimSecondLegs(t, s, worker(t, s))
	if len(got) != 1 {
		t.Fatalf("%d second legs are claimed, want 1", len(got))
	}
	leg := submission.FromJob(got[0])
	if leg.Parent == nil || *leg.Parent != first.ID || leg.Swap.Phase != submission.PhaseFunded || leg.Swap.TimeoutSlot != firstTimeout {
		t.Errorf("the second leg is %+v with swap %+v, want the funded second leg of %s", leg, leg.Swap, first.ID)
	}
	// The second leg can be executed.
	ok(t, s.RecordAttempt(ctx, got[0].Lease, attemptFor(3, txmgr.PurposeExecute)))
	complete(t, s, secondLegLanding(got[0].Lease, 3, submission.PhaseExecuted))
}

// Builds after the last release created the new names in versions 4 and 5 of the schema, so
// that version 9 finds nothing to rename.
func TestADatabaseThatAlreadyHasTheNewNamesIsMigrated(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	_, id := funded(t, s, w, 1)
	ok(t, migrateTo(ctx, s.Pool, 8))
	exec(t, s, `ALTER TABLE sweeps RENAME COLUMN settled_at TO ended_at`)
	exec(t, s, `ALTER TABLE submissions DROP CONSTRAINT submissions_kind_check, DROP CONSTRAINT submissions_parent_check`)
	exec(t, s, `UPDATE submissions SET kind = 'swap_execution' WHERE kind = 'settlement'`)
	exec(t, s, `ALTER TABLE submissions
		ADD CONSTRAINT submissions_kind_check CHECK (kind IN ('transfer', 'withdrawal', 'swap', 'swap_execution')) NOT VALID,
		ADD CONSTRAINT submissions_parent_check CHECK (
			(kind = 'swap_execution') = (parent IS NOT NULL) AND (kind = 'swap_execution') = (root_seq = 9223372036854775807)) NOT VALID`)
	exec(t, s, `DROP INDEX submissions_settling`)
	exec(t, s, `CREATE INDEX submissions_settling ON submissions (due_at, job_id)
		WHERE kind = 'swap_execution' AND state IN ('pending', 'processing') AND lease_owner IS NULL`)
	ok(t, Migrate(ctx, s.Pool, slog.New(slog.DiscardHandler)))

	if got := claimSecondLegs(t, s, w); len(got) != 1 || got[0].ID != id {
		t.Errorf("claimed %+v, want the second leg %s", got, id)
	}
	session := lock(t, s, key(1))
	defer session.Close()
	ok(t, session.Record(ctx, sweepOf(1, key(1))))
	ok(t, session.Resolve(ctx, sweepOf(1, key(1)).Signature, sweep.EndLanded, 9))
	indexes := one[[]string](t, s, `SELECT array_agg(indexname::text ORDER BY indexname) FROM pg_indexes
		WHERE schemaname = current_schema() AND indexname IN ('submissions_settling', 'submissions_second_legs')`)
	if diff := cmp.Diff([]string{"submissions_second_legs"}, indexes); diff != "" {
		t.Errorf("indexes of second legs (-want +got):\n%s", diff)
	}
}

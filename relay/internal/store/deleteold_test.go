package store

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/internal/pgtest"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/refusal"
)

func TestRetentionDeletesOnlyOldFinishedSubmissions(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	const keep = 24 * time.Hour
	type row struct {
		state     submission.State
		finalized bool
		age       time.Duration
		stays     bool
	}
	rows := map[string]row{
		"pending since long ago":      {submission.Pending, false, 48 * time.Hour, true},
		"processing since long ago":   {submission.Processing, false, 48 * time.Hour, true},
		"completed, never final":      {submission.Completed, false, 48 * time.Hour, true},
		"finalized just now":          {submission.Completed, true, time.Hour, true},
		"failed just now":             {submission.Failed, false, time.Hour, true},
		"finalized long ago":          {submission.Completed, true, 48 * time.Hour, false},
		"failed long ago":             {submission.Failed, false, 48 * time.Hour, false},
		"failed earlier":              {submission.Failed, false, 72 * time.Hour, false},
		"finalized just too long ago": {submission.Completed, true, 25 * time.Hour, false},
	}
	leases := map[string]txmgr.Lease{}
	n := uint64(0)
	for name, r := range rows {
		n++
		state := r.state
		if state == submission.Pending {
			state = submission.Processing // so that no later claim returns it
		}
		var l txmgr.Lease
		if state == submission.Processing {
			l = stateOf(t, s, state, w, n)
			ok(t, s.RecordAttempt(ctx, l, attempt(byte(n))))
		} else {
			l = stateOf(t, s, submission.Processing, w, n)
			ok(t, s.RecordAttempt(ctx, l, attempt(byte(n))))
			if state == submission.Completed {
				complete(t, s, landing(l, byte(n)))
				if r.finalized {
					finalize(t, s, landing(l, byte(n)))
				}
			} else {
				ok(t, s.MarkAttemptsDead(ctx, l, []txmgr.DeadAttempt{{Signature: attempt(byte(n)).Signature}}))
				ok(t, s.Fail(ctx, l, refusal.New(refusal.RootNotFound, "stale")))
			}
		}
		exec(t, s, `UPDATE submissions SET created_at = now() - $2::interval, completed_at = completed_at - $2::interval WHERE id = $1`, l.ID, r.age)
		if r.state == submission.Pending {
			exec(t, s, `UPDATE submissions SET state = 'pending', lease_owner = NULL WHERE id = $1`, l.ID)
		}
		leases[name] = l
	}
	old := append(make([]byte, 31), 1)
	accept(t, s, withdrawal(500, 0), old)
	exec(t, s, `UPDATE idempotency_keys SET created_at = now() - interval '25 hours'`)
	accept(t, s, withdrawal(501, 0), make([]byte, 32))
	exec(t, s, `INSERT INTO spend_buckets VALUES (now() - interval '3 days', 0, true, 5)`)
	reserved := one[int](t, s, `SELECT count(*) FROM reservations`)

	for i, want := range []Deleted{{Submissions: 4, IdempotencyKeys: 1, SpendBuckets: 1}, {}} { // the second run finds nothing
		got, err := s.DeleteOld(ctx, keep)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("rows deleted by run %d (%v) (-want +got):\n%s", i+1, err, diff)
		}
	}
	for name, r := range rows {
		id := leases[name].ID
		parts := one[int](t, s, `SELECT (SELECT count(*) FROM submissions WHERE id = $1) + (SELECT count(*) FROM requests WHERE submission_id = $1)
			+ (SELECT count(*) FROM attempts WHERE submission_id = $1)`, id)
		if want := map[bool]int{true: 3, false: 0}[r.stays]; parts != want {
			t.Errorf("%s: %d of the 3 rows are left, want %d", name, parts, want)
		}
	}
	if got := one[int](t, s, `SELECT count(*) FROM reservations`); got != reserved {
		t.Errorf("%d reservations are left, want %d as before", got, reserved)
	}
	// The notes of deleted submissions that landed stay reserved.
	for name, l := range leases {
		if r := rows[name]; r.finalized && !r.stays {
			note := one[[]byte](t, s, `SELECT nullifier FROM reservations WHERE submission_id = $1`, l.ID)
			_, err := s.Accept(ctx, withdrawal(uint64(note[31]), 0), nil, nil)
			_ = wantCode(t, err, refusal.NullifierReserved)
		}
	}
}

// relationSizes returns the bytes of each table and index, by name.
func relationSizes(t testing.TB, s *Store) map[string]int64 {
	t.Helper()
	type size struct {
		Name  string
		Bytes int64
	}
	got, err := collect(t.Context(), s, func(row pgx.CollectableRow) (v size, err error) { err = row.Scan(&v.Name, &v.Bytes); return v, err },
		`SELECT relname, pg_relation_size(oid) FROM pg_class WHERE relnamespace = current_schema()::regnamespace
			AND relkind IN ('r', 'i') AND relname ~ '^(submissions|requests|attempts|workers|idempotency_keys|spend_buckets)'`)
	ok(t, err)
	out := map[string]int64{}
	for _, v := range got {
		out[v.Name] = v.Bytes
	}
	return out
}

// runSubmissions carries a batch of submissions from acceptance to finality, as a
// process does. Every eighth submission fails instead.
func runSubmissions(ctx context.Context, s *Store, w uuid.UUID, first, count uint64) error {
	var landings []submission.Landing
	for n := first; n < first+count; n++ {
		key := note(n)
		sub, err := s.Accept(ctx, withdrawal(2*n, 2*n+1), key[:], &w)
		if err != nil {
			return err
		}
		l := sub.Lease()
		a := attempt(0)
		a.Signature = [64]byte(append(key[:], key[:]...))
		a.Raw = make([]byte, 1000)
		if err := s.RecordAttempt(ctx, l, a); err != nil {
			return err
		}
		if n%8 == 0 {
			if err := s.MarkAttemptsDead(ctx, l, []txmgr.DeadAttempt{{Signature: a.Signature}}); err != nil {
				return err
			}
			if err := s.Fail(ctx, l, refusal.New(refusal.RootNotFound, "stale")); err != nil {
				return err
			}
			continue
		}
		landings = append(landings, submission.Landing{Lease: l, Outcome: submission.Outcome{Signature: a.Signature, Slot: n, LeafIndices: []uint64{2 * n, 2*n + 1}}})
	}
	for _, write := range []func() ([]txmgr.Lease, error){
		func() ([]txmgr.Lease, error) { return s.Complete(ctx, landings) },
		func() ([]txmgr.Lease, error) { return s.Finalize(ctx, landings, nil) },
	} {
		if err := oneLease(write()); err != nil {
			return err
		}
	}
	return nil
}

// Under load and retention, tables and indexes stop growing because deleted space
// is reused. Only the reservations grow.
func TestTablesStopGrowingUnderRetention(t *testing.T) {
	if testing.Short() {
		t.Skip("fills a Postgres server of its own")
	}
	t.Parallel()
	// On a shared server, transactions of other tests would keep vacuum from freeing rows.
	s := openOn(t, pgtest.Server(t).URL("postgres"))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	const clients, batch, rounds = 6, 100, 18
	var next uint64
	round := func() {
		var wg sync.WaitGroup
		w := worker(t, s)
		for range clients {
			first := next
			next += batch
			wg.Go(func() {
				if err := runSubmissions(ctx, s, w, first, batch); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Go(func() { // retention and reaping during the load
			if _, err := s.DeleteOld(ctx, 0); err != nil {
				t.Error(err)
			}
			if _, err := s.FreeDeadProcesses(ctx); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		exec(t, s, `UPDATE idempotency_keys SET created_at = created_at - interval '25 hours'`)
		for _, table := range []string{"submissions", "requests", "attempts", "idempotency_keys", "workers", "spend_buckets"} {
			exec(t, s, `VACUUM `+table) // as autovacuum does
		}
	}
	for range rounds / 3 {
		round()
	}
	sizesBefore := relationSizes(t, s)
	for range 2 * rounds / 3 {
		round()
	}
	for name, now := range relationSizes(t, s) {
		// A table keeps room for the largest number of dead rows it had at once, some pages
		// more on a slow machine. If space were never reused, 7200 submissions would add more.
		if limit := sizesBefore[name] + sizesBefore[name]/2 + 16*8192; now > limit {
			t.Errorf("%s grew from %d to %d bytes over %d submissions, want at most %d", name, sizesBefore[name], now, next, limit)
		}
	}
	if _, err := s.DeleteOld(ctx, 0); err != nil {
		t.Fatal(err)
	}
	left := one[int](t, s, `SELECT (SELECT count(*) FROM submissions) + (SELECT count(*) FROM requests) + (SELECT count(*) FROM attempts)`)
	reserved := one[uint64](t, s, `SELECT count(*) FROM reservations`)
	// Every eighth submission failed.
	if want := 2 * (next - next/8); left != 0 || reserved != want {
		t.Errorf("%d rows and %d reservations are left, want none and %d", left, reserved, want)
	}
	if leased := one[int64](t, s, `SELECT count(*) FROM submissions WHERE lease_owner IS NOT NULL`); leased != 0 {
		t.Errorf("%d rows are still leased", leased)
	}
}

// No index has a column that heartbeats, tries and holds change, so their updates are heap-only.
func TestHeartbeatsAndAttemptsUpdateNoIndex(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	l := stateOf(t, s, submission.Processing, w, 1)
	exec(t, s, `UPDATE submissions SET hold_reason = 'fee_payer_empty', tries = 3`)
	tx := begin(t, s)
	counts := func(table string) (updates, hot int) {
		err := tx.QueryRow(ctx, `SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables
			WHERE schemaname = current_schema() AND relname = $1`, table).Scan(&updates, &hot)
		ok(t, err)
		return updates, hot
	}
	want := map[string]int{"submissions": 1, "workers": 10, "attempts": 1, "spend_buckets": 0}
	updatesBefore, hotBefore := map[string]int{}, map[string]int{} // of earlier transactions on this connection
	for table := range want {
		updatesBefore[table], hotBefore[table] = counts(table)
	}
	a := attempt(1)
	if _, err := tx.Exec(ctx, recordSQL, recordArgs([]recordCall{{lease: l, attempt: a}})...); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if _, err := tx.Exec(ctx, heartbeatSQL, w, time.Minute, ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tx.Exec(ctx, markDeadSQL, l.ID, l.Epoch, l.Owner, [][]byte{a.Signature[:]}, []int64{0}); err != nil {
		t.Fatal(err)
	}
	for table, want := range want {
		updates, hot := counts(table)
		updates, hot = updates-updatesBefore[table], hot-hotBefore[table]
		if hot != updates || updates < want {
			t.Errorf("%s: %d updates, %d of them heap-only; want at least %d, all heap-only", table, updates, hot, want)
		}
	}
}

package store

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/tern/v2/migrate"

	"github.com/relaypool/relaypool/relay/internal/pgtest"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// open returns a migrated store in its own schema.
func open(t testing.TB) *Store {
	t.Helper()
	pool := pgtest.Pool(t)
	if err := Migrate(t.Context(), pool, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	s, err := New(pool)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// openOn returns a migrated store in the test's own database.
func openOn(t testing.TB, url string) *Store {
	t.Helper()
	pool, err := Open(t.Context(), url, TLSFiles{}, 20)
	ok(t, err)
	t.Cleanup(pool.Close)
	ok(t, Migrate(t.Context(), pool, slog.New(slog.DiscardHandler)))
	s, err := New(pool)
	ok(t, err)
	return s
}

// note is a field element for use as a nullifier.
func note(n uint64) (b [32]byte) {
	binary.BigEndian.PutUint64(b[24:], n)
	return b
}

// testPool is the pool of the tests' submissions.
var testPool = solana.PublicKey{9}

// withdrawal spends two notes; 0 is no note.
func withdrawal(n0, n1 uint64) *submission.Submission {
	call := &shieldpool.Call{
		Proof: make([]byte, shieldpool.ProofLength), Notes: [][]byte{{1, 2}, {3}},
		Inputs:      &shieldpool.PublicInputs{PublicAmount: -100_000_000, Nullifiers: [2][32]byte{note(n0), note(n1)}},
		Destination: shieldpool.Destination{Recipient: solana.PublicKey{1, 2, 3}},
	}
	return &submission.Submission{ID: uuid.New(), Pool: testPool, Kind: call.Kind(), State: submission.Pending, Call: call, ProofAEncoding: "plain"}
}

// transfer spends one note.
func transfer(n uint64) *submission.Submission {
	sub := withdrawal(n, 0)
	sub.Call.Inputs.PublicAmount, sub.Call.Recipient = 0, solana.PublicKey{}
	sub.Kind = sub.Call.Kind()
	return sub
}

func accept(t testing.TB, s *Store, sub *submission.Submission, key []byte) *submission.Submission {
	t.Helper()
	got, err := s.Accept(t.Context(), sub, key, nil)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// worker registers a process whose heartbeat expires after a minute.
func worker(t testing.TB, s *Store) uuid.UUID {
	t.Helper()
	id := uuid.New()
	heartbeat(t, s, id, time.Minute)
	return id
}

func heartbeat(t testing.TB, s *Store, id uuid.UUID, lease time.Duration) (lapsed bool) {
	t.Helper()
	lapsed, err := s.Heartbeat(t.Context(), txmgr.Worker{ID: id}, lease)
	if err != nil {
		t.Fatal(err)
	}
	return lapsed
}

// claim claims all submissions that are due.
func claim(t testing.TB, s *Store, worker uuid.UUID) []*txmgr.Job {
	t.Helper()
	claimed, err := s.Claim(t.Context(), worker, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return claimed
}

// acceptLeased accepts a submission and claims it.
func acceptLeased(t testing.TB, s *Store, sub *submission.Submission) *txmgr.Job {
	t.Helper()
	w := worker(t, s)
	got, err := s.Accept(t.Context(), sub, nil, &w)
	if err != nil {
		t.Fatal(err)
	}
	return got.Job()
}

// expireWorker makes a worker's heartbeat expire.
func expireWorker(t testing.TB, s *Store, worker uuid.UUID) {
	t.Helper()
	exec(t, s, `UPDATE workers SET until = now() - interval '1 ms' WHERE id = $1`, worker)
}

func exec(t testing.TB, s *Store, sql string, args ...any) {
	t.Helper()
	if _, err := s.Pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// one reads a single value.
func one[T any](t testing.TB, s *Store, sql string, args ...any) (v T) {
	t.Helper()
	if err := s.Pool.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func get(t testing.TB, s *Store, id uuid.UUID) *submission.Submission {
	t.Helper()
	sub, err := s.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return sub
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func attempt(n byte) txmgr.Attempt {
	return txmgr.Attempt{
		Signature: solana.Signature{n}, Raw: []byte{n, n}, FeePayer: solana.PublicKey{n}, Blockhash: solana.Hash{n},
		BlockhashSlot: 10, LastValidBlockHeight: 160, Purpose: txmgr.PurposeTransact, Cost: 1000 + uint64(n), Fee: 5,
	}
}

func landing(l txmgr.Lease, n byte) submission.Landing {
	return submission.Landing{Lease: l, Outcome: submission.Outcome{Signature: solana.Signature{n}, Slot: 70 + uint64(n)}}
}

// complete records the landing of a claimed submission.
func complete(t testing.TB, s *Store, l submission.Landing) {
	t.Helper()
	lost, err := s.Complete(t.Context(), []submission.Landing{l})
	if err != nil || len(lost) > 0 {
		t.Fatalf("complete: %v, lost %v", err, lost)
	}
}

func finalize(t testing.TB, s *Store, l submission.Landing, pins ...submission.ProofAPin) {
	t.Helper()
	lost, err := s.Finalize(t.Context(), []submission.Landing{l}, pins)
	if err != nil || len(lost) > 0 {
		t.Fatalf("finalize: %v, lost %v", err, lost)
	}
}

func wantCode(t testing.TB, err error, code refusal.Code) *refusal.Refusal {
	t.Helper()
	r, ok := refusal.As(err)
	if !ok || r.Code != code {
		t.Fatalf("error is %v, want a refusal with code %s", err, code)
	}
	return r
}

func TestConcurrentMigrationsSucceed(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := Migrate(t.Context(), pool, slog.New(slog.DiscardHandler)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestOnlyTransientErrorsAreUnavailable(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err  error
		want bool
	}{
		"deadlock":             {&pgconn.PgError{Code: "40P01"}, true},
		"server shutdown":      {&pgconn.PgError{Code: "57P01"}, true},
		"demoted primary":      {&pgconn.PgError{Code: "25006"}, true},
		"full disk":            {&pgconn.PgError{Code: "53100"}, true},
		"statement timeout":    {context.DeadlineExceeded, true},
		"broken connection":    {io.ErrUnexpectedEOF, true},
		"violated constraint":  {&pgconn.PgError{Code: "23514"}, false},
		"cancelled by caller":  {context.Canceled, false},
		"damaged stored value": {errors.New("stored submission is damaged"), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, ok := refusal.As(unavailable(fmt.Errorf("read: %w", test.err)))
			if got := ok && r.Code == refusal.DatabaseUnavailable; got != test.want {
				t.Errorf("refused with database_unavailable: %v, want %v", got, test.want)
			}
		})
	}
}

func TestAnUnreachableDatabaseIsARefusalWithRetry(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t)
	ctx := t.Context()
	s := openOn(t, server.URL("postgres"))
	if err := server.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	id := uuid.New()
	lease := txmgr.Lease{ID: id, Epoch: 1}
	calls := map[string]func() error{
		"accept":         func() error { _, err := s.Accept(ctx, withdrawal(1, 0), nil, nil); return err },
		"find repeated":  func() error { _, err := s.FindRepeated(ctx, withdrawal(1, 0), make([]byte, 32)); return err },
		"get":            func() error { _, err := s.Get(ctx, id); return err },
		"backlog":        func() error { _, err := s.Backlog(ctx); return err },
		"count queue":    func() error { _, err := s.QueueByRoot(ctx, testPool, 0); return err },
		"heartbeat":      func() error { _, err := s.Heartbeat(ctx, txmgr.Worker{ID: id}, time.Second); return err },
		"free dead":      func() error { _, err := s.FreeDeadProcesses(ctx); return err },
		"release all":    func() error { _, err := s.ReleaseAll(ctx, id); return err },
		"list leases":    func() error { _, err := s.Leases(ctx, id); return err },
		"notify due":     func() error { return s.NotifyDue(ctx) },
		"claim":          func() error { _, err := s.Claim(ctx, id, 1); return err },
		"release":        func() error { return s.Release(ctx, lease, 0, "") },
		"record attempt": func() error { return s.RecordAttempt(ctx, lease, attempt(1)) },
		"mark dead":      func() error { return s.MarkAttemptsDead(ctx, lease, []txmgr.DeadAttempt{{}}) },
		"complete":       func() error { _, err := s.Complete(ctx, []submission.Landing{landing(lease, 1)}); return err },
		"fail":           func() error { return s.Fail(ctx, lease, refusal.New(refusal.RootNotFound, "x")) },
		"listen":         func() error { return s.Listen(ctx, submission.Notifications{}) },
	}
	for name, call := range calls {
		if r, ok := refusal.As(call()); !ok || r.Code != refusal.DatabaseUnavailable || r.RetryAfter <= 0 {
			t.Errorf("%s returns %v, want database_unavailable with RetryAfter", name, r)
		}
	}
	if _, err := Open(ctx, "postgres://user:canary-secret@[", TLSFiles{}, 2); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("an invalid URL returns error %v, want one without the password", err)
	}
}

func sorted[T cmp.Ordered](in []T) []T {
	slices.Sort(in)
	return in
}

// migrateTo migrates the schema to a version, up or down.
func migrateTo(ctx context.Context, pool *pgxpool.Pool, version int32) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	m, err := migrate.NewMigrator(ctx, conn.Conn(), "relaypool_version")
	if err != nil {
		return err
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	if err := m.LoadMigrations(files); err != nil {
		return err
	}
	return m.MigrateTo(ctx, version)
}

// Package store keeps the fleet's shared state in Postgres: submissions with their leases,
// attempts and reservations, spending, viewing keys and commitments. It also runs the
// maintenance jobs, each in one process at a time.
//
// Each change of a submission is one statement, or one pipeline that commits as a whole: it
// names the lease and the state that it requires, and writes nothing without them.
package store

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/tern/v2/migrate"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/refusal"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrationLock is the advisory lock that lets one process of the fleet
// migrate at a time: "relaypl" in ASCII.
const migrationLock = 0x72656c6179706c

// Store is the fleet's database. It is safe for concurrent use.
type Store struct {
	Pool *pgxpool.Pool
	// Heartbeats is a separate pool with one connection: a heartbeat that waited in Pool
	// behind clients' requests would let the leases expire. Nil uses Pool.
	Heartbeats *pgxpool.Pool
}

var _ submission.Store = (*Store)(nil)

// New wraps a pool.
func New(pool *pgxpool.Pool) (*Store, error) {
	if pool == nil {
		return nil, errors.New("store needs a connection pool")
	}
	return &Store{Pool: pool}, nil
}

// Open connects to url with at most maxConns connections. The URL has a
// password, so no error repeats it.
func Open(ctx context.Context, url string, maxConns int32) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("the database URL is not valid: expected postgres://user:password@host:port/name or a libpq key=value string")
	}
	if maxConns > 0 {
		cfg.MaxConns = maxConns
	}
	cfg.ConnConfig.RuntimeParams["application_name"] = "relaypool"
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	return pool, nil
}

// Migrate brings the schema up to date. One process at a time does it; the others wait and
// then find nothing to do.
func Migrate(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("connect to migrate: %w", err)
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock(hashtextextended(current_schema(), $1))", int64(migrationLock)); err != nil {
		return fmt.Errorf("acquire the migration lock: %w", err)
	}
	defer func() {
		// A connection that fails here is closed by the pool, which frees the lock as well.
		_, _ = conn.Exec(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock(hashtextextended(current_schema(), $1))", int64(migrationLock))
	}()
	m, err := migrate.NewMigrator(ctx, conn.Conn(), "relaypool_version")
	if err != nil {
		return fmt.Errorf("prepare migrations: %w", err)
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return fmt.Errorf("read embedded migrations: %w", err)
	}
	if err := m.LoadMigrations(files); err != nil {
		return fmt.Errorf("read embedded migrations: %w", err)
	}
	m.OnStart = func(version int32, name, direction, _ string) {
		log.InfoContext(ctx, "migration applied", "version", version, "name", name, "direction", direction)
	}
	version, err := m.GetCurrentVersion(ctx)
	if err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	if int(version) > len(m.Migrations) {
		// A newer release has migrated the schema during a rolling update. The changelog of
		// that release names what this release cannot do with the new schema. The newer
		// relays do it.
		log.InfoContext(ctx, "schema is newer than this release", "schema", version, "known", len(m.Migrations))
		return nil
	}
	if err := m.Migrate(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// inTx runs f in a transaction, committed when f returns nil.
func (s *Store) inTx(ctx context.Context, f func(pgx.Tx) error) error {
	return unavailable(pgx.BeginFunc(ctx, s.Pool, f))
}

// unavailable converts an error of the connection, as opposed to the statement, into the
// refusal database_unavailable; other errors pass unchanged.
func unavailable(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := refusal.As(err); ok || errors.Is(err, context.Canceled) || errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) && !transientState(pg.Code) {
		return err
	}
	if !errors.As(err, &pg) && !connectionError(err) {
		return err
	}
	return refusal.New(refusal.DatabaseUnavailable,
		"the relay's database does not answer: send the same request again, which is safe because nothing is accepted twice").
		Retry(retryAfter).Because(err)
}

// Unreachable reports whether the database is unreachable, so that a retry may help.
func Unreachable(err error) bool {
	r, ok := refusal.As(unavailable(err))
	return ok && r.Code == refusal.DatabaseUnavailable
}

// Unmigrated reports whether a statement failed because a table or column is missing, as in
// a database that relay migrate has not brought up to date.
func Unmigrated(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "42P01" || pg.Code == "42703")
}

// transientState reports whether a retry may help: classes 08 connection exception, 40
// transaction rollback (a deadlock, or a conflict that can be retried), 53 insufficient
// resources, 57 operator intervention (shutdown, crash, starting up), and 25006 read-only
// (a demoted primary).
func transientState(code string) bool {
	return len(code) == 5 && (slices.Contains([]string{"08", "40", "53", "57"}, code[:2]) || code == "25006")
}

func connectionError(err error) bool {
	var connect *pgconn.ConnectError
	return errors.As(err, &connect) || pgconn.Timeout(err) || pgconn.SafeToRetry(err) ||
		errors.Is(err, context.DeadlineExceeded) || isNetworkError(err)
}

// WarnUnreplicated warns when a commit does not survive the loss of the primary: accepted
// submissions could then be lost with it.
func WarnUnreplicated(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) error {
	var names, commit string
	err := pool.QueryRow(ctx, `SELECT current_setting('synchronous_standby_names'), current_setting('synchronous_commit')`).Scan(&names, &commit)
	if err != nil {
		return fmt.Errorf("read replication settings: %w", err)
	}
	if commit == "off" || names == "" {
		log.WarnContext(ctx, "database does not replicate synchronously: accepted submissions survive a crash of the relay, but not the loss of the primary", "synchronous_commit", commit)
	}
	return nil
}

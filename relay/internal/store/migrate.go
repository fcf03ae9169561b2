package store

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/tern/v2/migrate"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrationLock is the advisory lock that lets one process of the fleet
// migrate at a time: "relaypl" in ASCII.
const migrationLock = 0x72656c6179706c

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
		// that release names what this release cannot do with the new schema; until the end
		// of the update only the newer relays do that work.
		log.InfoContext(ctx, "schema is newer than this release", "schema", version, "known", len(m.Migrations))
		return nil
	}
	if err := m.Migrate(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

package store

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"
)

// WarnUnreplicated warns if commits do not survive the loss of the primary server: accepted
// submissions could then be lost together with that server.
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

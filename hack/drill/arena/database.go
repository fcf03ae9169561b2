package arena

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/hack/drill/timeline"
	"github.com/relaypool/relaypool/hack/sandbox"
)

const (
	databaseName = "relaypool"
	// serverTimeout bounds a stop and a start of the server.
	serverTimeout = 30 * time.Second
)

// These are the drill's own statements for the relays' database; package gather has the others.
const (
	cutConnectionsSQL = `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`

	countsSQL = `SELECT count(*), count(*) FILTER (WHERE state = 'completed'), count(*) FILTER (WHERE state = 'failed'),
		(SELECT count(*) FROM swaps WHERE phase NOT IN ('executed', 'refunded') AND NOT ended),
		(SELECT count(*) FROM swaps WHERE phase = 'executed'), (SELECT count(*) FROM swaps WHERE phase = 'refunded')
		FROM submissions WHERE parent IS NULL`
)

// database is the relays' Postgres, which events stop, crash and start. It loses no
// committed data, so any loss after a crash is the relay's fault.
type database struct {
	box *sandbox.Sandbox

	// mu serialises the server's methods.
	mu sync.Mutex
	up bool
	// lastStart is the time of the server's last start.
	lastStart time.Time
}

func (d *database) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.up = false
	return d.box.Postgres.Stop(ctx)
}

// crash ends the server at once, without a checkpoint: only the committed data in
// its write-ahead log remains.
func (d *database) crash(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.up = false
	if pid := d.box.Postgres.Pid(); pid > 0 {
		// SIGQUIT is Postgres' immediate shutdown.
		if err := syscall.Kill(pid, syscall.SIGQUIT); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("crash Postgres: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	// The server is already ending; stop waits for it. Its error is expected, because
	// the server did not shut down cleanly.
	_ = d.box.Postgres.Stop(ctx)
	return nil
}

// start starts the server again. After a crash the server recovers from its log.
func (d *database) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.up {
		return nil
	}
	if err := d.box.Postgres.Restart(ctx); err != nil {
		return err
	}
	d.up, d.lastStart = true, time.Now()
	return nil
}

// wasDownSince reports whether an event kept the server down at some time since the moment.
func (d *database) wasDownSince(moment time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.up || d.lastStart.After(moment)
}

// withConnection calls f with a connection of the drill's own.
func (d *database) withConnection(ctx context.Context, f func(*pgx.Conn) error) error {
	return d.box.WithDatabase(ctx, databaseName, f)
}

// cutConnections ends every connection but its own. While the server is down or starting,
// there is nothing to cut.
func (d *database) cutConnections(ctx context.Context) (cut int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.up {
		return 0, nil
	}
	err = d.withConnection(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, cutConnectionsSQL).Scan(&cut)
	})
	return cut, err
}

// counts sets a sample's numbers of all submissions, of completed and failed ones, and of
// swaps by phase.
func (d *database) counts(ctx context.Context, s *timeline.Sample) error {
	return d.withConnection(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, countsSQL).Scan(&s.Accepted, &s.Completed, &s.Failed, &s.Between, &s.Executed, &s.Refunded)
	})
}

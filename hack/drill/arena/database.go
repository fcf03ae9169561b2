package arena

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/hack/postgres"
)

const (
	databaseName = "relaypool"
	// stopWithin bounds a stop and a start of the server.
	stopWithin = 30 * time.Second
)

// database is the relays' Postgres, which events stop, crash and start.
type database struct {
	server *postgres.Server
	url    string

	// mu orders the server's methods, which may not run at once.
	mu sync.Mutex
	up bool
	// back is when it last came back.
	back time.Time
}

// startDatabase starts a server that loses nothing it has committed: the drill
// crashes it, and what a crash loses must be the relay's fault alone.
func startDatabase(ctx context.Context, folder string, log io.Writer) (*database, error) {
	server, err := postgres.Start(ctx, postgres.Options{DataDir: folder, Log: log})
	if err != nil {
		return nil, err
	}
	d := &database{server: server, url: server.URL(databaseName), up: true}
	if err := d.create(ctx); err != nil {
		return nil, errors.Join(err, server.Stop(context.WithoutCancel(ctx)))
	}
	return d, nil
}

// create makes an empty database: an earlier drill that failed may have left one.
func (d *database) create(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, d.server.URL("postgres"))
	if err != nil {
		return fmt.Errorf("make an empty database: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, "DROP DATABASE IF EXISTS "+databaseName); err != nil {
		return fmt.Errorf("make an empty database: %w", err)
	}
	return d.server.CreateDatabase(ctx, databaseName)
}

// stop shuts the server down in order.
func (d *database) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopWithin)
	defer cancel()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.up = false
	return d.server.Stop(ctx)
}

// crash ends the server at once, without a checkpoint: what it had committed is
// in its write-ahead log, and nothing else is.
func (d *database) crash(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.up = false
	if pid := d.server.Pid(); pid > 0 {
		// SIGQUIT is Postgres' immediate shutdown.
		if err := syscall.Kill(pid, syscall.SIGQUIT); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("crash Postgres: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, stopWithin)
	defer cancel()
	// It is ending already; this waits for it. That it ended otherwise than
	// asked is what was wanted.
	_ = d.server.Stop(ctx)
	return nil
}

// start brings the server back, which recovers from its log when it has to.
func (d *database) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopWithin)
	defer cancel()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.up {
		return nil
	}
	if err := d.server.Restart(ctx); err != nil {
		return err
	}
	d.up, d.back = true, time.Now()
	return nil
}

// awaySince reports whether an event kept it down at some time from then on.
func (d *database) awaySince(then time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.up || d.back.After(then)
}

// with lends a connection of the drill's own.
func (d *database) with(ctx context.Context, f func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, d.url)
	if err != nil {
		return fmt.Errorf("connect to the drill's database: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return f(conn)
}

package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/internal/sweep"
)

const (
	// sweepLockPrefix is the prefix of the advisory locks' keys, which end with an account.
	sweepLockPrefix = "relaypool sweep "
	// sessionIdle is the idle time after which the server ends a session. Without this limit,
	// the locks of a process whose machine is gone would last for hours.
	sessionIdle = time.Minute
	// keepaliveInterval is the time between the queries by which a session avoids being idle.
	keepaliveInterval = 10 * time.Second
)

// Lock implements sweep.Store. The locks belong to the session and end with its connection. The
// sweep writes only through this connection, so it cannot write without the locks.
func (w *Sweeps) Lock(ctx context.Context, accounts []solana.PublicKey) (sweep.Session, error) {
	pooled, err := w.store.Pool.Acquire(ctx)
	if err != nil {
		return nil, unavailable(fmt.Errorf("connect to lock keys: %w", err))
	}
	s := &session{conn: pooled.Hijack(), stopped: make(chan struct{})}
	if err := s.lock(ctx, accounts); err != nil {
		_ = s.conn.Close(context.WithoutCancel(ctx)) // the first error matters more
		return nil, err
	}
	s.keepalive.Go(s.keepAlive)
	return s, nil
}

// session is one connection. It is not for concurrent use.
type session struct {
	mu        sync.Mutex
	conn      *pgx.Conn
	stopped   chan struct{}
	keepalive sync.WaitGroup
}

// lock acquires the accounts' locks, in the order of the accounts.
func (s *session) lock(ctx context.Context, accounts []solana.PublicKey) error {
	if _, err := s.conn.Exec(ctx, fmt.Sprintf("SET idle_session_timeout = '%dms'", sessionIdle.Milliseconds())); err != nil {
		return unavailable(fmt.Errorf("prepare to lock keys: %w", err))
	}
	sorted := slices.SortedFunc(slices.Values(accounts), func(a, b solana.PublicKey) int { return cmp.Compare(a.String(), b.String()) })
	for _, account := range slices.Compact(sorted) {
		var acquired bool
		err := s.conn.QueryRow(ctx, "SELECT pg_try_advisory_lock(hashtextextended(current_schema() || $1, 0))", sweepLockPrefix+account.String()).Scan(&acquired)
		if err != nil {
			return unavailable(fmt.Errorf("lock keys: %w", err))
		}
		if !acquired {
			return sweep.ErrLocked
		}
	}
	return nil
}

// keepAlive queries the server until the session stops, so that the server does not end the
// session as idle.
func (s *session) keepAlive() {
	tick := time.NewTicker(keepaliveInterval)
	defer tick.Stop()
	for {
		select {
		case <-s.stopped:
			return
		case <-tick.C:
		}
		ctx, cancel := context.WithTimeout(context.Background(), keepaliveInterval)
		_ = s.exec(ctx, "keep the keys locked", "SELECT 1") // if the query fails, the next write fails too
		cancel()
	}
}

// Close implements sweep.Session. If unlocking fails, the server releases the locks when it
// notices the end of the connection, a moment after Close returns.
func (s *session) Close() {
	close(s.stopped)
	s.keepalive.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), keepaliveInterval)
	defer cancel()
	_ = s.exec(ctx, "unlock the keys", "SELECT pg_advisory_unlock_all()")
	_ = s.conn.Close(ctx) // all writes are committed
}

func (s *session) exec(ctx context.Context, what, sql string, args ...any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.conn.Exec(ctx, sql, args...); err != nil {
		return unavailable(fmt.Errorf("%s: %w", what, err))
	}
	return nil
}

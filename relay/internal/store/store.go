// Package store keeps the fleet's shared state in Postgres: submissions with their leases,
// attempts and reservations, spending, viewing keys and commitments. It also runs the
// maintenance jobs, each in one process at a time.
//
// Each change of a submission is one statement, or one pipeline that commits as a whole. Its
// conditions name the lease and the state that the row must have. If the row has another lease or
// state, nothing is written.
package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relaypool/relaypool/relay/internal/submission"
)

// Store is the fleet's database. It is safe for concurrent use.
type Store struct {
	Pool *pgxpool.Pool
	// Heartbeats is a separate connection pool with one connection: a heartbeat that waited in
	// Pool behind clients' requests would let the leases expire. Nil uses Pool.
	Heartbeats *pgxpool.Pool

	// Concurrent calls share statements and commits.
	accepts  batcher[acceptCall, *acceptedRow]
	repeats  batcher[repeatCall, repeatRows]
	attempts batcher[recordCall, recordResult]
	reads    batcher[uuid.UUID, readResult]
}

var _ submission.Store = (*Store)(nil)

// New makes a Store that uses a connection pool.
func New(pool *pgxpool.Pool) (*Store, error) {
	if pool == nil {
		return nil, errors.New("store needs a connection pool")
	}
	s := &Store{Pool: pool}
	s.accepts.run, s.repeats.run, s.attempts.run, s.reads.run = s.insertTogether, s.readKeysAndReservations, s.recordTogether, s.readTogether
	return s, nil
}

func poolConfig(url string, maxConns int32) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("the database URL is not valid: expected postgres://user:password@host:port/name or a libpq key=value string")
	}
	if maxConns > 0 {
		cfg.MaxConns = maxConns
	}
	cfg.ConnConfig.RuntimeParams["application_name"] = "relaypool"
	return cfg, nil
}

func newPool(ctx context.Context, cfg *pgxpool.Config) (*pgxpool.Pool, error) {
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	return pool, nil
}

// inTx runs f in a transaction, and commits it if f returns nil.
func (s *Store) inTx(ctx context.Context, f func(pgx.Tx) error) error {
	return unavailable(pgx.BeginFunc(ctx, s.Pool, f))
}

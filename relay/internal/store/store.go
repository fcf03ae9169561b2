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
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relaypool/relaypool/relay/batch"
	"github.com/relaypool/relaypool/relay/internal/submission"
)

// Store is the fleet's database. It is safe for concurrent use.
type Store struct {
	Pool *pgxpool.Pool
	// Heartbeats is a separate connection pool with one connection: a heartbeat that waited in
	// Pool behind clients' requests would let the leases expire. Nil uses Pool.
	Heartbeats *pgxpool.Pool

	// readOnceWait is defaultReadOnceWait, except in tests.
	readOnceWait time.Duration
	// alone is set while the last heartbeat of this process found no other live one.
	alone atomic.Bool

	// Concurrent calls share statements and commits.
	accepts  *batch.Queue[acceptCall, *acceptedRow]
	repeats  *batch.Queue[repeatCall, repeatRows]
	attempts *batch.Queue[recordCall, recordResult]
	reads    *batch.Queue[uuid.UUID, readResult]
}

var _ submission.Store = (*Store)(nil)

// New makes a Store that uses a connection pool.
func New(pool *pgxpool.Pool) (*Store, error) {
	if pool == nil {
		return nil, errors.New("store needs a connection pool")
	}
	s := &Store{Pool: pool, readOnceWait: defaultReadOnceWait}
	s.accepts, s.repeats, s.attempts, s.reads = queueOf(s.insertTogether), queueOf(s.readKeysAndReservations), queueOf(s.recordTogether), queueOf(s.readTogether)
	return s, nil
}

const (
	// batchLimit bounds the calls of a batch, and so what a batch that fails repeats.
	batchLimit = 64
	// batchStall is how long the calls of a process wait for one statement.
	batchStall = time.Second
	// unknownToPlanner is the LIMIT of a batch's rows in SQL. Because the planner does not know its
	// value, it expects a tenth of the rows, and one row for arrays that it does not know either. Otherwise
	// it finds the plan for the values of a lone call cheaper than that for any values, and plans each
	// statement anew, which takes longer than to run it; and for a table of some hundred rows it makes a
	// plan that reads all of it, which is kept while the table grows, until the next ANALYZE.
	unknownToPlanner = `(SELECT 1000)`
)

// queueOf runs one batch at once: with two, Postgres used a third more processor time for each
// submission, because fewer calls shared a commit.
func queueOf[In, Out any](run func(context.Context, []In) ([]Out, error)) *batch.Queue[In, Out] {
	return &batch.Queue[In, Out]{Run: run, Runners: 1, Limit: batchLimit, Stall: batchStall}
}

// keptStatements is above the number of different statements of a relay.
const keptStatements = 128

func poolConfig(url string, maxConns int32) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("the database URL is not valid: expected postgres://user:password@host:port/name or a libpq key=value string")
	}
	if maxConns > 0 {
		cfg.MaxConns = maxConns
	}
	// pgx makes room for 512 statements in two caches of each connection at once: two megabytes for
	// forty connections.
	c := cfg.ConnConfig
	c.StatementCacheCapacity, c.DescriptionCacheCapacity = min(c.StatementCacheCapacity, keptStatements), min(c.DescriptionCacheCapacity, keptStatements)
	c.RuntimeParams["application_name"] = "relaypool"
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

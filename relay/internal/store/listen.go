package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/internal/submission"
)

// channel is where finished submissions are told of; the schema is part of its
// name, because channels belong to the database and not to the schema.
const channel = `'relaypool_done_' || current_schema()`

// notifyDone tells every pod, once the transaction commits, that a submission is done.
func notifyDone(ctx context.Context, tx pgx.Tx, l submission.Lease) error {
	if _, err := tx.Exec(ctx, `SELECT pg_notify(`+channel+`, $1)`, l.ID.String()); err != nil {
		return fmt.Errorf("tell of the outcome: %w", err)
	}
	return nil
}

// Listen calls done for every submission that any pod finishes, until ctx ends
// or the connection breaks. It needs a connection of its own, which a
// transaction-pooling proxy does not give: waiters look at the row as well.
func (s *Store) Listen(ctx context.Context, done func(uuid.UUID)) error {
	pooled, err := s.Pool.Acquire(ctx)
	if err != nil {
		return unavailable(fmt.Errorf("connect to listen: %w", err))
	}
	conn := pooled.Hijack()
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var name string
	if err := conn.QueryRow(ctx, `SELECT `+channel).Scan(&name); err != nil {
		return unavailable(fmt.Errorf("read channel name: %w", err))
	}
	if _, err := conn.Exec(ctx, `LISTEN `+pgx.Identifier{name}.Sanitize()); err != nil {
		return unavailable(fmt.Errorf("listen: %w", err))
	}
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return unavailable(fmt.Errorf("wait for outcomes: %w", err))
		}
		if id, err := uuid.Parse(n.Payload); err == nil {
			done(id)
		}
	}
}

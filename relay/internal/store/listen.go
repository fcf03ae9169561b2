package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/internal/submission"
)

// Processes notify each other on these channels. A channel belongs to the database, not to a
// schema, so its name contains a hash of the schema's name. The schema's name itself could be too
// long: Postgres limits the length of channel names.
const (
	doneChannel = `'relaypool_done_' || md5(current_schema())`
	dueChannel  = `'relaypool_due_' || md5(current_schema())`
)

// NotifyDue implements submission.Store.
func (s *Store) NotifyDue(ctx context.Context) error {
	if _, err := s.Pool.Exec(ctx, `SELECT pg_notify(`+dueChannel+`, '')`); err != nil {
		return unavailable(fmt.Errorf("wake workers: %w", err))
	}
	return nil
}

// Listen calls h.Done for every submission that any process finishes, and h.Due when a submission
// has become due. It returns when ctx ends or the connection breaks. It needs a dedicated
// connection. A transaction-pooling proxy does not provide one, so waiters also poll the rows.
func (s *Store) Listen(ctx context.Context, h submission.Notifications) error {
	pooled, err := s.Pool.Acquire(ctx)
	if err != nil {
		return unavailable(fmt.Errorf("connect to listen: %w", err))
	}
	conn := pooled.Hijack()
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var done, due string
	if err := conn.QueryRow(ctx, `SELECT `+doneChannel+`, `+dueChannel).Scan(&done, &due); err != nil {
		return unavailable(fmt.Errorf("read channel names: %w", err))
	}
	for _, name := range []string{done, due} {
		if _, err := conn.Exec(ctx, `LISTEN `+pgx.Identifier{name}.Sanitize()); err != nil {
			return unavailable(fmt.Errorf("listen: %w", err))
		}
	}
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return unavailable(fmt.Errorf("wait for notifications: %w", err))
		}
		if n.Channel == due {
			h.Due()
		} else if id, err := uuid.Parse(n.Payload); err == nil {
			h.Done(id)
		}
	}
}

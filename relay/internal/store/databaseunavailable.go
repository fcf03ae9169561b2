package store

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/relaypool/relaypool/relay/refusal"
)

// retryAfter is how long a client waits before it tries again while the database is
// unreachable: a restart takes a few seconds.
const retryAfter = 2 * time.Second

// isNetworkError reports whether err is a broken or refused connection.
func isNetworkError(err error) bool {
	var n net.Error
	return errors.As(err, &n) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed)
}

// unavailable converts an error that a retry may solve, such as a broken connection, into the
// refusal database_unavailable. It returns other errors unchanged.
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

// Unreachable reports whether err means that the database is unreachable, so that a retry may help.
func Unreachable(err error) bool {
	r, ok := refusal.As(unavailable(err))
	return ok && r.Code == refusal.DatabaseUnavailable
}

// Unmigrated reports whether a statement failed because a table or column is missing, as in
// a database that the command `relay migrate` has not brought up to date.
func Unmigrated(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "42P01" || pg.Code == "42703")
}

// transientState reports whether a retry may help after an error with this SQLSTATE: classes 08
// connection exception, 40 transaction rollback (a deadlock, or a conflict that can be retried), 53
// insufficient resources, 57 operator intervention (shutdown, crash, starting up), and 25006
// read-only (a demoted primary).
func transientState(code string) bool {
	return len(code) == 5 && (slices.Contains([]string{"08", "40", "53", "57"}, code[:2]) || code == "25006")
}

func connectionError(err error) bool {
	var connect *pgconn.ConnectError
	var file *fileError
	return errors.As(err, &connect) || errors.As(err, &file) || pgconn.Timeout(err) || pgconn.SafeToRetry(err) ||
		errors.Is(err, context.DeadlineExceeded) || isNetworkError(err)
}

// undone reports whether a statement that failed with err has certainly changed nothing, and may
// succeed for a part of its rows.
func undone(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return !transientState(pg.Code) || pg.Code[:2] == "40"
	}
	return !connectionError(err) && !errors.Is(err, context.Canceled)
}

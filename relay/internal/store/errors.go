package store

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"time"
)

// retryAfter is when a client may try again after the database was away: a
// restart takes a few seconds.
const retryAfter = 2 * time.Second

// isNetwork reports whether err is a broken or refused connection.
func isNetwork(err error) bool {
	var n net.Error
	return errors.As(err, &n) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed)
}

// quietMigrations returns a logger that passes warnings and errors only: the library
// of upkeep tells of each job at Info, which for us is no change of state.
func quietMigrations(log *slog.Logger) *slog.Logger { return slog.New(warnings{log.Handler()}) }

type warnings struct{ slog.Handler }

// Enabled admits warnings and errors.
func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}

// WithAttrs keeps the filter on derived loggers.
func (w warnings) WithAttrs(a []slog.Attr) slog.Handler { return warnings{w.Handler.WithAttrs(a)} }

// WithGroup keeps the filter on derived loggers.
func (w warnings) WithGroup(name string) slog.Handler { return warnings{w.Handler.WithGroup(name)} }

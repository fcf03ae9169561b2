package manager

import (
	"context"
	"log/slog"
	"sync/atomic"
)

// What controller-runtime logs, as an error, of every leader that was told to
// stop: giving the Lease back looks to it as losing it does.
const (
	saysAfterStop = "error received after stop sequence was engaged"
	saysLeaseLost = "leader election lost"
)

// quietShutdown drops that line while the process stops because it was told to. A Lease
// that is lost comes by another way, as the error of Run.
type quietShutdown struct {
	slog.Handler
	stopping *atomic.Bool
}

// Handle implements slog.Handler.
func (f quietShutdown) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == saysAfterStop && f.stopping.Load() && lost(r) {
		return nil
	}
	return f.Handler.Handle(ctx, r) //nolint:wrapcheck // the handler's own
}

func lost(r slog.Record) (found bool) {
	r.Attrs(func(a slog.Attr) bool {
		err, is := a.Value.Any().(error)
		found = found || is && err.Error() == saysLeaseLost
		return !found
	})
	return found
}

// WithAttrs implements slog.Handler.
func (f quietShutdown) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quietShutdown{f.Handler.WithAttrs(attrs), f.stopping}
}

// WithGroup implements slog.Handler.
func (f quietShutdown) WithGroup(name string) slog.Handler {
	return quietShutdown{f.Handler.WithGroup(name), f.stopping}
}

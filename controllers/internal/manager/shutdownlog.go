package manager

import (
	"context"
	"log/slog"
	"sync/atomic"
)

// controller-runtime logs a line with this message and this error for every leader that a
// signal stops, because it does not distinguish a released Lease from a lost one.
const (
	afterStopMessage = "error received after stop sequence was engaged"
	leaseLostMessage = "leader election lost"
)

// quietShutdown is a handler that drops the line about the lost Lease while the process stops
// on a signal. Run returns an error if the Lease is really lost.
type quietShutdown struct {
	slog.Handler
	stopping *atomic.Bool
}

// Handle implements slog.Handler.
func (f quietShutdown) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == afterStopMessage && f.stopping.Load() && isLeaseLost(r) {
		return nil
	}
	return f.Handler.Handle(ctx, r) //nolint:wrapcheck // the handler's own
}

func isLeaseLost(r slog.Record) (found bool) {
	r.Attrs(func(a slog.Attr) bool {
		err, is := a.Value.Any().(error)
		found = found || is && err.Error() == leaseLostMessage
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

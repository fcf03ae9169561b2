package app

import (
	"context"
	"net/http"
	"time"
)

const (
	// finalScrapeTime is how long a scrape under way may take at the end of the drain.
	// contract.Margin includes this time.
	finalScrapeTime = 2 * time.Second
	// flushTimeout bounds the wait for sends under way. It is longer than a send's own timeout.
	flushTimeout = 6 * time.Second
)

// flush waits for sends under way: if a send is cut off, nobody knows whether its
// transaction reaches the chain.
func (a *App) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	if err := a.endpoints.Flush(ctx); err != nil {
		a.log.WarnContext(ctx, "sends still under way at the end of the drain", "error", err)
	}
}

// awaitEnd returns when the relay has to stop: nil if ctx ended, or the error for which it
// cannot continue. It calls startWork once the chain is verified.
func (a *App) awaitEnd(ctx context.Context, fatal, gateOpened <-chan error, startWork func()) error {
	for {
		select {
		case <-ctx.Done():
			a.log.InfoContext(ctx, "draining")
			return nil
		case err := <-fatal:
			return err
		case err := <-gateOpened:
			if err != nil {
				return err
			}
			gateOpened = nil
			if ctx.Err() == nil {
				startWork()
			}
		}
	}
}

// shutdown lets the server's requests end within the timeout.
func (a *App) shutdown(ctx context.Context, s *http.Server, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		a.log.WarnContext(ctx, "requests still open at the end of the drain", "error", err)
		_ = s.Close() // nothing can handle the error any more
	}
}

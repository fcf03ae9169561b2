package app

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/contract"
)

const (
	// finalScrapeTime is how long a scrape under way may take at the end of the drain.
	// contract.Margin includes this time.
	finalScrapeTime = 2 * time.Second
	// flushTimeout bounds the wait for sends under way. It is longer than a send's own timeout.
	flushTimeout = 6 * time.Second
)

// running are the parts of a relay that Run has started, in the order in which drain ends them.
type running struct {
	maintenanceJobs, workers, services        sync.WaitGroup
	stopMaintenance, stopWork, stopBackground context.CancelFunc
}

// drain ends everything but the database: /readyz fails, no new connections are accepted, waiting
// clients are answered, maintenance and running steps end, leases are released, and sends under way
// end. ctx must not end with the signal that starts the drain.
func (a *App) drain(ctx context.Context, p *running) {
	a.draining.Store(true)
	a.submissions.Manager.Close() // other processes run submissions that are accepted from here on
	a.admission.Close()           // clients that wait to be accepted are refused
	a.reader.Close()              // clients that wait for an outcome get the address of their submission's status
	a.shutdown(ctx, a.api, contract.HTTPShutdown)
	p.stopMaintenance()
	p.maintenanceJobs.Wait()
	p.stopWork()
	p.workers.Wait()
	a.flush(ctx)
	p.stopBackground()
	p.services.Wait()
	a.shutdown(ctx, a.operations, finalScrapeTime)
	a.log.InfoContext(ctx, "stopped")
}

// flush waits for sends under way: if a send is cut off, nobody knows whether its
// transaction reaches the chain.
func (a *App) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	if err := a.endpoints.Flush(ctx); err != nil {
		a.log.WarnContext(ctx, "sends still under way at the end of the drain", "error", err)
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

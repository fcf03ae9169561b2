package httpapi

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/openapi"
)

// healthMaxAge is how long the result of a health check is reused: each check makes RPC
// calls, and GET /health needs no API key. Up to healthMaxAgeDuringCheck it is also returned while
// the next check runs, so that a slow check does not look like a relay that does not answer.
const (
	healthMaxAge            = time.Second
	healthMaxAgeDuringCheck = 3 * time.Second
)

// health has the result of the last health check.
type health struct {
	mu      sync.Mutex
	report  *HealthReport
	at      time.Time
	running chan struct{} // closed at the end of the check that runs; nil if none does
}

// readHealth returns the last report if it is recent enough, or waits for a new one. A client that
// disconnects does not cancel the check for the others.
func (a *api) readHealth(ctx context.Context) HealthReport {
	h := &a.health
	h.mu.Lock()
	defer h.mu.Unlock()
	age := a.Now().Sub(h.at)
	if h.report != nil && age < healthMaxAge {
		return *h.report
	}
	if h.running == nil {
		h.running = make(chan struct{})
		go a.checkHealth(context.WithoutCancel(ctx), h.running)
	}
	if h.report == nil || age >= healthMaxAgeDuringCheck {
		running := h.running
		h.mu.Unlock()
		<-running
		h.mu.Lock()
	}
	return *h.report
}

func (a *api) checkHealth(ctx context.Context, done chan struct{}) {
	ctx, cancel := a.call(ctx)
	defer cancel()
	report := a.Health.Check(ctx)
	a.health.mu.Lock()
	defer a.health.mu.Unlock()
	a.health.report, a.health.at, a.health.running = &report, a.Now(), nil
	close(done)
}

// GetHealth is public. It returns the relay's health and, for each part, only the status.
func (a *api) GetHealth(w http.ResponseWriter, r *http.Request) {
	report := a.readHealth(r.Context())
	checks := make(map[string]openapi.HealthCheck, len(report.Checks))
	for name, check := range report.Checks {
		checks[name] = openapi.HealthCheck{Status: check.Status}
	}
	a.answerHealth(w, r, HealthReport{Status: report.Status, Checks: checks})
}

// healthDetails serves GET /health on the operations port. It also returns what is wrong with
// each part.
func (a *api) healthDetails(w http.ResponseWriter, r *http.Request) {
	a.answerHealth(w, r, a.readHealth(r.Context()))
}

// answerHealth answers 503 only when the relay is down.
func (a *api) answerHealth(w http.ResponseWriter, r *http.Request, report HealthReport) {
	status := http.StatusOK
	if report.Status == openapi.HealthStatusDown {
		status = http.StatusServiceUnavailable
	}
	a.answer(w, r, status, openapi.Health{
		Status: report.Status, Checks: report.Checks, Version: a.Info.Version, Timestamp: a.Now().UTC(),
	})
}

package httpapi

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/openapi"
)

// healthMaxAge is how long the result of a health check is reused: each check makes RPC
// calls, and GET /health needs no API key.
const healthMaxAge = time.Second

// health has the result of the last health check.
type health struct {
	mu     sync.Mutex
	report *HealthReport
	at     time.Time
}

// readHealth returns the last report, or a new one once the last is healthMaxAge old.
// Requests during a check wait for it. A client that disconnects does not cancel the
// check for the others.
func (a *api) readHealth(ctx context.Context) HealthReport {
	a.health.mu.Lock()
	defer a.health.mu.Unlock()
	if a.health.report == nil || a.Now().Sub(a.health.at) >= healthMaxAge {
		ctx, cancel := a.call(context.WithoutCancel(ctx))
		defer cancel()
		report := a.Health.Check(ctx)
		a.health.report, a.health.at = &report, a.Now()
	}
	return *a.health.report
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

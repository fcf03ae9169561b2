package manager

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// probeWait is how long a probe waits for the caches. It is less than a probe's usual timeout
// of a second.
const probeWait = 500 * time.Millisecond

// addChecks adds the checks for probes. The process is alive while it answers, and ready once
// its caches are synchronised, so that a rollout does not end the old operator before the new
// one can take over.
func (m *Manager) addChecks() error {
	err := errors.Join(
		m.AddHealthzCheck("ping", healthz.Ping),
		m.AddReadyzCheck("caches", func(r *http.Request) error {
			ctx, cancel := context.WithTimeout(r.Context(), probeWait)
			defer cancel()
			if !m.GetCache().WaitForCacheSync(ctx) {
				return errors.New("the caches are not full yet")
			}
			return nil
		}))
	if err != nil {
		return fmt.Errorf("add health checks: %w", err)
	}
	return nil
}

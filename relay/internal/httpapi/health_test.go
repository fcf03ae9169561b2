package httpapi_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/internal/httpapi"
	"github.com/relaypool/relaypool/relay/openapi"
)

func degraded() httpapi.HealthReport {
	return httpapi.HealthReport{Status: openapi.HealthStatusDegraded, Checks: map[string]openapi.HealthCheck{
		"database":   {Status: openapi.HealthStatusOk, Message: pointer("ok")},
		"fee_payers": {Status: openapi.HealthStatusDegraded, Message: pointer("fee payer canary holds 7 lamports")},
	}}
}

// TestPublicHealthHasNoDetails: only the operator may see names, balances and caps.
func TestPublicHealthHasNoDetails(t *testing.T) {
	t.Parallel()
	f := newFixture(t, &domains{health: degraded})
	_, public := f.do(t, get("/health"))
	want := map[string]any{"database": map[string]any{"status": "ok"}, "fee_payers": map[string]any{"status": "degraded"}}
	if diff := cmp.Diff(want, object(t, public)["checks"]); diff != "" {
		t.Errorf("public health (-want +got):\n%s", diff)
	}
	f.handler = f.operations
	resp, details := f.do(t, get("/health"))
	if resp.StatusCode != http.StatusOK || !strings.Contains(string(details), "fee payer canary holds 7 lamports") {
		t.Errorf("the operations port answers %d: %s, want 200 with the details", resp.StatusCode, details)
	}
}

// TestConcurrentHealthRequestsShareOneCheck: many requests cause no more health checks than one. While a
// check runs, they get the last report, unless it is too old.
func TestConcurrentHealthRequestsShareOneCheck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const slow = 2 * time.Second
		var checks atomic.Int64
		f := newFixture(t, &domains{health: func() httpapi.HealthReport {
			time.Sleep(slow)
			checks.Add(1)
			return degraded()
		}}, func(o *httpapi.Options) { o.Now = time.Now })
		operations := *f
		operations.handler = f.operations
		for _, step := range []struct {
			what       string
			pause      time.Duration
			took       time.Duration
			checksThen int64
		}{
			{"the first requests wait", 0, slow, 1},
			{"the report is recent", time.Second - 1, 0, 1},
			{"the report is a second old", 1, 0, 1},
			{"the next check runs", slow - 1, 0, 1},
			{"it has ended", 1, 0, 2},
			{"the report is too old", 3 * time.Second, slow, 3},
		} {
			time.Sleep(step.pause)
			synctest.Wait()
			began := time.Now()
			var requests sync.WaitGroup
			for range 20 {
				requests.Go(func() { f.do(t, get("/health")); operations.do(t, get("/health")) })
			}
			requests.Wait()
			if took := time.Since(began); took != step.took || checks.Load() != step.checksThen {
				t.Errorf("%s: answers took %s after %d checks, want %s and %d", step.what, took, checks.Load(), step.took, step.checksThen)
			}
		}
	})
}

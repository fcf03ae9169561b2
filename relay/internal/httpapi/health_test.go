package httpapi_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
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

// TestConcurrentHealthRequestsShareOneCheck: many requests cause no more health checks
// than one request.
func TestConcurrentHealthRequestsShareOneCheck(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	clock, checks := now, 0
	d := &domains{health: func() httpapi.HealthReport {
		mu.Lock()
		defer mu.Unlock()
		checks++
		return degraded()
	}}
	f := newFixture(t, d, func(o *httpapi.Options) {
		o.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return clock }
	})
	operations := *f
	operations.handler = f.operations
	sendRequests := func() {
		var requests sync.WaitGroup
		for range 20 {
			requests.Go(func() { f.do(t, get("/health")); operations.do(t, get("/health")) })
		}
		requests.Wait()
	}
	for want := 1; want <= 3; want++ {
		sendRequests()
		if checks != want {
			t.Fatalf("health was checked %d times in %d seconds, want once a second", checks, want)
		}
		mu.Lock()
		clock = clock.Add(time.Second)
		mu.Unlock()
	}
}

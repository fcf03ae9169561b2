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

func sick() httpapi.HealthReport {
	return httpapi.HealthReport{Status: openapi.HealthStatusDegraded, Checks: map[string]openapi.HealthCheck{
		"database":   {Status: openapi.HealthStatusOk, Message: pointer("ok")},
		"fee_payers": {Status: openapi.HealthStatusDegraded, Message: pointer("fee payer canary holds 7 lamports")},
	}}
}

// TestPublicHealthHasNoDetails: names, balances and caps are the operator's.
func TestPublicHealthHasNoDetails(t *testing.T) {
	t.Parallel()
	f := newFixture(t, &domains{health: sick})
	_, public := f.do(t, get("/health"))
	want := map[string]any{"database": map[string]any{"status": "ok"}, "fee_payers": map[string]any{"status": "degraded"}}
	if diff := cmp.Diff(want, object(t, public)["checks"]); diff != "" {
		t.Errorf("public health (-want +got):\n%s", diff)
	}
	f.handler = f.operations
	resp, details := f.do(t, get("/health"))
	if resp.StatusCode != http.StatusOK || !strings.Contains(string(details), "fee payer canary holds 7 lamports") {
		t.Errorf("the operations port answers %d: %s, want what is wrong", resp.StatusCode, details)
	}
}

// TestHealthIsCheckedOnceForAll: many requests cause no more health checks than one does.
func TestHealthIsCheckedOnceForAll(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	clock, looks := now, 0
	d := &domains{health: func() httpapi.HealthReport {
		mu.Lock()
		defer mu.Unlock()
		looks++
		return sick()
	}}
	f := newFixture(t, d, func(o *httpapi.Options) {
		o.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return clock }
	})
	operations := *f
	operations.handler = f.operations
	flood := func() {
		var asking sync.WaitGroup
		for range 20 {
			asking.Go(func() { f.do(t, get("/health")); operations.do(t, get("/health")) })
		}
		asking.Wait()
	}
	for want := 1; want <= 3; want++ {
		flood()
		if looks != want {
			t.Fatalf("the parts were checked %d times within %d seconds, want once each", looks, want)
		}
		mu.Lock()
		clock = clock.Add(time.Second)
		mu.Unlock()
	}
}

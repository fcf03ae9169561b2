package prom_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/relaypool/relaypool/hack/monitoring/prom"
)

// The labels of the PodMonitor's targets and the relay's own meet as they do in a
// cluster: whose win is what honorLabels says.
func TestLabelsOfTargetsAndOfTheirMetrics(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprintf(w, "up_of{endpoint=\"rpc\"} 1\nnothing{q=\"a\"} NaN\npath{at=%q} 1\n", r.URL.Path)
	}))
	t.Cleanup(server.Close)
	target := prom.Target{
		Address: strings.TrimPrefix(server.URL, "http://"), Path: "/metrics",
		Labels: map[string]string{"namespace": "pools", "endpoint": "operations"},
	}
	honoured, renamed := target, target
	honoured.Job, honoured.HonorLabels = "honoured", true
	renamed.Job = "renamed"
	s, err := prom.Start(prom.Options{Folder: t.TempDir(), Interval: 100 * time.Millisecond, Targets: []prom.Target{honoured, renamed}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	began := time.Now()
	for _, query := range []string{
		`up_of{job="honoured",namespace="pools",endpoint="rpc"}`, `up_of{job="renamed",namespace="pools",endpoint="operations",exported_endpoint="rpc"}`,
		`path{at="/metrics"}`, `up{namespace="pools"} == 1`,
	} {
		await(t, s, query, began)
	}
	series, err := s.Range(t.Context(), "nothing", began, time.Now(), time.Second)
	if err != nil || len(series) != 0 {
		t.Errorf("what is no number: %v, %v, want no series", series, err)
	}
}

func await(t *testing.T, s *prom.Server, query string, from time.Time) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		series, err := s.Range(t.Context(), query, from, time.Now(), time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if len(series) > 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s has no sample after a minute", query)
		}
	}
}

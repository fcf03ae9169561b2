package pool

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// transport sends every request to one handler.
type transport struct{ http.Handler }

func (h transport) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), nil
}

func TestHTTPBacklog(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		status  int
		body    string
		want    Backlog
		wantErr string
	}{
		"a valid answer":             {status: 200, body: `{"pending_count":9,"due_count":4,"oldest_due_age_seconds":12,"held":{"fee_payer_empty":5}}`, want: Backlog{Due: 4, Oldest: 12 * time.Second, Held: map[string]int64{"fee_payer_empty": 5}}},
		"a negative age":             {status: 200, body: `{"due_count":1,"oldest_due_age_seconds":-1}`, wantErr: "oldest_due_age_seconds"},
		"a pod that is starting":     {status: 503, body: `{}`, wantErr: "received 503"},
		"an answer that is not JSON": {status: 200, body: `<html>`, wantErr: "read the backlog"},
		"no count":                   {status: 200, body: `{}`, wantErr: "due_count"},
		"a negative count":           {status: 200, body: `{"due_count":-1}`, wantErr: "due_count"},
		"an endless answer":          {status: 200, body: `{"held":"` + strings.Repeat("x", maxAnswer) + `"}`, wantErr: "read the backlog"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requested := ""
			reader := HTTPBacklog{Client: &http.Client{Transport: transport{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requested = r.URL.String()
				w.WriteHeader(tc.status)
				_, _ = w.Write([]byte(tc.body))
			})}}}
			got, err := reader.Backlog(t.Context(), "fd00::1")
			if requested != "http://[fd00::1]:9090/backlog" {
				t.Errorf("requested %s; want the path of the backlog at the pod's operations port", requested)
			}
			if (err != nil) != (tc.wantErr != "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Fatalf("error %v: want %q", err, tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("backlog (-want +got):\n%s", diff)
			}
		})
	}
}

package httpapitest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestValidateFindsFaults checks that Validate can fail: if it could not, all other
// tests would pass with it.
func TestValidateFindsFaults(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		method, path string
		status       int
		header       map[string]string
		body         string
		wantFault    string
	}{
		"a documented answer is accepted": {
			path: "/backlog", status: 200, body: `{"pending_count":1,"processing_count":0,"due_count":1,"oldest_due_age_seconds":0,"held":{},"oldest_age_seconds":0,"queued_jobs":[]}`,
		},
		"an unknown route answered with the error envelope is accepted": {
			path: "/nowhere", status: 404, body: `{"error":true,"code":"route_not_found","message":"m"}`,
		},
		"an unknown route answered without the error envelope": {
			path: "/nowhere", status: 404, body: `{"message":"not found"}`, wantFault: "property",
		},
		"a route that the document lacks": {
			path: "/nowhere", status: 200, body: `{}`, wantFault: "no such route",
		},
		"a status that the document lacks": {
			path: "/backlog", status: 418, body: `{"error":true,"code":"internal","message":"m"}`, wantFault: "status is not supported",
		},
		"a missing field": {
			path: "/backlog", status: 200, body: `{"pending_count":1,"processing_count":0,"due_count":1,"oldest_due_age_seconds":0,"held":{},"queued_jobs":[]}`, wantFault: "oldest_age_seconds",
		},
		"a field of the wrong type": {
			path: "/backlog", status: 200, body: `{"pending_count":"1","processing_count":0,"due_count":1,"oldest_due_age_seconds":0,"held":{},"oldest_age_seconds":0,"queued_jobs":[]}`, wantFault: "pending_count",
		},
		"a null list": {
			path: "/backlog", status: 200, body: `{"pending_count":1,"processing_count":0,"due_count":1,"oldest_due_age_seconds":0,"held":{},"oldest_age_seconds":0,"queued_jobs":null}`, wantFault: "queued_jobs",
		},
		"a code with the status of another code": {
			path: "/backlog", status: 503, header: map[string]string{"Retry-After": "5"},
			body: `{"error":true,"code":"internal","message":"m"}`, wantFault: "belongs to status 500",
		},
		"a code that the document lacks": {
			path: "/backlog", status: 500, body: `{"error":true,"code":"oops","message":"m"}`, wantFault: "code",
		},
		"a missing required header": {
			path: "/backlog", status: 503, body: `{"error":true,"code":"pool_busy","message":"m"}`, wantFault: "Retry-After",
		},
		"no request id": {
			path: "/backlog", status: 200, header: map[string]string{"X-Request-Id": ""}, body: `{}`, wantFault: "X-Request-Id",
		},
		"another content type": {
			path: "/backlog", status: 200, header: map[string]string{"Content-Type": "text/plain"}, body: `{}`, wantFault: "Content-Type",
		},
		"a body that is not JSON": {
			path: "/backlog", status: 200, body: `internal server error`, wantFault: "decode",
		},
		"a HEAD with a body": {
			method: http.MethodHead, path: "/backlog", status: 200, body: `{}`, wantFault: "HEAD",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			method := tt.method
			if method == "" {
				method = http.MethodGet
			}
			rec := httptest.NewRecorder()
			rec.Header().Set("Content-Type", "application/json")
			rec.Header().Set("X-Request-Id", "id")
			for k, v := range tt.header {
				rec.Header().Set(k, v)
			}
			rec.WriteHeader(tt.status)
			resp := rec.Result()
			defer func() { _ = resp.Body.Close() }()
			err := check(httptest.NewRequest(method, tt.path, nil), resp, []byte(tt.body))
			switch {
			case tt.wantFault == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.wantFault != "" && (err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(tt.wantFault))):
				t.Errorf("error %v, want one that contains %q", err, tt.wantFault)
			}
		})
	}
}

package httpapi_test

import (
	"crypto/sha256"
	"net/http"
	"strings"
	"testing"

	"github.com/relaypool/relaypool/relay/internal/httpapi"
)

func TestAPIKeys(t *testing.T) {
	t.Parallel()
	const first, second, unknown = "first-key-0123456789", "second-key-0123456789", "canary-key-0123456789"
	requireKeys := func(o *httpapi.Options) {
		o.APIKeys = func() []httpapi.APIKey {
			return []httpapi.APIKey{{Hash: sha256.Sum256([]byte(first))}, {Hash: sha256.Sum256([]byte(second)), Name: "wallet"}}
		}
	}
	tests := map[string]struct {
		path, authorization string
		want                int
		message             string
	}{
		"the first key works":                 {"/", "Bearer " + first, http.StatusOK, ""},
		"the second key works":                {"/", "Bearer " + second, http.StatusOK, ""},
		"the scheme's case is ignored":        {"/", "bearer " + first, http.StatusOK, ""},
		"no key":                              {"/", "", http.StatusUnauthorized, "received no such header"},
		"a key that is not known":             {"/", "Bearer " + unknown, http.StatusUnauthorized, "received a key that this relay does not know"},
		"the beginning of a key":              {"/", "Bearer " + first[:8], http.StatusUnauthorized, "received a key that this relay does not know"},
		"the scheme without a key":            {"/", "Bearer", http.StatusUnauthorized, "received a key that this relay does not know"},
		"another scheme with a key":           {"/", "Basic " + first, http.StatusUnauthorized, "received another scheme"},
		"a key without a scheme":              {"/", first, http.StatusUnauthorized, "received another scheme"},
		"an unknown route without a key":      {"/nowhere", "", http.StatusNotFound, ""},
		"GET /health without a key":           {"/health", "", http.StatusOK, ""},
		"a submission's status without a key": {"/status/5f0c1c66-6d5b-4a6c-8d4b-0f2f0b8a5a11", "", http.StatusUnauthorized, "received no such header"},
		"an unknown route with a key":         {"/nowhere", "Bearer " + first, http.StatusNotFound, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, &domains{health: healthy}, requireKeys)
			r := get(tc.path)
			if tc.authorization != "" {
				r.Header.Set("Authorization", tc.authorization)
			}
			resp, raw := f.do(t, r)
			body := object(t, raw)
			if resp.StatusCode != tc.want {
				t.Fatalf("status %d, want %d: %s", resp.StatusCode, tc.want, raw)
			}
			if tc.want == http.StatusUnauthorized {
				if body["code"] != "unauthorized" || resp.Header.Get("Www-Authenticate") != "Bearer" {
					t.Errorf("code %v, headers %v; want unauthorized and Www-Authenticate: Bearer", body["code"], resp.Header)
				}
			}
			if message, _ := body["message"].(string); !strings.Contains(message, tc.message) {
				t.Errorf("message %q, want one that contains %q", message, tc.message)
			}
			for _, key := range []string{first, second, unknown} {
				if strings.Contains(f.log.String(), key) || strings.Contains(string(raw), key) {
					t.Error("the log or the answer contains a key")
				}
			}
		})
	}
}

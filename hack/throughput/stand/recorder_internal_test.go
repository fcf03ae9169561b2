package stand

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"
)

func sendBody(signature byte) string {
	raw := make([]byte, 200)
	raw[0] = 1
	for i := range 64 {
		raw[1+i] = signature
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"sendTransaction","params":[%q,{"encoding":"base64"}]}`, base64.StdEncoding.EncodeToString(raw))
}

func signatureOfBytes(signature byte) solana.Signature {
	var s solana.Signature
	for i := range s {
		s[i] = signature
	}
	return s
}

func TestRecorderRecordsFirstArrivalsAndForwardsEverything(t *testing.T) {
	t.Parallel()
	clock := time.UnixMicro(1000)
	var forwarded []string
	next := http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			t.Error(err)
		}
		forwarded = append(forwarded, q.Method+" "+string(body))
	})
	r := newRecorder(next, func() time.Time { clock = clock.Add(time.Microsecond); return clock })
	other := `{"method":"getSlot","params":[]}`
	bodies := []string{sendBody(1), other, sendBody(2), sendBody(1), "not JSON, but names sendTransaction", "[" + sendBody(3) + "," + other + "," + sendBody(1) + "]"}
	var want []string
	for _, body := range bodies {
		r.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body)))
		want = append(want, "POST "+body)
	}
	r.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/health", http.NoBody))
	if diff := cmp.Diff(forwarded, append(want, "GET ")); diff != "" {
		t.Errorf("forwarded requests (-got +want):\n%s", diff)
	}
	first := map[solana.Signature]time.Time{signatureOfBytes(1): time.UnixMicro(1001), signatureOfBytes(2): time.UnixMicro(1003), signatureOfBytes(3): time.UnixMicro(1006)}
	if diff := cmp.Diff(r.Sends(), first); diff != "" {
		t.Errorf("first arrivals (-got +want):\n%s", diff)
	}
	if again := r.Sends(); len(again) != 0 {
		t.Errorf("a second call returns %v, want no arrivals", again)
	}
}

func TestOtherCallsHaveNoSignature(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"another method that names it":    `{"method":"getSlot","params":["sendTransaction"]}`,
		"no parameters":                   `{"method":"sendTransaction","params":[]}`,
		"a transaction that is too short": `{"method":"sendTransaction","params":["AQ=="]}`,
		"a transaction not in base64":     `{"method":"sendTransaction","params":["` + strings.Repeat("!", 200) + `"]}`,
		"not JSON":                        `sendTransaction`,
	}
	for name, body := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, body := range []string{body, "[" + body + "]"} {
				if all := signaturesOf([]byte(body)); len(all) > 0 {
					t.Errorf("signatures %v, want none", all)
				}
			}
		})
	}
}

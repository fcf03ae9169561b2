package stand

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/gagliardetto/solana-go"
)

const (
	// maxBody is above the size of any body that the chain accepts.
	maxBody = 64 << 10
	// signatureText is the length of the base64 text with a transaction's first
	// signature: one byte for the number of signatures, 64 of the signature, one more.
	signatureText = 88
	sendMethod    = "sendTransaction"
)

// recorder records when each transaction first reached the endpoint. It does so before
// the chain handles it, so that no figure includes the chain's own work.
type recorder struct {
	next http.Handler
	now  func() time.Time

	mu    sync.Mutex
	first map[solana.Signature]time.Time
}

func newRecorder(next http.Handler, now func() time.Time) *recorder {
	return &recorder{next: next, now: now, first: make(map[solana.Signature]time.Time)}
}

// ServeHTTP passes everything on, WebSockets included.
func (r *recorder) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if q.Method == http.MethodPost {
		at := r.now()
		body, err := io.ReadAll(io.LimitReader(q.Body, maxBody))
		if err != nil {
			return // the client is gone: nobody reads an answer
		}
		q.Body = io.NopCloser(bytes.NewReader(body))
		if signature, ok := signatureOf(body); ok {
			r.record(signature, at)
		}
	}
	r.next.ServeHTTP(w, q)
}

func (r *recorder) record(signature solana.Signature, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.first[signature]; !known {
		r.first[signature] = at
	}
}

// signatureOf reads the signature of the transaction that a body sends; false for a
// body that sends none.
func signatureOf(body []byte) (s solana.Signature, ok bool) {
	var call struct {
		Method string            `json:"method"`
		Params []json.RawMessage `json:"params"`
	}
	if !bytes.Contains(body, []byte(sendMethod)) || json.Unmarshal(body, &call) != nil || call.Method != sendMethod || len(call.Params) == 0 {
		return s, false
	}
	text := bytes.Trim(call.Params[0], `"`)
	if len(text) < signatureText {
		return s, false
	}
	raw, err := base64.StdEncoding.DecodeString(string(text[:signatureText]))
	if err != nil {
		return s, false
	}
	return solana.Signature(raw[1 : 1+len(s)]), true
}

// Sends returns the time of each transaction's first arrival. Each call forgets the
// returned arrivals.
func (r *recorder) Sends() map[solana.Signature]time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := r.first
	r.first = make(map[solana.Signature]time.Time)
	return first
}

package node

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/gagliardetto/solana-go"
)

const (
	// maxBody is above any body that the chain takes.
	maxBody = 64 << 10
	// signatureText is how much of a transaction's base64 holds its first
	// signature: one byte that counts them, 64 of the signature, one more.
	signatureText = 88
)

// recorder notes when each transaction reached the endpoint first: before the
// chain has looked at it, so that the chain's own work is in no measurement.
type recorder struct {
	next http.Handler
	now  func() time.Time

	mu    sync.Mutex
	first map[solana.Signature]int64
	sends int
}

func newRecorder(next http.Handler, now func() time.Time) *recorder {
	return &recorder{next: next, now: now, first: make(map[solana.Signature]int64)}
}

// ServeHTTP passes everything on, WebSockets included.
func (r *recorder) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if q.Method != http.MethodPost {
		r.next.ServeHTTP(w, q)
		return
	}
	at := r.now()
	body, err := io.ReadAll(io.LimitReader(q.Body, maxBody))
	if err != nil {
		return // the client is gone: nobody reads an answer
	}
	if signature, err := signatureOf(body); err == nil {
		r.note(signature, at)
	}
	q.Body = io.NopCloser(bytes.NewReader(body))
	r.next.ServeHTTP(w, q)
}

func (r *recorder) note(signature solana.Signature, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sends++
	if _, known := r.first[signature]; !known {
		r.first[signature] = at.UnixMicro()
	}
}

var errNoSend = errors.New("the body is no sendTransaction")

// signatureOf reads the signature of the transaction that a body sends.
func signatureOf(body []byte) (s solana.Signature, err error) {
	if !bytes.Contains(body, []byte("sendTransaction")) {
		return s, errNoSend
	}
	var call struct {
		Method string            `json:"method"`
		Params []json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal(body, &call); err != nil || call.Method != "sendTransaction" || len(call.Params) == 0 {
		return s, errNoSend
	}
	text := bytes.Trim(call.Params[0], `"`)
	if len(text) < signatureText {
		return s, errNoSend
	}
	raw, err := base64.StdEncoding.DecodeString(string(text[:signatureText]))
	if err != nil {
		return s, err
	}
	return solana.Signature(raw[1 : 1+len(s)]), nil
}

// Sends is what GET /sends answers.
type Sends struct {
	// First is when each transaction arrived first, in microseconds since 1970,
	// by its signature in base58.
	First map[string]int64 `json:"first"`
	// All counts the sends, repeated ones included.
	All int `json:"all"`
}

// serveSends answers what was noted since the last time, and forgets it.
func (r *recorder) serveSends(w http.ResponseWriter, _ *http.Request) {
	r.mu.Lock()
	first, all := r.first, r.sends
	r.first, r.sends = make(map[solana.Signature]int64), 0
	r.mu.Unlock()
	out := Sends{First: make(map[string]int64, len(first)), All: all}
	for signature, at := range first {
		out.First[signature.String()] = at
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out) // whoever asked is gone
}

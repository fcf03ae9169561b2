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
		for _, signature := range signaturesOf(body) {
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

// call is a JSON-RPC call.
type call struct {
	Method string            `json:"method"`
	Params []json.RawMessage `json:"params"`
}

// signaturesOf reads the signatures of the transactions that a body sends, in a call or a batch of calls.
func signaturesOf(body []byte) (all []solana.Signature) {
	if !bytes.Contains(body, []byte(sendMethod)) {
		return nil
	}
	calls := make([]call, 1)
	if json.Unmarshal(body, &calls[0]) != nil && json.Unmarshal(body, &calls) != nil {
		return nil
	}
	for _, c := range calls {
		if s, ok := c.signature(); ok {
			all = append(all, s)
		}
	}
	return all
}

// signature reads the signature of the transaction that the call sends; false if it sends none.
func (c call) signature() (s solana.Signature, ok bool) {
	if c.Method != sendMethod || len(c.Params) == 0 {
		return s, false
	}
	text := bytes.Trim(c.Params[0], `"`)
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

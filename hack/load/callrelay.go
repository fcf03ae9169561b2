package load

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/openapi"
)

// maxAnswer bounds an answer's body; the largest is a submission's, of about a kilobyte.
const maxAnswer = 1 << 20

// body is the union of the answers' JSON: a field that an answer does not have stays empty.
type body struct {
	RequestID uuid.UUID `json:"request_id"`
	Code      string    `json:"code"`
	// RefundSignature is that of a refusal, which has no data.
	RefundSignature string `json:"refund_signature"`
	Data            struct {
		SwapAnswer
		RequestID uuid.UUID `json:"request_id"`
		Status    string    `json:"status"`
		Signature string    `json:"solana_signature"`
		Finalized bool      `json:"finalized"`
		ErrorCode string    `json:"error_code"`
	} `json:"data"`
}

// Post sends a body once, to the next relay in turn, and returns the answer. Callers of
// NewRequest use it.
func (l *Load) Post(ctx context.Context, path, prefer string, raw []byte) *Answer {
	header := http.Header{"Content-Type": {"application/json"}}
	if prefer != "" {
		header.Set("Prefer", prefer)
	}
	return l.ask(ctx, CallTransact, l.next(), http.MethodPost, path, header, raw, l.Timeout)
}

// Status asks the next relay in turn for the state of a submission, once.
func (l *Load) Status(ctx context.Context, id uuid.UUID) *Answer { return l.status(ctx, id, l.next()) }

// Root reads the tree's newest root from the next relay in turn.
func (l *Load) Root(ctx context.Context) ([32]byte, error) { return l.root(ctx, l.next()) }

func (l *Load) next() int { return int(l.turn.Add(1)) % len(l.Relays) }

func (l *Load) submit(ctx context.Context, s *spend, q *Request, proof, relay int) *Answer {
	raw, err := q.Body(proof)
	if err != nil {
		return &Answer{Sent: l.Now(), At: l.Now(), Relay: relay, Call: s.call, Fault: "request not encoded"}
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if s.prefer != "" && s.call != CallWithdraw {
		header.Set("Prefer", s.prefer)
	}
	if q.IdempotencyKey != "" {
		header.Set("Idempotency-Key", q.IdempotencyKey)
	}
	path := q.Path()
	if s.call == CallWithdraw {
		path = contract.WithdrawPath
	}
	return l.ask(ctx, s.call, relay, http.MethodPost, path, header, raw, s.answerTimeout)
}

func (l *Load) status(ctx context.Context, id uuid.UUID, relay int) *Answer {
	path := strings.Replace(contract.StatusPath, "{id}", id.String(), 1)
	a := l.ask(ctx, CallStatus, relay, http.MethodGet, path, nil, nil, l.Timeout/3)
	if a.RequestID == uuid.Nil {
		a.RequestID = id
	}
	return a
}

func (l *Load) ask(ctx context.Context, call Call, relay int, method, path string, header http.Header, raw []byte, timeout time.Duration) *Answer {
	a := &Answer{Sent: l.Now(), Relay: relay, Call: call}
	status, retryAfter, content, err := l.exchange(ctx, relay, method, path, header, raw, timeout)
	a.At = l.Now()
	if err != nil {
		a.Fault = faultOf(err)
		return a
	}
	var b body
	if err := json.Unmarshal(content, &b); err != nil && status < http.StatusInternalServerError { // a 5xx needs no JSON
		a.Fault = "answer is not JSON"
		return a
	}
	a.Status, a.RetryAfter = status, retryAfter
	a.RequestID, a.Code = cmp.Or(b.Data.RequestID, b.RequestID), cmp.Or(b.Data.ErrorCode, b.Code)
	a.State, a.Signature, a.Finalized, a.SwapAnswer = b.Data.Status, b.Data.Signature, b.Data.Finalized, b.Data.SwapAnswer
	a.RefundSignature = cmp.Or(a.RefundSignature, b.RefundSignature)
	return a
}

// exchange sends one HTTP request and reads its whole answer.
func (l *Load) exchange(ctx context.Context, relay int, method, path string, header http.Header, raw []byte, timeout time.Duration) (status int, retryAfter time.Duration, content []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, l.Relays[relay]+path, bytes.NewReader(raw))
	if err != nil {
		return 0, 0, nil, err
	}
	// Only the client may repeat a request, so that the journal has each try: net/http
	// would repeat a request with an Idempotency-Key by itself.
	request.GetBody = nil
	for name, values := range header {
		request.Header[name] = values
	}
	answer, err := l.HTTP.Do(request)
	if err != nil {
		return 0, 0, nil, err
	}
	defer func() { _ = answer.Body.Close() }() // the body was read to its end or is not needed
	content, err = io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil {
		retryAfter = time.Duration(seconds) * time.Second
	}
	return answer.StatusCode, retryAfter, content, err
}

// faultOf names the kind of a failure, without the addresses in its text.
func faultOf(err error) string {
	var netErr net.Error
	switch {
	case errors.As(err, &netErr) && netErr.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "stopped"
	default:
		return "connection"
	}
}

func (l *Load) root(ctx context.Context, relay int) (root [32]byte, err error) {
	status, _, content, err := l.exchange(ctx, relay, http.MethodGet, contract.MerkleRootPath, nil, nil, l.Timeout/3)
	if err != nil {
		return root, err
	}
	var answer openapi.MerkleRoot
	if status != http.StatusOK {
		return root, fmt.Errorf("GET %s answered %d", contract.MerkleRootPath, status)
	}
	if err := json.Unmarshal(content, &answer); err != nil {
		return root, fmt.Errorf("GET %s answered invalid JSON", contract.MerkleRootPath)
	}
	if n, err := hex.Decode(root[:], []byte(answer.Root)); err != nil || n != len(root) {
		return root, fmt.Errorf("GET %s answered a root of %d characters, expected %d", contract.MerkleRootPath, len(answer.Root), 2*len(root))
	}
	return root, nil
}

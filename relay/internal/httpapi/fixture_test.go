package httpapi_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/commitments"
	"github.com/relaypool/relaypool/relay/internal/httpapi"
	"github.com/relaypool/relaypool/relay/internal/httpapi/httpapitest"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/viewingkey"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// domains fakes everything behind the API. A test sets the functions that its request
// reaches; the others must not be called.
type domains struct {
	submit    func(context.Context, submission.Request) (*submission.Submission, error)
	wait      func(context.Context, uuid.UUID) (*submission.Submission, error)
	get       func(context.Context, uuid.UUID) (*submission.Submission, error)
	backlog   func() (submission.Backlog, error)
	position  func() (commitments.Position, error)
	read      func(generation, from uint64, limit int) ([]commitments.IndexedCommitment, error)
	root      func(mint string) (onchain.Root, error)
	processed func() (commitments.Processed, error)
	register  func(viewingkey.Registration) (string, error)
	health    func() httpapi.HealthReport
}

func (d *domains) Submit(ctx context.Context, r submission.Request) (*submission.Submission, error) {
	return d.submit(ctx, r)
}

func (d *domains) Wait(ctx context.Context, id uuid.UUID) (*submission.Submission, error) {
	return d.wait(ctx, id)
}

func (d *domains) Get(ctx context.Context, id uuid.UUID) (*submission.Submission, error) {
	return d.get(ctx, id)
}

func (d *domains) Backlog(context.Context) (submission.Backlog, error) { return d.backlog() }

func (d *domains) Newest(context.Context) (pos commitments.Position, newest [32]byte, err error) {
	if pos, err = d.position(); err != nil || pos.Published == 0 {
		return pos, newest, err
	}
	leaves, err := d.read(pos.Generation, pos.Published-1, 1)
	if err != nil {
		return pos, newest, err
	}
	return pos, leaves[0].Commitment, nil
}

func (d *domains) Read(_ context.Context, generation, from uint64, limit int) ([]commitments.IndexedCommitment, error) {
	return d.read(generation, from, limit)
}

func (d *domains) Root(_ context.Context, mint string) (onchain.Root, error) { return d.root(mint) }

func (d *domains) Register(_ context.Context, r viewingkey.Registration) (string, error) {
	return d.register(r)
}

func (d *domains) Check(context.Context) httpapi.HealthReport { return d.health() }

// observed is what the API reported to its observer.
type observed struct {
	mu        sync.Mutex
	exchanges []exchange
	// clients are the names of keys, each with the status of the answer.
	clients []string
}

type exchange struct {
	Method, Route string
	Status        int
}

func (o *observed) Request(method, route string, status int, _ time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.exchanges = append(o.exchanges, exchange{method, route, status})
}

func (o *observed) ClientRequest(keyName string, status int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.clients = append(o.clients, fmt.Sprintf("%s %d", keyName, status))
}

// fixture is an API over fake domains, with its log and its observer.
type fixture struct {
	handler    http.Handler
	operations http.Handler
	log        *syncBuffer
	observer   *observed
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.FixedZone("CET", 3600)) // not in UTC, so that a missing conversion shows

func options(d *domains, log io.Writer, o httpapi.Observer) httpapi.Options {
	var ids int
	var mu sync.Mutex
	return httpapi.Options{
		Admission: d, Submissions: d, Commitments: d, Tree: d, ViewingKeys: d, Health: d,
		Info: httpapi.Info{
			Version: "0.1.0", Build: "abc1234", Profile: shieldpool.Development(),
			NoteBounds: map[shieldpool.Kind]int{shieldpool.KindTransfer: 257, shieldpool.KindWithdrawal: 256, shieldpool.KindSwap: 185},
			NoteBoundsByFormat: func() shieldpool.NoteBounds {
				return shieldpool.NoteBounds{
					shieldpool.Legacy: {shieldpool.KindTransfer: 257, shieldpool.KindWithdrawal: 256, shieldpool.KindSwap: 185},
					shieldpool.V1:     {shieldpool.KindTransfer: 3185, shieldpool.KindWithdrawal: 3153, shieldpool.KindSwap: 3081},
				}
			},
			ComplianceKey: [32]byte{1, 2, 3},
		},
		Log:      slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Observer: o,
		Now:      func() time.Time { return now },
		NewID: func() string {
			mu.Lock()
			defer mu.Unlock()
			ids++
			return "exchange-" + strconv.Itoa(ids)
		},
		ListStall: time.Minute, ListTime: 2 * time.Minute,
		FinalCommitments:     func() (uint64, uint64) { return 1, 2048 },
		ProcessedCommitments: func(context.Context) (commitments.Processed, error) { return d.processed() },
		CallTimeout:          time.Minute, WaitDefault: 30 * time.Second, WaitMax: time.Minute,
	}
}

func newFixture(t testing.TB, d *domains, change ...func(*httpapi.Options)) *fixture {
	t.Helper()
	f := &fixture{log: &syncBuffer{}, observer: &observed{}}
	o := options(d, f.log, f.observer)
	for _, c := range change {
		c(&o)
	}
	api, err := httpapi.New(o)
	if err != nil {
		t.Fatal(err)
	}
	f.handler, f.operations = api, api.Operations()
	return f
}

// head is an answer without its body.
type head struct {
	StatusCode int
	Header     http.Header
}

// do serves a request and validates the answer against the document.
func (f *fixture) do(t testing.TB, r *http.Request) (head, []byte) {
	t.Helper()
	rec := httptest.NewRecorder()
	f.handler.ServeHTTP(rec, r)
	resp := rec.Result()
	body := httpapitest.Validate(t, r, resp)
	return head{resp.StatusCode, resp.Header}, body
}

func post(path, body string, header ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, path, bytes.NewBufferString(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

func get(path string) *http.Request { return httptest.NewRequest(http.MethodGet, path, nil) }

func object(t testing.TB, body []byte) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("the body is not a JSON object: %v: %s", err, body)
	}
	return v
}

func b64(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

// transactBody is a well-formed body; its contents do not matter here.
func transactBody(change ...func(map[string]any)) string {
	body := map[string]any{
		"proof_bytes":   b64(bytes.Repeat([]byte{7}, shieldpool.ProofLength)),
		"public_inputs": b64(bytes.Repeat([]byte{8}, shieldpool.PublicInputsLength)),
	}
	for _, c := range change {
		c(body)
	}
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func with(name string, value any) func(map[string]any) {
	return func(body map[string]any) { body[name] = value }
}

func registerBody(change ...func(map[string]any)) string {
	body := map[string]any{"user_pubkey": "wallet", "viewing_key": "key", "signature": "signature"}
	for _, c := range change {
		c(body)
	}
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

var (
	submissionID = uuid.MustParse("0b0f6f0e-64d5-4f6c-9a3b-6a2f4a9f3f10")
	signature    = solana.Signature(bytes.Repeat([]byte{9}, 64))
	hex32        = "0101010101010101010101010101010101010101010101010101010101010101"
)

func pending() *submission.Submission {
	return &submission.Submission{ID: submissionID, State: submission.Pending, CreatedAt: now}
}

func completed() *submission.Submission {
	s := pending()
	root, at := [32]byte(bytes.Repeat([]byte{1}, 32)), now.Add(2*time.Second)
	s.State, s.Signature, s.Slot, s.LeafIndices = submission.Completed, &signature, 42, []uint64{6, 7}
	s.Root, s.CompletedAt = &root, &at
	return s
}

func failed(r *refusal.Refusal) *submission.Submission {
	s := pending()
	at := now.Add(3 * time.Second)
	s.State, s.Failure, s.CompletedAt = submission.Failed, r, &at
	return s
}

func submitReturns(s *submission.Submission, err error) *domains {
	return &domains{submit: func(context.Context, submission.Request) (*submission.Submission, error) { return s, err }}
}

// publishedLeaves fakes a tree with that many published leaves. The leaves are
// generated on read.
func publishedLeaves(leaves uint64) *domains {
	return &domains{
		position: func() (commitments.Position, error) {
			return commitments.Position{Leaves: leaves, Published: leaves, Generation: 1}, nil
		},
		read: func(generation, from uint64, limit int) ([]commitments.IndexedCommitment, error) {
			if generation != 1 || from >= leaves {
				return nil, commitments.ErrMoved
			}
			out := make([]commitments.IndexedCommitment, min(uint64(limit), leaves-from))
			for i := range out {
				out[i].Commitment = leafOf(from + uint64(i))
			}
			return out, nil
		},
	}
}

func leafOf(index uint64) (leaf [32]byte) {
	binary.BigEndian.PutUint64(leaf[24:], index+1)
	return leaf
}

func healthy() httpapi.HealthReport {
	return httpapi.HealthReport{Status: openapi.HealthStatusOk, Checks: map[string]openapi.HealthCheck{
		"database": {Status: openapi.HealthStatusOk, Message: pointer("answers")},
	}}
}

func pointer(text string) *string { return &text }

// merge merges objects; a later one overrides the earlier ones.
func merge(objects ...map[string]any) map[string]any {
	all := map[string]any{}
	for _, o := range objects {
		maps.Copy(all, o)
	}
	return all
}

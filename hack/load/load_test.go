package load_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/hack/wallet/simulator"
	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// relay is a fake relay. Each query of /merkle-root returns the next number.
type relay struct {
	t *testing.T
	// submit answers the nth submission and status answers the nth poll, both counted from 0.
	submit func(w http.ResponseWriter, n int)
	status func(w http.ResponseWriter, n int)

	mu       sync.Mutex
	roots    int
	polls    int
	received []received
}

type received struct {
	path, prefer, key string
	body              openapi.TransactRequest
	raw               string
}

func (r *relay) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case q.URL.Path == "/merkle-root":
		r.roots++
		fmt.Fprintf(w, `{"root":"%064x","merkle_tree":"x","next_index":1,"slot":1}`, r.roots)
	case strings.HasPrefix(q.URL.Path, "/status/"):
		r.polls++
		r.status(w, r.polls-1)
	default:
		raw, err := io.ReadAll(q.Body)
		if err != nil {
			r.t.Errorf("read a submission: %v", err)
		}
		got := received{path: q.URL.Path, prefer: q.Header.Get("Prefer"), key: q.Header.Get("Idempotency-Key"), raw: string(raw)}
		if err := json.Unmarshal(raw, &got.body); err != nil {
			r.t.Errorf("a submission does not parse: %v", err)
		}
		r.received = append(r.received, got)
		r.submit(w, len(r.received)-1)
	}
}

var request = uuid.UUID{15: 1}

func accept(w http.ResponseWriter, _ int) {
	w.WriteHeader(http.StatusAccepted)
	fmt.Fprintf(w, `{"success":true,"request_id":%q,"data":{"request_id":%q,"status":"pending","solana_signature":null},"error":null}`, request, request)
}

func final(w http.ResponseWriter, _ int) {
	fmt.Fprintf(w, `{"success":true,"data":{"request_id":%q,"status":"completed","solana_signature":"sig","slot":9,"finalized":true},"error":null}`, request)
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error":true,"code":%q,"message":"x","current_root":"%064x"}`, code, 5)
}

// prover is made once: its tables take a second under the race detector.
var prover = sync.OnceValues(func() (*simulator.Simulator, error) {
	key, err := os.ReadFile("../circuit/verification_key.json")
	if err != nil {
		return nil, err
	}
	return simulator.New(key, simulator.DevelopmentSeed)
})

func options(t *testing.T, urls ...string) load.Options {
	t.Helper()
	prover, err := prover()
	if err != nil {
		t.Fatal(err)
	}
	return load.Options{
		Relays: urls, Simulator: prover, Mint: shieldpool.Development().Mints[0], Seed: 1, HTTP: http.DefaultClient, Now: time.Now,
		Rate: 1000, InFlight: 1, Withdrawals: 0.5,
		PollMin: time.Millisecond, PollMax: 2 * time.Millisecond, Backoff: time.Millisecond, Timeout: 20 * time.Second,
	}
}

// runClient runs one client against the relay until the client ends, and returns its record.
func runClient(t *testing.T, r *relay, change func(*load.Options)) (load.Record, load.Progress) {
	t.Helper()
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	o := options(t, server.URL)
	if change != nil {
		change(&o)
	}
	l, err := load.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	arrivals, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for l.Journal().Progress().Spends == 0 && ctx.Err() == nil {
			time.Sleep(time.Millisecond) // a poll, which the deadline bounds
		}
		stop()
	}()
	l.Run(ctx, arrivals)
	if ctx.Err() != nil {
		t.Fatal("the client did not end")
	}
	return l.Journal().Records()[0], l.Journal().Progress()
}

func codes(r *load.Record) (out []string) {
	for i := range r.Requests {
		for _, a := range r.Requests[i].Answers {
			out = append(out, fmt.Sprintf("%s %d %s%s%s", a.Call, a.Status, a.State, a.Code, a.Fault))
		}
	}
	return out
}

func TestAcceptedSubmissionIsPolledUntilItIsFinal(t *testing.T) {
	t.Parallel()
	r := &relay{t: t, submit: accept, status: func(w http.ResponseWriter, n int) {
		switch n {
		case 0:
			fmt.Fprintf(w, `{"success":true,"data":{"request_id":%q,"status":"processing"}}`, request)
		case 1:
			refuse(w, 503, "database_unavailable")
		case 2:
			fmt.Fprintf(w, `{"success":true,"data":{"request_id":%q,"status":"completed","solana_signature":"sig"}}`, request)
		default:
			final(w, n)
		}
	}}
	record, progress := runClient(t, r, nil)
	want := []string{"transact 202 pending", "status 200 processing", "status 503 database_unavailable", "status 200 completed", "status 200 completed"}
	got := codes(&record)
	got[0] = strings.Replace(got[0], "withdraw", "transact", 1)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	last := record.Requests[0].Answers[4]
	if !record.Ended || !last.Finalized || last.Signature != "sig" || last.RequestID != request {
		t.Errorf("record has Ended %t and the last answer %+v; want true, and a finalized answer with signature and slot", record.Ended, last)
	}
	if progress.Accepted != 1 || progress.Completed != 1 || progress.Finalized != 1 || progress.Failed != 0 || progress.Running != 0 {
		t.Errorf("progress %+v, want one finalized submission", progress)
	}
}

func TestClientProvesAgainAfterAStaleRoot(t *testing.T) {
	t.Parallel()
	r := &relay{t: t, status: final, submit: func(w http.ResponseWriter, n int) {
		if n < 3 {
			refuse(w, 400, "root_not_found")
			return
		}
		accept(w, n)
	}}
	record, _ := runClient(t, r, nil)
	if len(record.Requests) != 4 {
		t.Fatalf("%d requests, want 4", len(record.Requests))
	}
	first, last := record.Requests[0].Inputs, record.Requests[3].Inputs
	if first.Nullifiers != last.Nullifiers || first.Commitments != last.Commitments || first.Root == last.Root {
		t.Error("the last request is not the same spend against another root")
	}
	if record.Requests[0].IdempotencyKey != "" && record.Requests[0].IdempotencyKey == record.Requests[1].IdempotencyKey {
		t.Error("another request has the same Idempotency-Key")
	}
}

func TestClientGivesUpAfterSixteenStaleRoots(t *testing.T) {
	t.Parallel()
	r := &relay{t: t, submit: func(w http.ResponseWriter, _ int) { refuse(w, 400, "root_not_found") }}
	record, _ := runClient(t, r, nil)
	if len(record.Requests) != 16 || !record.Ended {
		t.Errorf("%d requests, and the record has Ended %t; want 16 and true", len(record.Requests), record.Ended)
	}
}

func TestUnansweredRequestsAreRepeatedByteForByte(t *testing.T) {
	t.Parallel()
	r := &relay{t: t, status: final, submit: func(w http.ResponseWriter, n int) {
		switch n {
		case 0:
			panic(http.ErrAbortHandler)
		case 1:
			refuse(w, 503, "pool_busy")
		case 2:
			refuse(w, 429, "rate_limited")
		case 3:
			refuse(w, 500, "internal")
		case 4:
			fmt.Fprint(w, "not JSON")
		default:
			accept(w, n)
		}
	}}
	record, progress := runClient(t, r, nil)
	if len(record.Requests) != 1 {
		t.Fatalf("%d requests, want one request that is repeated", len(record.Requests))
	}
	for i := range 6 {
		got := r.received[i]
		if got.raw != r.received[0].raw || got.key != r.received[0].key || got.path != r.received[0].path {
			t.Errorf("repeat %d differs from the first request", i)
		}
	}
	want := []string{"0 connection", "503 pool_busy", "429 rate_limited", "500 internal", "0 answer is not JSON", "202 pending"}
	var got []string
	for _, a := range record.Requests[0].Answers[:6] {
		got = append(got, fmt.Sprintf("%d %s%s%s", a.Status, a.State, a.Code, a.Fault))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if progress.Silent != 2 || progress.Busy != 2 {
		t.Errorf("progress %+v, want 2 silent and 2 busy", progress)
	}
}

func TestFinalAnswersEndTheSpend(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		submit, status   func(http.ResponseWriter, int)
		wantCode         string
		accepted, failed int
	}{
		"a refusal ends the spend": {
			submit:   func(w http.ResponseWriter, _ int) { refuse(w, 409, "nullifier_spent") },
			wantCode: "nullifier_spent",
		},
		"a failed submission ends the spend": {
			submit: accept,
			status: func(w http.ResponseWriter, _ int) {
				fmt.Fprintf(w, `{"success":true,"data":{"request_id":%q,"status":"failed","error":"x","error_code":"nullifier_spent"}}`, request)
			},
			wantCode: "nullifier_spent", accepted: 1, failed: 1,
		},
		"an unknown submission ends the spend": {
			submit:   accept,
			status:   func(w http.ResponseWriter, _ int) { refuse(w, 404, "not_found") },
			wantCode: "not_found", accepted: 1,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			record, progress := runClient(t, &relay{t: t, submit: tc.submit, status: tc.status}, nil)
			answers := record.Requests[0].Answers
			if got := answers[len(answers)-1].Code; got != tc.wantCode || !record.Ended {
				t.Errorf("record has Ended %t, and its last code is %q; want true and %q", record.Ended, got, tc.wantCode)
			}
			if progress.Accepted != tc.accepted || progress.Failed != tc.failed {
				t.Errorf("progress %+v, want %d accepted and %d failed", progress, tc.accepted, tc.failed)
			}
		})
	}
}

// runClients runs at least 120 clients against a relay.
func runClients(t *testing.T, r *relay, change func(*load.Options)) *load.Load {
	t.Helper()
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	o := options(t, server.URL)
	o.InFlight = 1000
	if change != nil {
		change(&o)
	}
	l, err := load.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	arrivals, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for l.Journal().Progress().Spends < 120 && ctx.Err() == nil {
			time.Sleep(time.Millisecond) // a poll, which the deadline bounds
		}
		stop()
	}()
	l.Run(ctx, arrivals)
	return l
}

func TestClientsShowEveryBehaviour(t *testing.T) {
	t.Parallel()
	r := &relay{t: t, submit: accept, status: final}
	var mu sync.Mutex
	directSends := 0
	l := runClients(t, r, func(o *load.Options) {
		o.Rivals, o.DirectShare = 0.3, 0.2
		o.Direct = func(context.Context, *load.Request) { mu.Lock(); directSends++; mu.Unlock() }
	})
	seen := map[string]bool{}
	first := map[string]string{}
	for _, got := range r.received {
		seen[got.path] = true
		seen["prefer "+got.prefer] = true
		seen[fmt.Sprintf("key %t", got.key != "")] = true
		seen[fmt.Sprintf("recipient %t", got.body.Recipient != nil)] = true
		seen[fmt.Sprintf("notes %t", got.body.EncryptedNotes != nil)] = true
		inputs := string(got.body.PublicInputs)
		if proof, known := first[inputs]; known {
			seen[fmt.Sprintf("repeated with the same proof %t", proof == string(got.body.ProofBytes))] = true
		}
		first[inputs] = string(got.body.ProofBytes)
	}
	for _, want := range []string{
		"/transact", "/withdraw", "prefer ", "prefer respond-async", "prefer wait=2", "key true", "key false", "recipient true", "recipient false",
		"notes true", "notes false", "repeated with the same proof true", "repeated with the same proof false",
	} {
		if !seen[want] {
			t.Errorf("no client did %q", want)
		}
	}
	if directSends == 0 {
		t.Error("no wallet sent its spend to the chain itself")
	}
	nullifiers := map[[32]byte]int{}
	rivals := 0
	for _, record := range l.Journal().Records() {
		n := record.Requests[0].Inputs.Nullifiers[0]
		if nullifiers[n]++; nullifiers[n] == 2 {
			rivals++
		}
	}
	if rivals == 0 {
		t.Error("no spend had a rival")
	}
}

// The requests to the relay must be valid, or the load measures refusals.
func TestRequestsAreValid(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../circuit/verification_key.json")
	if err != nil {
		t.Fatal(err)
	}
	key, err := groth16.ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	profile := shieldpool.Development()
	pool, err := profile.Pool(profile.Mints[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range runClients(t, &relay{t: t, submit: accept, status: final}, nil).Journal().Records() {
		for _, q := range record.Requests {
			in, err := shieldpool.ParsePublicInputs(q.Inputs.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			if err := in.CheckNullifiers(); err != nil {
				t.Error(err)
			}
			if !profile.BindsDestination(in, shieldpool.Destination{Recipient: q.Recipient}) {
				t.Error("a request does not bind its recipient")
			}
			if in.PublicAmount < 0 {
				if err := pool.CheckRecipient(profile.ProgramID, q.Recipient, in); err != nil {
					t.Error(err)
				}
				if net, ok := profile.Fees.Net(in.Gross()); !ok || net < profile.RecipientMinimum {
					t.Errorf("a withdrawal of %d leaves its recipient too little", in.Gross())
				}
			}
			bound, err := pool.NoteBound(shieldpool.KindWithdrawal, shieldpool.Legacy, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := shieldpool.CheckNotes(q.Notes, bound); err != nil {
				t.Error(err)
			}
			for _, wire := range q.Proofs {
				proof, err := groth16.ParseProof(wire[:])
				if err != nil {
					t.Fatal(err)
				}
				signals := in.Signals()
				if _, err := key.Verify(proof, signals[:]); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

func TestSameSeedGivesSameSpends(t *testing.T) {
	t.Parallel()
	spends := func(seed uint64) (out [][]byte) {
		l := runClients(t, &relay{t: t, submit: accept, status: final}, func(o *load.Options) { o.Seed = seed })
		for _, record := range l.Journal().Records() {
			nullifiers := record.Requests[0].Inputs.Nullifiers
			out = append(out, slices.Concat(nullifiers[0][:], nullifiers[1][:]))
		}
		slices.SortFunc(out, bytes.Compare)
		return out
	}
	first, again, other := spends(1), spends(1), spends(2)
	n := min(len(first), len(again))
	common := 0
	for _, s := range first {
		if slices.ContainsFunc(again, func(o []byte) bool { return bytes.Equal(s, o) }) {
			common++
		}
	}
	if common < n {
		t.Errorf("two runs with one seed have %d spends in common, want %d", common, n)
	}
	if slices.ContainsFunc(other, func(o []byte) bool { return bytes.Equal(first[0], o) }) {
		t.Error("another seed spends the same notes")
	}
}

func TestStoppedClientIsNotRecordedAsEnded(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	var once sync.Once
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		once.Do(func() { close(asked) })
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)
	l, err := load.New(options(t, server.URL))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() { <-asked; cancel() }()
	l.Run(ctx, ctx)
	records := l.Journal().Records()
	if len(records) == 0 || records[0].Ended {
		t.Errorf("%d records; want at least one, and the first not ended", len(records))
	}
	if p := l.Journal().Progress(); p.Running != 0 {
		t.Errorf("%d clients still run after the end of Run", p.Running)
	}
}

func TestNewRefusesInvalidOptions(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*load.Options)
		want   string
	}{
		"no relays":              {func(o *load.Options) { o.Relays = nil }, "are required"},
		"no clock":               {func(o *load.Options) { o.Now = nil }, "are required"},
		"no capacity":            {func(o *load.Options) { o.InFlight = 0 }, "InFlight 0"},
		"a negative rate":        {func(o *load.Options) { o.Rate = -1 }, "Rate -1"},
		"swaps without a market": {func(o *load.Options) { o.Swaps = 0.1 }, "Market is missing"},
		"an incomplete market":   {func(o *load.Options) { o.Market = &load.Market{} }, "Pool, Mint and Quote are required"},
		"polls out of order":     {func(o *load.Options) { o.PollMax = o.PollMin / 2 }, "PollMax at least PollMin"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t, "http://127.0.0.1:1")
			tc.change(&o)
			if _, err := load.New(o); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

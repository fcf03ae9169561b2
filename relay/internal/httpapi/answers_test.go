package httpapi_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/commitments"
	"github.com/relaypool/relaypool/relay/internal/httpapi"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/viewingkey"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/openapi/spec"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const sol = "So11111111111111111111111111111111111111112"

// result is the SubmissionResult of a submission that has not landed.
func result(status string) map[string]any {
	return map[string]any{
		"request_id": submissionID.String(), "status": status, "signature": nil, "tx_id": nil,
		"solana_signature": nil, "slot": nil, "leaf_indices": []any{}, "root": nil,
	}
}

func landed() map[string]any {
	text := signature.String()
	return merge(result("completed"), map[string]any{
		"signature": text, "tx_id": text, "solana_signature": text,
		"slot": 42.0, "leaf_indices": []any{6.0, 7.0}, "root": hex32,
	})
}

// state is the SubmissionStatus of a submission that has not landed.
func state(status string) map[string]any {
	s := merge(result(status), map[string]any{
		"finalized": false, "rolled_back": false, "error": nil, "error_code": nil,
		"created_at": "2026-11-21T11:00:00Z", "completed_at": nil,
	})
	delete(s, "signature")
	return s
}

func success(data map[string]any) map[string]any {
	return map[string]any{"success": true, "data": data, "error": nil}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	waitReturns := func(s *submission.Submission) *domains {
		d := submitReturns(pending(), nil)
		d.wait = func(context.Context, uuid.UUID) (*submission.Submission, error) { return s, nil }
		return d
	}
	getReturns := func(s *submission.Submission) *domains {
		return &domains{get: func(_ context.Context, id uuid.UUID) (*submission.Submission, error) {
			if id != submissionID {
				return nil, errors.New("the request is for another submission")
			}
			return s, nil
		}}
	}
	processing := pending()
	processing.State, processing.Signature = submission.Processing, &signature
	finalized := completed()
	finalized.Finalized = true
	rolledBack := failed(refusal.New(refusal.ProgramError, "refused: Conservation").With("program_code", "0x1031").With("program_error", "Conservation"))
	rolledBack.RolledBack, rolledBack.Signature = true, &signature
	stale := failed(refusal.New(refusal.RootNotFound, "RootNotFound").With("current_root", hex32).With("next_index", 8))
	accepted := merge(success(result("pending")), map[string]any{"request_id": submissionID.String(), "signature": nil})
	location := map[string]string{"Location": "/status/" + submissionID.String()}

	tests := map[string]struct {
		request    *http.Request
		domains    *domains
		wantStatus int
		wantHeader map[string]string
		want       map[string]any
	}{
		"a submission confirmed within the wait is answered 200": {
			request: post("/transact", transactBody()), domains: waitReturns(completed()), wantStatus: 200,
			want: merge(success(landed()), map[string]any{"request_id": submissionID.String(), "signature": signature.String()}),
		},
		"a repeat of a completed submission is answered without waiting": {
			request: post("/transact", transactBody()), domains: submitReturns(completed(), nil), wantStatus: 200,
			want: merge(success(landed()), map[string]any{"request_id": submissionID.String(), "signature": signature.String()}),
		},
		"a submission still pending when the wait is over is answered 202": {
			request: post("/transact", transactBody()), domains: waitReturns(pending()), wantStatus: 202,
			wantHeader: location, want: accepted,
		},
		"an attempt that has not landed shows no signature": {
			request: post("/transact", transactBody()), domains: waitReturns(processing), wantStatus: 202, wantHeader: location,
			want: merge(accepted, map[string]any{"data": result("processing")}),
		},
		"a submission that fails within the wait is answered with the refusal's status and its own id": {
			request: post("/transact", transactBody()), domains: waitReturns(failed(refusal.New(refusal.NullifierSpent, "spent").With("nullifier_index", 1))),
			wantStatus: 409,
			want: map[string]any{
				"error": true, "code": "nullifier_spent", "message": "spent",
				"nullifier_index": 1.0, "request_id": submissionID.String(),
			},
		},
		"a failed submission that was completed on a dead fork is marked as rolled back": {
			request: post("/transact", transactBody()), domains: submitReturns(rolledBack, nil), wantStatus: 422,
			want: map[string]any{
				"error": true, "code": "program_error", "message": "refused: Conservation", "rolled_back": true,
				"program_code": "0x1031", "program_error": "Conservation", "request_id": submissionID.String(),
			},
		},
		"a temporary refusal within the wait carries Retry-After": {
			request: post("/transact", transactBody()), domains: waitReturns(failed(refusal.New(refusal.ChainUnavailable, "no chain"))),
			wantStatus: 503, wantHeader: map[string]string{"Retry-After": "5"},
			want: map[string]any{"error": true, "code": "chain_unavailable", "message": "no chain", "request_id": submissionID.String()},
		},
		"a withdrawal is queued": {
			request: post("/withdraw", transactBody()), domains: submitReturns(pending(), nil), wantStatus: 202, wantHeader: location,
			want: success(map[string]any{
				"request_id": submissionID.String(), "status": "queued",
				"message": "withdrawal accepted; follow it at GET /status/" + submissionID.String(),
			}),
		},
		"a repeated withdrawal is queued, even after it has ended": {
			request: post("/withdraw", transactBody()), domains: submitReturns(completed(), nil), wantStatus: 202, wantHeader: location,
			want: success(map[string]any{
				"request_id": submissionID.String(), "status": "queued",
				"message": "withdrawal accepted; follow it at GET /status/" + submissionID.String(),
			}),
		},
		"swaps are not available": {
			request: post("/transact_swap", `{}`), wantStatus: 501,
			want: map[string]any{
				"error": true, "code": "not_available",
				"message": "this relay does not swap: withdraw with POST /transact or POST /withdraw, or use a relay that does",
			},
		},
		"the status of a pending submission": {
			request: get("/status/" + submissionID.String()), domains: getReturns(pending()), wantStatus: 200, want: success(state("pending")),
		},
		"the status of a processing submission": {
			request: get("/status/" + submissionID.String()), domains: getReturns(processing), wantStatus: 200, want: success(state("processing")),
		},
		"the status of a finalized submission": {
			request: get("/status/" + submissionID.String()), domains: getReturns(finalized), wantStatus: 200,
			want: success(merge(state("completed"), map[string]any{
				"tx_id": signature.String(), "solana_signature": signature.String(), "slot": 42.0, "leaf_indices": []any{6.0, 7.0},
				"root": hex32, "finalized": true, "completed_at": "2026-11-21T11:00:02Z",
			})),
		},
		"the status of a submission with a stale root has the current root": {
			request: get("/status/" + submissionID.String()), domains: getReturns(stale), wantStatus: 200,
			want: success(merge(state("failed"), map[string]any{
				"error": "RootNotFound", "error_code": "root_not_found", "current_root": hex32, "next_index": 8.0, "completed_at": "2026-11-21T11:00:03Z",
			})),
		},
		"the status of a submission that was rolled back shows no signature": {
			request: get("/status/" + submissionID.String()), domains: getReturns(rolledBack), wantStatus: 200,
			want: success(merge(state("failed"), map[string]any{
				"error": "refused: Conservation", "error_code": "program_error", "program_code": "0x1031", "program_error": "Conservation",
				"rolled_back": true, "completed_at": "2026-11-21T11:00:03Z",
			})),
		},
		"the backlog": {
			request: get("/backlog"), wantStatus: 200,
			domains: &domains{backlog: func() (submission.Backlog, error) {
				return submission.Backlog{
					Pending: 2, Processing: 1, OldestAge: 3900 * time.Millisecond, QueuedJobs: []int64{18, 19},
					Due: 1, OldestDue: 2900 * time.Millisecond, Held: map[string]int64{"fee_payer_empty": 4},
				}, nil
			}},
			want: map[string]any{
				"pending_count": 2.0, "processing_count": 1.0, "oldest_age_seconds": 3.0, "queued_jobs": []any{18.0, 19.0},
				"due_count": 1.0, "oldest_due_age_seconds": 2.0, "held": map[string]any{"fee_payer_empty": 4.0},
			},
		},
		"an empty backlog has a list and an object": {
			request: get("/backlog"), wantStatus: 200,
			domains: &domains{backlog: func() (submission.Backlog, error) { return submission.Backlog{}, nil }},
			want: map[string]any{
				"pending_count": 0.0, "processing_count": 0.0, "oldest_age_seconds": 0.0, "queued_jobs": []any{},
				"due_count": 0.0, "oldest_due_age_seconds": 0.0, "held": map[string]any{},
			},
		},
		"no commitments are an empty list": {
			request: get("/commitments"), wantStatus: 200,
			domains: publishedLeaves(0), wantHeader: map[string]string{"Cache-Control": "no-cache"},
			want: map[string]any{"commitments": []any{}, "count": 0.0},
		},
		"commitments": {
			request: get("/commitments?mint=" + sol), wantStatus: 200,
			domains: publishedLeaves(2), wantHeader: map[string]string{"Cache-Control": "no-cache"},
			want: map[string]any{"count": 2.0, "commitments": []any{
				map[string]any{"index": 0.0, "commitment": strings.Repeat("0", 63) + "1"},
				map[string]any{"index": 1.0, "commitment": strings.Repeat("0", 63) + "2"},
			}},
		},
		"the Merkle root": {
			request: get("/merkle-root"), wantStatus: 200,
			domains: &domains{root: func(string) (onchain.Root, error) {
				return onchain.Root{Root: *completed().Root, Tree: solana.MustPublicKeyFromBase58("GQuRgbCdWVcKHb4cSGKAvcQCJ3aCDhFDeiXhqw7Bybyr"), NextIndex: 8, Slot: 4711}, nil
			}},
			want: map[string]any{"root": hex32, "merkle_tree": "GQuRgbCdWVcKHb4cSGKAvcQCJ3aCDhFDeiXhqw7Bybyr", "next_index": 8.0, "slot": 4711.0},
		},
		"a processed Merkle root, with the leaves that are not confirmed": {
			request: get("/merkle-root?commitment=processed"), wantStatus: 200,
			domains: &domains{processed: func() (p commitments.Processed, err error) {
				p.Root = onchain.Root{Root: *completed().Root, Tree: solana.MustPublicKeyFromBase58("GQuRgbCdWVcKHb4cSGKAvcQCJ3aCDhFDeiXhqw7Bybyr"), NextIndex: 10, Slot: 4713}
				p.FromIndex, p.Leaves = 8, [][32]byte{*completed().Root, *completed().Root}
				return p, nil
			}},
			want: map[string]any{
				"root": hex32, "merkle_tree": "GQuRgbCdWVcKHb4cSGKAvcQCJ3aCDhFDeiXhqw7Bybyr", "next_index": 10.0, "slot": 4713.0,
				"from_index": 8.0, "leaves": []any{hex32, hex32},
			},
		},
		"the compliance key and its id": {
			request: get("/compliance-key"), wantStatus: 200,
			want: map[string]any{
				"algorithm": "x25519-sealed-box", "key_id": "1ac2f192702849e0",
				"public_key": "0102030000000000000000000000000000000000000000000000000000000000",
			},
		},
		"a registration": {
			request: post("/viewing-key/register", registerBody()), wantStatus: 200,
			domains: &domains{register: func(viewingkey.Registration) (string, error) { return hex32, nil }},
			want:    success(map[string]any{"registered": true, "identifier": hex32}),
		},
		"a healthy relay": {
			request: get("/health"), domains: &domains{health: healthy}, wantStatus: 200,
			want: map[string]any{
				"status": "ok", "version": "0.1.0", "timestamp": "2026-11-21T11:00:00Z",
				"checks": map[string]any{"database": map[string]any{"status": "ok"}},
			},
		},
		"a degraded relay still answers 200": {
			request: get("/health"), wantStatus: 200,
			domains: &domains{health: func() httpapi.HealthReport {
				return httpapi.HealthReport{Status: openapi.HealthStatusDegraded, Checks: map[string]openapi.HealthCheck{}}
			}},
			want: map[string]any{"status": "degraded", "version": "0.1.0", "timestamp": "2026-11-21T11:00:00Z", "checks": map[string]any{}},
		},
		"a relay that is down answers 503": {
			request: get("/health"), wantStatus: 503,
			domains: &domains{health: func() httpapi.HealthReport {
				return httpapi.HealthReport{Status: openapi.HealthStatusDown, Checks: map[string]openapi.HealthCheck{}}
			}},
			want: map[string]any{"status": "down", "version": "0.1.0", "timestamp": "2026-11-21T11:00:00Z", "checks": map[string]any{}},
		},
		"the service information document": {
			request: get("/"), wantStatus: 200,
			want: map[string]any{
				"service": "relaypool", "status": "running", "version": "0.1.0", "build": "abc1234",
				"endpoints": map[string]any{
					"service": "GET /", "transact": "POST /transact", "withdraw": "POST /withdraw", "transact_swap": "POST /transact_swap",
					"status": "GET /status/:id", "viewing_key_register": "POST /viewing-key/register", "commitments": "GET /commitments",
					"merkle_root": "GET /merkle-root", "backlog": "GET /backlog", "compliance_key": "GET /compliance-key", "health": "GET /health",
				},
				"limits": map[string]any{
					"proof_bytes": 256.0, "public_inputs_bytes": 264.0, "encrypted_notes_max": 2.0, "body_bytes": 16384.0,
					"note_envelope_max_bytes": map[string]any{"transfer": 257.0, "withdrawal": 256.0, "swap": 185.0},
					"note_envelope_max_bytes_by_format": map[string]any{
						"legacy": map[string]any{"transfer": 257.0, "withdrawal": 256.0, "swap": 185.0},
						"v1":     map[string]any{"transfer": 3185.0, "withdrawal": 3153.0, "swap": 3081.0},
					},
				},
				"pool": map[string]any{
					"program_id": "c1oak6tetxYnNfvXKFkpn1d98FxtK7B68vBQLYQpWKp", "profile": "development", "ext_data": "sha256-31",
					"mints": []any{map[string]any{"address": sol, "field": "000c18307f0d313d7af546aba01b108a68640b7058f5d3a7ea0eaeda1924096a"}},
				},
				"swaps": map[string]any{"enabled": false, "timeout_slots": 200.0, "output": "SPL Token"},
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := tt.domains
			if d == nil {
				d = &domains{}
			}
			resp, body := newFixture(t, d).do(t, tt.request)
			if resp.StatusCode != tt.wantStatus {
				t.Errorf("status %d, want %d", resp.StatusCode, tt.wantStatus)
			}
			for name, want := range tt.wantHeader {
				if got := resp.Header.Get(name); got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
			if got := resp.Header.Get("Cache-Control"); got != "no-store" && tt.wantHeader["Cache-Control"] == "" {
				t.Errorf("Cache-Control is %q, want no-store", got)
			}
			if diff := cmp.Diff(tt.want, object(t, body)); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
		})
	}
}

// TestServiceInfoListsAllRoutes compares the endpoints of GET / with the OpenAPI
// document.
func TestServiceInfoListsAllRoutes(t *testing.T) {
	t.Parallel()
	doc, err := spec.GetSpec()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			if path == "/status/{id}" {
				path = "/status/:id"
			}
			want[method+" "+path] = true
		}
	}
	_, body := newFixture(t, &domains{}).do(t, get("/"))
	got := map[string]bool{}
	for _, endpoint := range object(t, body)["endpoints"].(map[string]any) {
		got[endpoint.(string)] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("endpoints (-document +GET /):\n%s", diff)
	}
}

// TestRequestFieldsReachTheDomains checks which parts of a request reach the domains.
func TestRequestFieldsReachTheDomains(t *testing.T) {
	t.Parallel()
	t.Run("a submission with all its fields", func(t *testing.T) {
		t.Parallel()
		var got submission.Request
		d := &domains{submit: func(_ context.Context, r submission.Request) (*submission.Submission, error) {
			got = r
			return pending(), nil
		}}
		body := transactBody(
			with("proof_bytes", "AAEC"), with("public_inputs", "AwQ="), with("recipient", "somebody"),
			with("encrypted_notes", []string{"qrvM", ""}), with("unknown", 1), with("Proof_Bytes", 1))
		newFixture(t, d).do(t, post("/transact", body, "Prefer", "respond-async", "Idempotency-Key", "a-key"))
		want := submission.Request{
			Proof: []byte{0, 1, 2}, PublicInputs: []byte{3, 4}, Recipient: "somebody",
			Notes: [][]byte{{0xaa, 0xbb, 0xcc}, {}}, IdempotencyKey: "a-key",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("request (-want +got):\n%s", diff)
		}
	})
	t.Run("a withdrawal without its optional fields, which may be null", func(t *testing.T) {
		t.Parallel()
		var got submission.Request
		d := &domains{submit: func(_ context.Context, r submission.Request) (*submission.Submission, error) {
			got = r
			return pending(), nil
		}}
		body := transactBody(with("proof_bytes", ""), with("public_inputs", ""), with("recipient", nil), with("encrypted_notes", nil))
		newFixture(t, d).do(t, post("/withdraw", body))
		if diff := cmp.Diff(submission.Request{Proof: []byte{}, PublicInputs: []byte{}, WithdrawalOnly: true}, got); diff != "" {
			t.Errorf("request (-want +got):\n%s", diff)
		}
	})
	t.Run("a registration with an identifier", func(t *testing.T) {
		t.Parallel()
		var got viewingkey.Registration
		d := &domains{register: func(r viewingkey.Registration) (string, error) {
			got = r
			return hex32, nil
		}}
		newFixture(t, d).do(t, post("/viewing-key/register", registerBody(with("identifier", "id"))))
		id := "id"
		if diff := cmp.Diff(viewingkey.Registration{UserPubkey: "wallet", ViewingKeyHex: "key", Signature: "signature", Identifier: &id, Address: "192.0.2.1"}, got); diff != "" {
			t.Errorf("registration (-want +got):\n%s", diff)
		}
	})
	t.Run("a registration whose identifier is null has none", func(t *testing.T) {
		t.Parallel()
		var got viewingkey.Registration
		d := &domains{register: func(r viewingkey.Registration) (string, error) {
			got = r
			return hex32, nil
		}}
		newFixture(t, d).do(t, post("/viewing-key/register", registerBody(with("identifier", nil))))
		if got.Identifier != nil {
			t.Errorf("identifier %q, want none", *got.Identifier)
		}
	})
	t.Run("the mint of a root request", func(t *testing.T) {
		t.Parallel()
		for path, want := range map[string]string{"/merkle-root": "", "/merkle-root?mint=" + sol: sol} {
			got := "not called"
			d := &domains{root: func(mint string) (onchain.Root, error) {
				got = mint
				return onchain.Root{Tree: solana.SystemProgramID}, nil
			}}
			newFixture(t, d).do(t, get(path))
			if got != want {
				t.Errorf("%s asks for mint %q, want %q", path, got, want)
			}
		}
	})
	t.Run("the mint of another pool of the profile", func(t *testing.T) {
		t.Parallel()
		profile := shieldpool.Development()
		other := shieldpool.Mint{Address: solana.PublicKey{8}, Field: [32]byte{31: 8}}
		profile.Mints = append(profile.Mints, other)
		profile.Seeds.Pool = append(profile.Seeds.Pool, shieldpool.Seed{Value: shieldpool.SeedMint})
		f := newFixture(t, publishedLeaves(2), func(o *httpapi.Options) { o.Info.Profile = profile })
		for path, want := range map[string]int{
			"/commitments?mint=" + sol: http.StatusOK, "/commitments?mint=" + other.Address.String(): http.StatusBadRequest,
			"/merkle-root?commitment=processed&mint=" + other.Address.String(): http.StatusBadRequest,
		} {
			if got, body := f.do(t, get(path)); got.StatusCode != want {
				t.Errorf("%s is answered %d, want %d: %s", path, got.StatusCode, want, body)
			}
		}
	})
}

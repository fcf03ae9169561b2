package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/httpapi"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/swap"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/openapi/spec"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

var (
	router          = solana.MustPublicKeyFromBase58("JUP6LkbZbjS1jKKwapdHNy74zcZ3tLUZoi5QNyVTaV4")
	outputMint      = solana.PublicKey(bytes.Repeat([]byte{5}, 32))
	outputATA       = solana.PublicKey(bytes.Repeat([]byte{6}, 32))
	secondSignature = solana.Signature(bytes.Repeat([]byte{11}, 64))
)

// enableSwaps enables swaps.
func enableSwaps(o *httpapi.Options) { o.Info.Swaps = &httpapi.Swaps{RouterProgram: router} }

// swapBody is a well-formed body of a swap.
func swapBody(change ...func(map[string]any)) string {
	return transactBody(append([]func(map[string]any){
		with("output_mint", outputMint.String()), with("recipient_ata", outputATA.String()), with("min_output_amount", "20150000"),
	}, change...)...)
}

// asSwap turns a submission into a swap with the given second leg.
func asSwap(s *submission.Submission, execution *submission.Swap) *submission.Submission {
	profile := shieldpool.Development()
	pool, err := profile.Pool(profile.Mints[0])
	if err != nil {
		panic(err)
	}
	s.Kind, s.Pool, s.Swap = shieldpool.KindSwap, pool.Address, execution
	s.Call = &shieldpool.Call{
		Inputs:      &shieldpool.PublicInputs{MintAddress: profile.Mints[0].Field, Nullifiers: [2][32]byte{[32]byte(bytes.Repeat([]byte{1}, 32)), {31: 2}}},
		Destination: shieldpool.Destination{Recipient: solana.PublicKey{9}, Swap: &shieldpool.SwapTerms{OutputMint: outputMint, RecipientATA: outputATA, MinOutput: 1}},
	}
	return s
}

// secondLeg is a second leg in a phase, with the transaction that ended it, if any.
func secondLeg(phase submission.Phase, finalized bool) *submission.Swap {
	s := &submission.Swap{Phase: phase, TimeoutSlot: 242, Finalized: finalized}
	if phase == submission.PhaseExecuted || phase == submission.PhaseRefunded {
		at := now.Add(90 * time.Second)
		s.Signature, s.EndedAt, s.Slot = &secondSignature, &at, 99
	}
	return s
}

// swapState is the swap state address that belongs to the nullifier of asSwap.
func swapState(t *testing.T) string {
	t.Helper()
	profile := shieldpool.Development()
	pool, err := profile.Pool(profile.Mints[0])
	if err != nil {
		t.Fatal(err)
	}
	state, _, err := pool.SwapState([32]byte(bytes.Repeat([]byte{1}, 32)))
	if err != nil {
		t.Fatal(err)
	}
	return state.String()
}

const refundedText = "the swap found no execution at the user's minimum or above before its timeout, so its lamports were returned to the recipient's wallet: to try again, deposit them anew, and choose a lower minimum if the price has moved"

func TestAnswersToSwaps(t *testing.T) {
	t.Parallel()
	ids := map[string]any{"swap_state_pda": swapState(t), "nullifier": hex32}
	id, first := submissionID.String(), signature.String()
	accepted := func(data map[string]any) map[string]any {
		return merge(success(merge(data, ids)), ids, map[string]any{"request_id": id, "signature": nil})
	}
	confirmed := func(status string, more map[string]any) map[string]any {
		return merge(success(merge(landed(), ids, map[string]any{"status": status}, more)), ids, map[string]any{"request_id": id, "signature": first})
	}
	processing := asSwap(pending(), nil)
	processing.State, processing.Signature = submission.Processing, &signature
	otherPool := asSwap(pending(), nil)
	otherPool.Pool = solana.PublicKey{7}
	tests := map[string]struct {
		waited     *submission.Submission
		wantStatus int
		want       map[string]any
	}{
		"a swap with a pending first leg is answered 202 with its identifiers": {
			waited: asSwap(pending(), nil), wantStatus: 202, want: accepted(result("pending")),
		},
		"a swap with a processing first leg shows no signature": {
			waited: processing, wantStatus: 202, want: accepted(result("processing")),
		},
		"a swap with a confirmed first leg is answered 200 and processing": {
			waited: asSwap(completed(), secondLeg(submission.PhaseFunded, false)), wantStatus: 200,
			want: confirmed("processing", map[string]any{"swap_phase": "funded", "swap_timeout_slot": 242.0}),
		},
		"a swap without a recorded second leg is funded": {
			waited: asSwap(completed(), nil), wantStatus: 200, want: confirmed("processing", map[string]any{"swap_phase": "funded"}),
		},
		"the repeat of an executed swap is completed": {
			waited: asSwap(completed(), secondLeg(submission.PhaseExecuted, true)), wantStatus: 200,
			want: confirmed("completed", map[string]any{"swap_phase": "executed", "swap_signature": secondSignature.String(), "swap_timeout_slot": 242.0}),
		},
		"the repeat of a refunded swap is a conflict that names the refund": {
			waited: asSwap(completed(), secondLeg(submission.PhaseRefunded, false)), wantStatus: 409,
			want: map[string]any{"error": true, "code": "swap_refunded", "message": refundedText, "request_id": id, "refund_signature": secondSignature.String()},
		},
		"a swap with a failed first leg has the refusal's status": {
			waited: asSwap(failed(refusal.New(refusal.NullifierSpent, "spent").With("nullifier_index", 0)), nil), wantStatus: 409,
			want: map[string]any{"error": true, "code": "nullifier_spent", "message": "spent", "nullifier_index": 0.0, "request_id": id},
		},
		"a swap of another pool has no swap state address": {
			waited: otherPool, wantStatus: 202,
			want: merge(success(merge(result("pending"), map[string]any{"nullifier": hex32})), map[string]any{"nullifier": hex32, "request_id": id, "signature": nil}),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := submitReturns(asSwap(pending(), nil), nil)
			d.wait = func(context.Context, uuid.UUID) (*submission.Submission, error) { return tt.waited, nil }
			resp, body := newFixture(t, d, enableSwaps).do(t, post("/transact_swap", swapBody()))
			if resp.StatusCode != tt.wantStatus {
				t.Errorf("status %d, want %d", resp.StatusCode, tt.wantStatus)
			}
			if got := resp.Header.Get("Location"); tt.wantStatus < 300 && got != "/status/"+id {
				t.Errorf("Location is %q, want %q", got, "/status/"+id)
			}
			if diff := cmp.Diff(tt.want, object(t, body)); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStatusOfSwaps(t *testing.T) {
	t.Parallel()
	ids := map[string]any{"swap_state_pda": swapState(t), "nullifier": hex32}
	text := signature.String()
	confirmed := func(more map[string]any) map[string]any {
		return merge(state("processing"), ids, map[string]any{
			"tx_id": text, "solana_signature": text, "slot": 42.0, "leaf_indices": []any{6.0, 7.0}, "root": hex32, "swap_timeout_slot": 242.0,
		}, more)
	}
	deferred := secondLeg(submission.PhaseFunded, false)
	deferred.HeldBy = "swap_price"
	executedButHeld := secondLeg(submission.PhaseExecuted, true)
	executedButHeld.HeldBy = "swap_price"
	finalizeFirstLeg := func(s *submission.Submission) *submission.Submission {
		s.Finalized = true
		return s
	}
	reopened := asSwap(pending(), secondLeg(submission.PhaseExecuted, true))
	reopened.State, reopened.Signature = submission.Processing, &signature
	rolledBack := asSwap(failed(refusal.New(refusal.NullifierSpent, "spent").With("nullifier_index", 1)), secondLeg(submission.PhaseQuoted, false))
	rolledBack.RolledBack = true
	tests := map[string]struct {
		s    *submission.Submission
		want map[string]any
	}{
		"pending": {asSwap(pending(), nil), merge(state("pending"), ids)},
		"funded":  {asSwap(completed(), secondLeg(submission.PhaseFunded, false)), confirmed(map[string]any{"swap_phase": "funded"})},
		"funded, and nothing more is recorded yet": {asSwap(completed(), &submission.Swap{Phase: submission.PhaseFunded}), without(confirmed(map[string]any{"swap_phase": "funded"}), "swap_timeout_slot")},
		"waiting for its price":                    {asSwap(completed(), deferred), confirmed(map[string]any{"swap_phase": "funded", "swap_waits": "swap_price"})},
		"quoted, the first leg finalized: the swap is not finalized": {
			finalizeFirstLeg(asSwap(completed(), secondLeg(submission.PhaseQuoted, true))), confirmed(map[string]any{"swap_phase": "quoted"}),
		},
		"executed": {
			asSwap(completed(), secondLeg(submission.PhaseExecuted, false)),
			confirmed(map[string]any{"status": "completed", "swap_phase": "executed", "swap_signature": secondSignature.String(), "completed_at": "2026-11-21T11:01:30Z"}),
		},
		"executed, only the second leg finalized": {
			asSwap(completed(), secondLeg(submission.PhaseExecuted, true)),
			confirmed(map[string]any{"status": "completed", "swap_phase": "executed", "swap_signature": secondSignature.String(), "completed_at": "2026-11-21T11:01:30Z"}),
		},
		"executed, only the first leg finalized": {
			finalizeFirstLeg(asSwap(completed(), secondLeg(submission.PhaseExecuted, false))),
			confirmed(map[string]any{"status": "completed", "swap_phase": "executed", "swap_signature": secondSignature.String(), "completed_at": "2026-11-21T11:01:30Z"}),
		},
		"executed, both legs finalized: the old hold reason is not shown": {
			finalizeFirstLeg(asSwap(completed(), executedButHeld)),
			confirmed(map[string]any{"status": "completed", "swap_phase": "executed", "swap_signature": secondSignature.String(), "completed_at": "2026-11-21T11:01:30Z", "finalized": true}),
		},
		"refunded": {
			finalizeFirstLeg(asSwap(completed(), secondLeg(submission.PhaseRefunded, true))),
			confirmed(map[string]any{
				"status": "failed", "swap_phase": "refunded", "refund_signature": secondSignature.String(), "completed_at": "2026-11-21T11:01:30Z", "finalized": true,
				"error": refundedText, "error_code": "swap_refunded",
			}),
		},
		"processing again after a rollback: its second leg was rolled back too": {
			reopened, merge(state("processing"), ids),
		},
		"failed in its first leg after a rollback": {
			rolledBack, merge(state("failed"), ids, map[string]any{
				"error": "spent", "error_code": "nullifier_spent", "nullifier_index": 1.0, "rolled_back": true, "completed_at": "2026-11-21T11:00:03Z",
			}),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &domains{get: func(context.Context, uuid.UUID) (*submission.Submission, error) { return tt.s, nil }}
			// A relay with swaps disabled still serves existing swaps.
			for _, change := range [][]func(*httpapi.Options){{enableSwaps}, nil} {
				resp, body := newFixture(t, d, change...).do(t, get("/status/"+submissionID.String()))
				if diff := cmp.Diff(success(tt.want), object(t, body)); diff != "" || resp.StatusCode != http.StatusOK {
					t.Errorf("status %d, body (-want +got):\n%s", resp.StatusCode, diff)
				}
			}
		})
	}
}

func without(body map[string]any, name string) map[string]any {
	delete(body, name)
	return body
}

// TestEveryDeferralReasonIsDocumented checks that the OpenAPI document lists every reason for
// which a swap waits.
func TestEveryDeferralReasonIsDocumented(t *testing.T) {
	t.Parallel()
	doc, err := spec.GetSpec()
	if err != nil {
		t.Fatal(err)
	}
	waits := doc.Components.Schemas["SwapProgress"].Value.Properties["swap_waits"].Value
	word := regexp.MustCompile(waits.Pattern)
	for _, reason := range append(swap.Reasons(), txmgr.HoldChain) {
		if !strings.Contains(waits.Description, "`"+reason+"`") || !word.MatchString(reason) {
			t.Errorf("swap_waits in relay/openapi.yaml does not list %s", reason)
		}
	}
}

func TestSecondLegHasNoPublicStatus(t *testing.T) {
	t.Parallel()
	s := asSwap(completed(), secondLeg(submission.PhaseFunded, false))
	s.Kind = submission.KindSwapExecution
	d := &domains{get: func(context.Context, uuid.UUID) (*submission.Submission, error) { return s, nil }}
	resp, body := newFixture(t, d, enableSwaps).do(t, get("/status/"+submissionID.String()))
	if code := object(t, body)["code"]; resp.StatusCode != http.StatusNotFound || code != "not_found" {
		t.Errorf("status %d, code %v, want 404 not_found", resp.StatusCode, code)
	}
}

func TestServiceInfoWithSwaps(t *testing.T) {
	t.Parallel()
	_, body := newFixture(t, &domains{}, enableSwaps).do(t, get("/"))
	want := map[string]any{"enabled": true, "router_program": router.String(), "timeout_slots": 200.0, "output": "SPL Token"}
	if diff := cmp.Diff(want, object(t, body)["swaps"]); diff != "" {
		t.Errorf("swaps (-want +got):\n%s", diff)
	}
}

func TestOptionsWithSwaps(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*httpapi.Options)
		want   string
	}{
		"no router":                {func(o *httpapi.Options) { o.Info.Swaps = &httpapi.Swaps{} }, "Info.Swaps.RouterProgram is missing"},
		"no note bound for a swap": {func(o *httpapi.Options) { enableSwaps(o); o.Info.NoteBounds[shieldpool.KindSwap] = 0 }, "Info.NoteBounds of a swap is missing"},
		"an invalid note bound for swaps, without swaps": {func(o *httpapi.Options) { o.Info.NoteBounds[shieldpool.KindSwap] = -4 }, ""},
		"all options of a swap":                          {enableSwaps, ""},
		"no bound for a transfer":                        {func(o *httpapi.Options) { enableSwaps(o); o.Info.NoteBounds[shieldpool.KindTransfer] = 0 }, "Info.NoteBounds of a transfer is missing"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(&domains{}, &syncBuffer{}, &observed{})
			tt.change(&o)
			_, err := httpapi.New(o)
			if got := fmt.Sprint(err); tt.want == "" && err != nil || !strings.Contains(got, tt.want) {
				t.Errorf("error %v, want one that says %q", err, tt.want)
			}
		})
	}
}

// TestRejectedSwaps checks, over a real connection, which swaps the API refuses by
// itself: the fake domains have no functions.
func TestRejectedSwaps(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(newFixture(t, &domains{}, enableSwaps).handler)
	t.Cleanup(server.Close)
	const amount = "expected a whole number from 1 to 18446744073709551615 in the output mint's smallest unit, as a JSON number or a string, in decimal digits alone"
	notAnAmount := func(received string) string {
		return "min_output_amount is not an amount: " + amount + "; received a " + received
	}
	tests := map[string]struct {
		body        string
		wantCode    refusal.Code
		wantMessage string
	}{
		"no output mint": {
			transactBody(), refusal.InvalidRequest, "output_mint is missing: expected a string, the output mint's address in base58",
		},
		"an output mint that is a number": {
			swapBody(with("output_mint", 5)), refusal.InvalidRequest, "output_mint is a JSON number: expected a string, the output mint's address in base58",
		},
		"no token account": {
			swapBody(with("recipient_ata", nil)), refusal.InvalidRequest, "recipient_ata is missing: expected a string, the address of the recipient's token account in base58",
		},
		"a token account that is an array": {
			swapBody(with("recipient_ata", []string{"x"})), refusal.InvalidRequest, "recipient_ata is a JSON array: expected a string, the address of the recipient's token account in base58",
		},
		"a recipient that is an object": {
			swapBody(with("recipient", map[string]any{})), refusal.InvalidRequest, "recipient is a JSON object: expected a string, the recipient's address in base58",
		},
		"no proof":                                  {swapBody(with("proof_bytes", nil)), refusal.InvalidRequest, "proof_bytes is missing: expected a string, bytes in standard base64"},
		"no amount":                                 {swapBody(with("min_output_amount", nil)), refusal.InvalidRequest, "min_output_amount is missing: " + amount},
		"an amount that is true":                    {swapBody(with("min_output_amount", true)), refusal.InvalidRequest, "min_output_amount is a JSON boolean: " + amount},
		"an amount in an array":                     {swapBody(with("min_output_amount", []int{1})), refusal.InvalidRequest, "min_output_amount is a JSON array: " + amount},
		"an amount in an object":                    {swapBody(with("min_output_amount", map[string]any{"x": 1})), refusal.InvalidRequest, "min_output_amount is a JSON object: " + amount},
		"a number that is zero":                     {swapBodyWithAmount("0"), refusal.InvalidSwap, notAnAmount("number that is zero")},
		"a string that is zero":                     {swapBodyWithAmount(`"0"`), refusal.InvalidSwap, notAnAmount("string that is zero")},
		"minus zero":                                {swapBodyWithAmount("-0"), refusal.InvalidSwap, notAnAmount("number that is negative or begins with a minus")},
		"a negative number":                         {swapBodyWithAmount("-5"), refusal.InvalidSwap, notAnAmount("number that is negative or begins with a minus")},
		"a negative string":                         {swapBodyWithAmount(`"-5"`), refusal.InvalidSwap, notAnAmount("string that is negative or begins with a minus")},
		"a number with a fraction":                  {swapBodyWithAmount("1.5"), refusal.InvalidSwap, notAnAmount("number with a fraction")},
		"a string with a fraction":                  {swapBodyWithAmount(`"1.5"`), refusal.InvalidSwap, notAnAmount("string with a fraction")},
		"a whole number written as a fraction":      {swapBodyWithAmount("2.0"), refusal.InvalidSwap, notAnAmount("number with a fraction")},
		"a number with an exponent":                 {swapBodyWithAmount("1e3"), refusal.InvalidSwap, notAnAmount("number with an exponent")},
		"a number with a capital exponent":          {swapBodyWithAmount("1E+3"), refusal.InvalidSwap, notAnAmount("number with an exponent")},
		"a string with an exponent":                 {swapBodyWithAmount(`"1e3"`), refusal.InvalidSwap, notAnAmount("string with an exponent")},
		"a fraction with an exponent":               {swapBodyWithAmount("1.5e1"), refusal.InvalidSwap, notAnAmount("number with an exponent")},
		"a number of one above the maximum":         {swapBodyWithAmount("18446744073709551616"), refusal.InvalidSwap, notAnAmount("number that is larger, of 20 digits")},
		"a string of one above the maximum":         {swapBodyWithAmount(`"18446744073709551616"`), refusal.InvalidSwap, notAnAmount("string that is larger, of 20 digits")},
		"a number of very many digits":              {swapBodyWithAmount("1" + strings.Repeat("0", 400)), refusal.InvalidSwap, notAnAmount("number of 401 characters")},
		"an empty string":                           {swapBodyWithAmount(`""`), refusal.InvalidSwap, notAnAmount("string that is empty")},
		"a string with a plus":                      {swapBodyWithAmount(`"+5"`), refusal.InvalidSwap, notAnAmount("string with a sign")},
		"a string with a space before":              {swapBodyWithAmount(`" 5"`), refusal.InvalidSwap, notAnAmount("string with other characters than digits")},
		"a string with a space after":               {swapBodyWithAmount(`"5 "`), refusal.InvalidSwap, notAnAmount("string with other characters than digits")},
		"a string with a line break":                {swapBodyWithAmount(`"5\n"`), refusal.InvalidSwap, notAnAmount("string with other characters than digits")},
		"a string with leading zeros":               {swapBodyWithAmount(`"007"`), refusal.InvalidSwap, notAnAmount("string with a leading zero")},
		"a string of hexadecimal":                   {swapBodyWithAmount(`"0x10"`), refusal.InvalidSwap, notAnAmount("string with other characters than digits")},
		"a string with separators":                  {swapBodyWithAmount(`"1_000"`), refusal.InvalidSwap, notAnAmount("string with other characters than digits")},
		"a string of non-ASCII digits":              {swapBodyWithAmount(`"\u0661"`), refusal.InvalidSwap, notAnAmount("string with other characters than digits")},
		"a string of words":                         {swapBodyWithAmount(`"NaN"`), refusal.InvalidSwap, notAnAmount("string with other characters than digits")},
		"a number with a leading zero":              {swapBodyWithAmount("01"), refusal.InvalidJSON, ""},
		"a retired body":                            {`{"outputs":[]}`, refusal.LegacyWithdrawRetired, ""},
		"a body that is not JSON":                   {`x`, refusal.InvalidJSON, ""},
		"a valid amount followed by an invalid one": {strings.Replace(swapBodyWithAmount("-1"), `{`, `{"min_output_amount":1,`, 1), refusal.InvalidSwap, notAnAmount("number that is negative or begins with a minus")},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp, err := server.Client().Post(server.URL+"/transact_swap", "application/json", strings.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			var got struct{ Code, Message string }
			if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != http.StatusBadRequest || got.Code != string(tt.wantCode) || tt.wantMessage != "" && got.Message != tt.wantMessage {
				t.Errorf("status %d, code %s, message %q\nwant 400, %s, %q", resp.StatusCode, got.Code, got.Message, tt.wantCode, tt.wantMessage)
			}
		})
	}
}

// swapBodyWithAmount is a swap's body with the given amount as literal JSON.
func swapBodyWithAmount(amount string) string {
	return strings.Replace(swapBody(with("min_output_amount", "CANARY")), `"CANARY"`, amount, 1)
}

func TestSwapRequestsReachTheDomain(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		amount string
		want   uint64
	}{
		"a number":                        {"1", 1},
		"a string":                        {`"1"`, 1},
		"the maximum as a number":         {"18446744073709551615", 18446744073709551615},
		"the maximum as a string":         {`"18446744073709551615"`, 18446744073709551615},
		"more than a float can represent": {"9007199254740993", 9007199254740993},
		"a string with escapes":           {`"\u0031\u0032"`, 12},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got submission.Request
			d := &domains{submit: func(_ context.Context, r submission.Request) (*submission.Submission, error) {
				got = r
				return asSwap(pending(), nil), nil
			}}
			body := strings.Replace(swapBodyWithAmount(tt.amount), `{`, `{"recipient":"somebody","encrypted_notes":["qrvM"],`, 1)
			newFixture(t, d, enableSwaps).do(t, post("/transact_swap", body, "Prefer", "respond-async", "Idempotency-Key", "a-key"))
			want := submission.Request{
				Proof: bytes.Repeat([]byte{7}, shieldpool.ProofLength), PublicInputs: bytes.Repeat([]byte{8}, shieldpool.PublicInputsLength),
				Recipient: "somebody", Notes: [][]byte{{0xaa, 0xbb, 0xcc}}, IdempotencyKey: "a-key", WithdrawalOnly: true,
				Swap: &submission.SwapRequest{OutputMint: outputMint.String(), RecipientATA: outputATA.String(), MinOutput: tt.want},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

// TestGeneratedClientSwaps drives a swap with the generated client, with both
// forms of the amount.
func TestGeneratedClientSwaps(t *testing.T) {
	t.Parallel()
	const most = 18446744073709551615
	var got []uint64
	d := &domains{submit: func(_ context.Context, r submission.Request) (*submission.Submission, error) {
		got = append(got, r.Swap.MinOutput)
		return asSwap(completed(), secondLeg(submission.PhaseFunded, false)), nil
	}}
	server := httptest.NewServer(newFixture(t, d, enableSwaps).handler)
	defer server.Close()
	client, err := openapi.NewClientWithResponses(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	var number, text openapi.TransactSwapRequest_MinOutputAmount
	if err := number.FromTransactSwapRequestMinOutputAmount0(most); err != nil {
		t.Fatal(err)
	}
	if err := text.FromTransactSwapRequestMinOutputAmount1("18446744073709551615"); err != nil {
		t.Fatal(err)
	}
	for _, amount := range []openapi.TransactSwapRequest_MinOutputAmount{number, text} {
		answer, err := client.TransactSwapWithResponse(t.Context(), &openapi.TransactSwapParams{}, openapi.TransactSwapRequest{
			ProofBytes: make([]byte, 256), PublicInputs: make([]byte, 264),
			OutputMint: outputMint.String(), RecipientAta: outputATA.String(), MinOutputAmount: amount,
		})
		if err != nil {
			t.Fatal(err)
		}
		if answer.JSON200 == nil || answer.JSON200.Data.Status != openapi.JobStatusProcessing || *answer.JSON200.Data.SwapPhase != openapi.SwapPhaseFunded ||
			*answer.JSON200.SwapStatePda != swapState(t) {
			t.Errorf("answer %d: %s", answer.StatusCode(), answer.Body)
		}
	}
	if diff := cmp.Diff([]uint64{most, most}, got); diff != "" {
		t.Errorf("amounts (-want +got):\n%s", diff)
	}
}

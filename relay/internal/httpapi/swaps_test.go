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
	router     = solana.MustPublicKeyFromBase58("JUP6LkbZbjS1jKKwapdHNy74zcZ3tLUZoi5QNyVTaV4")
	outputMint = solana.PublicKey(bytes.Repeat([]byte{5}, 32))
	outputATA  = solana.PublicKey(bytes.Repeat([]byte{6}, 32))
	second     = solana.Signature(bytes.Repeat([]byte{11}, 64))
)

// swapping enables swaps.
func swapping(o *httpapi.Options) { o.Info.Swaps = &httpapi.Swaps{RouterProgram: router} }

// swapBody is a well-formed body of a swap.
func swapBody(change ...func(map[string]any)) string {
	return transactBody(append([]func(map[string]any){
		with("output_mint", outputMint.String()), with("recipient_ata", outputATA.String()), with("min_output_amount", "20150000"),
	}, change...)...)
}

// asSwap turns a submission into a swap with the given second leg.
func asSwap(s *submission.Submission, second *submission.Swap) *submission.Submission {
	profile := shieldpool.Development()
	pool, err := profile.Pool(profile.Mints[0])
	if err != nil {
		panic(err)
	}
	s.Kind, s.Pool, s.Swap = shieldpool.KindSwap, pool.Address, second
	s.Call = &shieldpool.Call{
		Inputs:      &shieldpool.PublicInputs{MintAddress: profile.Mints[0].Field, Nullifiers: [2][32]byte{[32]byte(bytes.Repeat([]byte{1}, 32)), {31: 2}}},
		Destination: shieldpool.Destination{Recipient: solana.PublicKey{9}, Swap: &shieldpool.SwapTerms{OutputMint: outputMint, RecipientATA: outputATA, MinOutput: 1}},
	}
	return s
}

// leg is a second leg in a phase, with the transaction that ended it, if any.
func leg(phase submission.Phase, finalized bool) *submission.Swap {
	s := &submission.Swap{Phase: phase, TimeoutSlot: 242, Finalized: finalized}
	if phase == submission.PhaseExecuted || phase == submission.PhaseRefunded {
		at := now.Add(90 * time.Second)
		s.Signature, s.EndedAt, s.Slot = &second, &at, 99
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
	names := map[string]any{"swap_state_pda": swapState(t), "nullifier": hex32}
	id, first := submissionID.String(), signature.String()
	accepted := func(data map[string]any) map[string]any {
		return merge(success(merge(data, names)), names, map[string]any{"request_id": id, "signature": nil})
	}
	confirmed := func(status string, more map[string]any) map[string]any {
		return merge(success(merge(landed(), names, map[string]any{"status": status}, more)), names, map[string]any{"request_id": id, "signature": first})
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
		"one whose first leg is pending is answered 202, with its identifiers": {
			waited: asSwap(pending(), nil), wantStatus: 202, want: accepted(result("pending")),
		},
		"one whose first leg is under way shows no signature": {
			waited: processing, wantStatus: 202, want: accepted(result("processing")),
		},
		"one whose first leg is confirmed is answered 200 and processing": {
			waited: asSwap(completed(), leg(submission.PhaseFunded, false)), wantStatus: 200,
			want: confirmed("processing", map[string]any{"swap_phase": "funded", "swap_timeout_slot": 242.0}),
		},
		"one whose second leg is not recorded yet is funded": {
			waited: asSwap(completed(), nil), wantStatus: 200, want: confirmed("processing", map[string]any{"swap_phase": "funded"}),
		},
		"the repeat of an executed one is completed": {
			waited: asSwap(completed(), leg(submission.PhaseExecuted, true)), wantStatus: 200,
			want: confirmed("completed", map[string]any{"swap_phase": "executed", "swap_signature": second.String(), "swap_timeout_slot": 242.0}),
		},
		"the repeat of a refunded one is a conflict that names the refund": {
			waited: asSwap(completed(), leg(submission.PhaseRefunded, false)), wantStatus: 409,
			want: map[string]any{"error": true, "code": "swap_refunded", "message": refundedText, "request_id": id, "refund_signature": second.String()},
		},
		"one whose first leg failed has the refusal's status": {
			waited: asSwap(failed(refusal.New(refusal.NullifierSpent, "spent").With("nullifier_index", 0)), nil), wantStatus: 409,
			want: map[string]any{"error": true, "code": "nullifier_spent", "message": "spent", "nullifier_index": 0.0, "request_id": id},
		},
		"one of another pool has no swap state address": {
			waited: otherPool, wantStatus: 202,
			want: merge(success(merge(result("pending"), map[string]any{"nullifier": hex32})), map[string]any{"nullifier": hex32, "request_id": id, "signature": nil}),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := submits(asSwap(pending(), nil), nil)
			d.wait = func(context.Context, uuid.UUID) (*submission.Submission, error) { return tt.waited, nil }
			resp, body := newFixture(t, d, swapping).do(t, post("/transact_swap", swapBody()))
			if resp.StatusCode != tt.wantStatus {
				t.Errorf("status %d, want %d", resp.StatusCode, tt.wantStatus)
			}
			if got := resp.Header.Get("Location"); tt.wantStatus < 300 && got != "/status/"+id {
				t.Errorf("Location is %q, want the status of the swap", got)
			}
			if diff := cmp.Diff(tt.want, object(t, body)); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStatusOfSwaps(t *testing.T) {
	t.Parallel()
	names := map[string]any{"swap_state_pda": swapState(t), "nullifier": hex32}
	text := signature.String()
	confirmed := func(more map[string]any) map[string]any {
		return merge(state("processing"), names, map[string]any{
			"tx_id": text, "solana_signature": text, "slot": 42.0, "leaf_indices": []any{6.0, 7.0}, "root": hex32, "swap_timeout_slot": 242.0,
		}, more)
	}
	waits := leg(submission.PhaseFunded, false)
	waits.HeldBy = "swap_price"
	stale := leg(submission.PhaseExecuted, true)
	stale.HeldBy = "swap_price"
	final := func(s *submission.Submission) *submission.Submission {
		s.Finalized = true
		return s
	}
	reopened := asSwap(pending(), leg(submission.PhaseExecuted, true))
	reopened.State, reopened.Signature = submission.Processing, &signature
	rolledBack := asSwap(failed(refusal.New(refusal.NullifierSpent, "spent").With("nullifier_index", 1)), leg(submission.PhaseQuoted, false))
	rolledBack.RolledBack = true
	tests := map[string]struct {
		s    *submission.Submission
		want map[string]any
	}{
		"pending": {asSwap(pending(), nil), merge(state("pending"), names)},
		"funded":  {asSwap(completed(), leg(submission.PhaseFunded, false)), confirmed(map[string]any{"swap_phase": "funded"})},
		"funded, and nothing more is recorded yet": {asSwap(completed(), &submission.Swap{Phase: submission.PhaseFunded}), without(confirmed(map[string]any{"swap_phase": "funded"}), "swap_timeout_slot")},
		"waiting for its price":                    {asSwap(completed(), waits), confirmed(map[string]any{"swap_phase": "funded", "swap_waits": "swap_price"})},
		"quoted: the first leg's finality is not the swap's": {
			final(asSwap(completed(), leg(submission.PhaseQuoted, true))), confirmed(map[string]any{"swap_phase": "quoted"}),
		},
		"executed": {
			asSwap(completed(), leg(submission.PhaseExecuted, false)),
			confirmed(map[string]any{"status": "completed", "swap_phase": "executed", "swap_signature": second.String(), "completed_at": "2026-11-21T11:01:30Z"}),
		},
		"executed, only the second leg finalized": {
			asSwap(completed(), leg(submission.PhaseExecuted, true)),
			confirmed(map[string]any{"status": "completed", "swap_phase": "executed", "swap_signature": second.String(), "completed_at": "2026-11-21T11:01:30Z"}),
		},
		"executed, only the first leg finalized": {
			final(asSwap(completed(), leg(submission.PhaseExecuted, false))),
			confirmed(map[string]any{"status": "completed", "swap_phase": "executed", "swap_signature": second.String(), "completed_at": "2026-11-21T11:01:30Z"}),
		},
		"executed, both legs finalized: nothing holds it": {
			final(asSwap(completed(), stale)),
			confirmed(map[string]any{"status": "completed", "swap_phase": "executed", "swap_signature": second.String(), "completed_at": "2026-11-21T11:01:30Z", "finalized": true}),
		},
		"refunded": {
			final(asSwap(completed(), leg(submission.PhaseRefunded, true))),
			confirmed(map[string]any{
				"status": "failed", "swap_phase": "refunded", "refund_signature": second.String(), "completed_at": "2026-11-21T11:01:30Z", "finalized": true,
				"error": refundedText, "error_code": "swap_refunded",
			}),
		},
		"processing again after a rollback: its second leg was rolled back too": {
			reopened, merge(state("processing"), names),
		},
		"failed in its first leg after a rollback": {
			rolledBack, merge(state("failed"), names, map[string]any{
				"error": "spent", "error_code": "nullifier_spent", "nullifier_index": 1.0, "rolled_back": true, "completed_at": "2026-11-21T11:00:03Z",
			}),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &domains{get: func(context.Context, uuid.UUID) (*submission.Submission, error) { return tt.s, nil }}
			// A relay without swaps still serves the existing ones.
			for _, change := range [][]func(*httpapi.Options){{swapping}, nil} {
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

// TestEveryWaitIsDocumented checks that the OpenAPI document lists every reason for
// which a swap waits.
func TestEveryWaitIsDocumented(t *testing.T) {
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

func TestASecondLegHasNoStatusOfItsOwn(t *testing.T) {
	t.Parallel()
	s := asSwap(completed(), leg(submission.PhaseFunded, false))
	s.Kind = submission.KindSwapExecution
	d := &domains{get: func(context.Context, uuid.UUID) (*submission.Submission, error) { return s, nil }}
	resp, body := newFixture(t, d, swapping).do(t, get("/status/"+submissionID.String()))
	if code := object(t, body)["code"]; resp.StatusCode != http.StatusNotFound || code != "not_found" {
		t.Errorf("status %d, code %v, want 404 not_found", resp.StatusCode, code)
	}
}

func TestServiceInformationOfARelayThatSwaps(t *testing.T) {
	t.Parallel()
	_, body := newFixture(t, &domains{}, swapping).do(t, get("/"))
	want := map[string]any{"enabled": true, "router_program": router.String(), "timeout_slots": 200.0, "output": "SPL Token"}
	if diff := cmp.Diff(want, object(t, body)["swaps"]); diff != "" {
		t.Errorf("swaps (-want +got):\n%s", diff)
	}
}

func TestOptionsOfARelayThatSwaps(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*httpapi.Options)
		want   string
	}{
		"no router":                {func(o *httpapi.Options) { o.Info.Swaps = &httpapi.Swaps{} }, "Info.Swaps.RouterProgram is missing"},
		"no note bound for a swap": {func(o *httpapi.Options) { swapping(o); o.Info.NoteBounds[shieldpool.KindSwap] = 0 }, "Info.NoteBounds of a swap is missing"},
		"no bound, and no swaps":   {func(o *httpapi.Options) { o.Info.NoteBounds[shieldpool.KindSwap] = -4 }, ""},
		"all that a swap needs":    {swapping, ""},
		"no bound for a transfer":  {func(o *httpapi.Options) { swapping(o); o.Info.NoteBounds[shieldpool.KindTransfer] = 0 }, "Info.NoteBounds of a transfer is missing"},
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

// TestRejectedSwaps checks, over a real connection, what the API refuses by
// itself: the fake domains have no functions.
func TestRejectedSwaps(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(newFixture(t, &domains{}, swapping).handler)
	t.Cleanup(server.Close)
	const amount = "expected a whole number from 1 to 18446744073709551615 in the output mint's smallest unit, as a JSON number or a string, in decimal digits alone"
	noAmount := func(received string) string {
		return "min_output_amount is no amount: " + amount + "; received a " + received
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
		"no proof":                           {swapBody(with("proof_bytes", nil)), refusal.InvalidRequest, "proof_bytes is missing: expected a string, bytes in standard base64"},
		"no amount":                          {swapBody(with("min_output_amount", nil)), refusal.InvalidRequest, "min_output_amount is missing: " + amount},
		"an amount that is true":             {swapBody(with("min_output_amount", true)), refusal.InvalidRequest, "min_output_amount is a JSON boolean: " + amount},
		"an amount in an array":              {swapBody(with("min_output_amount", []int{1})), refusal.InvalidRequest, "min_output_amount is a JSON array: " + amount},
		"an amount in an object":             {swapBody(with("min_output_amount", map[string]any{"x": 1})), refusal.InvalidRequest, "min_output_amount is a JSON object: " + amount},
		"a number that is zero":              {raw("0"), refusal.InvalidSwap, noAmount("number that is zero")},
		"a string that is zero":              {raw(`"0"`), refusal.InvalidSwap, noAmount("string that is zero")},
		"minus zero":                         {raw("-0"), refusal.InvalidSwap, noAmount("number that is negative or begins with a minus")},
		"a negative number":                  {raw("-5"), refusal.InvalidSwap, noAmount("number that is negative or begins with a minus")},
		"a negative string":                  {raw(`"-5"`), refusal.InvalidSwap, noAmount("string that is negative or begins with a minus")},
		"a number with a fraction":           {raw("1.5"), refusal.InvalidSwap, noAmount("number with a fraction")},
		"a string with a fraction":           {raw(`"1.5"`), refusal.InvalidSwap, noAmount("string with a fraction")},
		"a whole number written as fraction": {raw("2.0"), refusal.InvalidSwap, noAmount("number with a fraction")},
		"a number with an exponent":          {raw("1e3"), refusal.InvalidSwap, noAmount("number with an exponent")},
		"a number with a capital exponent":   {raw("1E+3"), refusal.InvalidSwap, noAmount("number with an exponent")},
		"a string with an exponent":          {raw(`"1e3"`), refusal.InvalidSwap, noAmount("string with an exponent")},
		"a fraction with an exponent":        {raw("1.5e1"), refusal.InvalidSwap, noAmount("number with an exponent")},
		"a number of one above the maximum":  {raw("18446744073709551616"), refusal.InvalidSwap, noAmount("number that is larger, of 20 digits")},
		"a string of one above the maximum":  {raw(`"18446744073709551616"`), refusal.InvalidSwap, noAmount("string that is larger, of 20 digits")},
		"a number of very many digits":       {raw("1" + strings.Repeat("0", 400)), refusal.InvalidSwap, noAmount("number of 401 characters")},
		"an empty string":                    {raw(`""`), refusal.InvalidSwap, noAmount("string that is empty")},
		"a string with a plus":               {raw(`"+5"`), refusal.InvalidSwap, noAmount("string with a sign")},
		"a string with a space before":       {raw(`" 5"`), refusal.InvalidSwap, noAmount("string with other characters than digits")},
		"a string with a space after":        {raw(`"5 "`), refusal.InvalidSwap, noAmount("string with other characters than digits")},
		"a string with a line break":         {raw(`"5\n"`), refusal.InvalidSwap, noAmount("string with other characters than digits")},
		"a string with leading zeros":        {raw(`"007"`), refusal.InvalidSwap, noAmount("string with a leading zero")},
		"a string of hexadecimal":            {raw(`"0x10"`), refusal.InvalidSwap, noAmount("string with other characters than digits")},
		"a string with separators":           {raw(`"1_000"`), refusal.InvalidSwap, noAmount("string with other characters than digits")},
		"a string of non-ASCII digits":       {raw(`"\u0661"`), refusal.InvalidSwap, noAmount("string with other characters than digits")},
		"a string of words":                  {raw(`"NaN"`), refusal.InvalidSwap, noAmount("string with other characters than digits")},
		"a number with a leading zero":       {raw("01"), refusal.InvalidJSON, ""},
		"a retired body":                     {`{"outputs":[]}`, refusal.LegacyWithdrawRetired, ""},
		"no JSON":                            {`x`, refusal.InvalidJSON, ""},
		"a repeated amount, one of them bad": {strings.Replace(raw("-1"), `{`, `{"min_output_amount":1,`, 1), refusal.InvalidSwap, noAmount("number that is negative or begins with a minus")},
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

// raw is a swap's body with the amount as literal JSON.
func raw(amount string) string {
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
			body := strings.Replace(raw(tt.amount), `{`, `{"recipient":"somebody","encrypted_notes":["qrvM"],`, 1)
			newFixture(t, d, swapping).do(t, post("/transact_swap", body, "Prefer", "respond-async", "Idempotency-Key", "a-key"))
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
		return asSwap(completed(), leg(submission.PhaseFunded, false)), nil
	}}
	server := httptest.NewServer(newFixture(t, d, swapping).handler)
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

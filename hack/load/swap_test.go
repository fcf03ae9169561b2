package load_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

var dollars = solana.PublicKey{31: 9}

// market sells a dollar, of 6 decimals, for 6 600 000 lamports.
func market(t *testing.T) *load.Market {
	t.Helper()
	profile := shieldpool.Development()
	pool, err := profile.Pool(profile.Mints[0])
	if err != nil {
		t.Fatal(err)
	}
	return &load.Market{Pool: pool, Mint: dollars, Quote: func(_ context.Context, mint solana.PublicKey, lamports uint64) (uint64, error) {
		if mint != dollars {
			t.Errorf("asked for mint %s", mint)
		}
		return lamports * 10 / 66, nil
	}}
}

// onlySwaps makes all clients swap.
func onlySwaps(t *testing.T, more func(*load.Options)) func(*load.Options) {
	return func(o *load.Options) {
		o.Swaps, o.Market = 1, market(t)
		if more != nil {
			more(o)
		}
	}
}

const (
	fundedLeg   = `"status":"processing","solana_signature":"leg","slot":5,"swap_state_pda":"pda","nullifier":"00ff","swap_phase":"funded","swap_timeout_slot":205`
	executedLeg = `"status":"completed","solana_signature":"leg","slot":5,"swap_phase":"executed","swap_signature":"swap","swap_timeout_slot":205`
	refundedLeg = `"status":"failed","solana_signature":"leg","slot":5,"swap_phase":"refunded","refund_signature":"back","error":"x","error_code":"swap_refunded"`
)

func funded(w http.ResponseWriter, _ int) {
	fmt.Fprintf(w, `{"success":true,"request_id":%q,"signature":"leg","swap_state_pda":"pda","nullifier":"00ff","data":{"request_id":%q,%s},"error":null}`, request, request, fundedLeg)
}

// statuses answers the nth poll with the nth text, and later polls with the last text.
func statuses(texts ...string) func(http.ResponseWriter, int) {
	return func(w http.ResponseWriter, n int) {
		fmt.Fprintf(w, `{"success":true,"data":{"request_id":%q,%s},"error":null}`, request, texts[min(n, len(texts)-1)])
	}
}

func TestSwapIsPolledUntilItsExecutionIsFinal(t *testing.T) {
	t.Parallel()
	r := &relay{t: t, submit: funded, status: statuses(fundedLeg+`,"swap_waits":"swap_price"`, executedLeg, executedLeg+`,"finalized":true`)}
	record, progress := runClient(t, r, onlySwaps(t, nil))
	q := record.Requests[0]
	state, _, err := market(t).Pool.SwapState(q.Inputs.Nullifiers[0])
	if err != nil {
		t.Fatal(err)
	}
	account, _, err := solana.FindAssociatedTokenAddress(q.Recipient, dollars)
	if err != nil {
		t.Fatal(err)
	}
	net, _ := shieldpool.Development().Fees.Net(q.Inputs.Gross())
	quoted := net * 10 / 66
	want := &load.Swap{
		Terms:    shieldpool.SwapTerms{OutputMint: dollars, RecipientATA: account, MinOutput: quoted * 99 / 100},
		Lamports: net, State: state, Quoted: quoted, Digits: q.Swap.Digits,
	}
	if diff := cmp.Diff(want, q.Swap); diff != "" || record.Kind != shieldpool.KindSwap {
		t.Errorf("the kind is %s, want a swap (-want +got):\n%s", record.Kind, diff)
	}
	var last []load.SwapAnswer
	for _, a := range q.Answers[len(q.Answers)-3:] {
		last = append(last, a.SwapAnswer)
	}
	if diff := cmp.Diff([]load.SwapAnswer{
		{Phase: "funded", Waits: "swap_price"},
		{Phase: "executed", SwapSignature: "swap"},
		{Phase: "executed", SwapSignature: "swap"},
	}, last); diff != "" {
		t.Errorf("last three answers (-want +got):\n%s", diff)
	}
	first, end := q.Answers[0], q.Answers[len(q.Answers)-1]
	if !first.Accepted() || first.Call != load.CallSwap || first.Signature != "leg" || first.Executed() || !end.Executed() || !end.Finalized || !record.Ended {
		t.Errorf("first answer %+v, last answer %+v, Ended %t; want an accepted swap, a finalized execution and true", first, end, record.Ended)
	}
	if progress.Accepted != 1 || progress.Finalized != 1 || progress.Refunded != 0 || progress.Failed != 0 {
		t.Errorf("progress %+v, want one finalized submission", progress)
	}
	if r.received[0].path != "/transact_swap" {
		t.Errorf("the swap was sent to %s, want /transact_swap", r.received[0].path)
	}
}

func TestSwapIsPolledUntilItsRefundIsFinal(t *testing.T) {
	t.Parallel()
	r := &relay{t: t, submit: funded, status: statuses(refundedLeg, fundedLeg, refundedLeg, refundedLeg+`,"finalized":true`)}
	record, progress := runClient(t, r, onlySwaps(t, func(o *load.Options) { o.Unreachable = 1 }))
	q := record.Requests[0]
	if !q.Swap.Unreachable || q.Swap.Terms.MinOutput != 1000*q.Swap.Quoted {
		t.Errorf("swap %+v, want a minimum of a thousand times the quote", q.Swap)
	}
	end := q.Answers[len(q.Answers)-1]
	if !end.Refunded() || end.Failed() || !end.Finalized || end.RefundSignature != "back" || end.Signature != "leg" || r.polls != 4 {
		t.Errorf("after %d polls the last answer is %+v; want 4 polls and a finalized refund", r.polls, end)
	}
	if progress.Refunded != 1 || progress.Failed != 0 || progress.Completed != 0 || progress.Running != 0 {
		t.Errorf("progress %+v, want one refund", progress)
	}
}

func TestRepeatOfARefundedSwapEndsTheSpend(t *testing.T) {
	t.Parallel()
	r := &relay{t: t, submit: func(w http.ResponseWriter, n int) {
		if n == 0 {
			panic(http.ErrAbortHandler) // the request is accepted, and the answer is lost
		}
		w.WriteHeader(http.StatusConflict)
		fmt.Fprintf(w, `{"error":true,"code":"swap_refunded","message":"x","request_id":%q,"refund_signature":"back"}`, request)
	}}
	record, _ := runClient(t, r, onlySwaps(t, nil))
	end := record.Requests[0].Answers[1]
	if !record.Ended || !end.Refunded() || end.Failed() || end.RefundSignature != "back" || end.RequestID != request {
		t.Errorf("record has Ended %t, and the answer to the repeat is %+v; want true and a refund", record.Ended, end)
	}
}

// The price changes between the tries, but the user's minimum does not.
func TestStaleRootDoesNotChangeTheTerms(t *testing.T) {
	t.Parallel()
	var quotes atomic.Uint64
	r := &relay{t: t, status: statuses(executedLeg + `,"finalized":true`), submit: func(w http.ResponseWriter, n int) {
		if n < 2 {
			refuse(w, 400, "root_not_found")
			return
		}
		funded(w, n)
	}}
	record, _ := runClient(t, r, onlySwaps(t, func(o *load.Options) {
		o.Market.Quote = func(context.Context, solana.PublicKey, uint64) (uint64, error) {
			n := quotes.Add(1)
			if n < 3 {
				return 0, errors.New("the router is unreachable")
			}
			return n * 1_000_000, nil
		}
	}))
	if len(record.Requests) != 3 || quotes.Load() != 3 {
		t.Fatalf("%d requests after %d quotes, want 3 after 3", len(record.Requests), quotes.Load())
	}
	for _, q := range record.Requests {
		if q.Swap.Quoted != 3_000_000 || q.Swap.Terms.MinOutput != 2_970_000 || q.Inputs.ExtDataHash != record.Requests[0].Inputs.ExtDataHash {
			t.Errorf("swap %+v, want the terms of the first try", q.Swap)
		}
	}
}

func TestSwapsAreValid(t *testing.T) {
	t.Parallel()
	r := &relay{t: t, submit: funded, status: statuses(executedLeg + `,"finalized":true`)}
	l := runClients(t, r, onlySwaps(t, func(o *load.Options) {
		o.Swaps, o.Unreachable, o.DirectShare, o.Rivals = 0.7, 0.3, 0.5, 0.2
		o.Direct = func(_ context.Context, q *load.Request) {
			if q.Swap != nil {
				t.Error("a wallet sent a swap to the chain by itself")
			}
		}
	}))
	profile, pool := shieldpool.Development(), market(t).Pool
	bound, err := pool.NoteBound(shieldpool.KindSwap, shieldpool.Legacy, nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, record := range l.Journal().Records() {
		q := record.Requests[0]
		seen[string(record.Kind)]++
		if (q.Swap != nil) != (record.Kind == shieldpool.KindSwap) {
			t.Fatalf("a request of kind %s has the swap %v, want a swap only for the kind swap", record.Kind, q.Swap)
		}
		if q.Swap == nil {
			continue
		}
		seen[fmt.Sprintf("unreachable %t", q.Swap.Unreachable)]++
		seen[fmt.Sprintf("notes %t", len(q.Notes) > 0)]++
		call := shieldpool.Call{Inputs: &q.Inputs, Notes: q.Notes, Destination: shieldpool.Destination{Recipient: q.Recipient, Swap: &q.Swap.Terms}}
		if call.Kind() != shieldpool.KindSwap || !profile.BindsDestination(&q.Inputs, call.Destination) || !q.Inputs.HasNullifier(0) {
			t.Errorf("a request of kind %s does not bind its terms, or has no first nullifier; want a swap with both", call.Kind())
		}
		if err := shieldpool.CheckNotes(q.Notes, bound); err != nil {
			t.Error(err)
		}
		if err := pool.CheckRecipient(profile.ProgramID, q.Recipient, &q.Inputs); err != nil {
			t.Error(err)
		}
		seen[checkSwapBody(t, &q)]++
	}
	for _, want := range []string{"swap", "transfer", "withdrawal", "unreachable true", "unreachable false", "notes true", "notes false", "string", "number"} {
		if seen[want] == 0 {
			t.Errorf("no %q in %v", want, seen)
		}
	}
}

// checkSwapBody checks a swap's JSON against the interface and returns the type of its
// minimum.
func checkSwapBody(t *testing.T, q *load.Request) (minimum string) {
	t.Helper()
	raw, err := q.Body(0)
	if err != nil {
		t.Fatal(err)
	}
	var body struct {
		Mint    string          `json:"output_mint"`
		Account string          `json:"recipient_ata"`
		Wallet  string          `json:"recipient"`
		Minimum json.RawMessage `json:"min_output_amount"`
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		t.Fatal(err)
	}
	terms := q.Swap.Terms
	if body.Mint != terms.OutputMint.String() || body.Account != terms.RecipientATA.String() || body.Wallet != q.Recipient.String() {
		t.Errorf("body %+v does not have the terms %+v", body, terms)
	}
	switch string(body.Minimum) {
	case fmt.Sprint(terms.MinOutput):
		return "number"
	case fmt.Sprintf("%q", fmt.Sprint(terms.MinOutput)):
		return "string"
	}
	t.Errorf("minimum %s, want %d", body.Minimum, terms.MinOutput)
	return ""
}

func TestNewSwapRequestIsComplete(t *testing.T) {
	t.Parallel()
	o := options(t, "http://unused")
	onlySwaps(t, nil)(&o)
	key, root := developmentKey(t), [32]byte{31: 7}
	setQuote := func(quote func(lamports uint64) (uint64, error)) {
		o.Market.Quote = func(_ context.Context, _ solana.PublicKey, lamports uint64) (uint64, error) { return quote(lamports) }
	}
	draw := func(number int) (load.Request, error) {
		return o.NewSwapRequest(t.Context(), number, root, solana.PublicKey{})
	}
	setQuote(func(lamports uint64) (uint64, error) { return lamports / 6, nil })
	for number := range 10 {
		q, err := draw(number)
		if err != nil {
			t.Fatal(err)
		}
		again, err := draw(number)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(q, again); diff != "" {
			t.Errorf("swap %d differs on the second call:\n%s", number, diff)
		}
		if q.Path() != "/transact_swap" || q.Inputs.Root != root || q.Swap.Terms.MinOutput == 0 {
			t.Errorf("swap %d goes to %s with %+v, want /transact_swap, the given root and a minimum", number, q.Path(), q.Swap)
		}
		checkSwapBody(t, &q)
		verify(t, key, &q)
		if plain := o.NewRequest(number, root); plain.Swap != nil || plain.Path() != "/transact" {
			t.Errorf("NewRequest made swap %d, want a request without a swap", number)
		}
	}
	unreachable := errors.New("the router is unreachable")
	setQuote(func(uint64) (uint64, error) { return 0, unreachable })
	if _, err := draw(0); !errors.Is(err, unreachable) {
		t.Errorf("error %v, want the error of the quote", err)
	}
	setQuote(func(uint64) (uint64, error) { return math.MaxUint64, nil })
	huge, err := draw(0)
	if err != nil || huge.Swap.Terms.MinOutput == 0 {
		t.Errorf("with the largest quote: swap %+v, error %v; want a minimum", huge.Swap, err)
	}
	o.Unreachable = 1
	setQuote(func(uint64) (uint64, error) { return math.MaxUint64 / 10, nil })
	if huge, err = draw(0); err != nil || huge.Swap.Terms.MinOutput != math.MaxUint64 {
		t.Errorf("a minimum above the range: swap %+v, error %v; want the largest minimum", huge.Swap, err)
	}
}

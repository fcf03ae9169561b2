package router

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/relaypool/relaypool/relay/internal/swap"
)

// describe returns an error's kind as text, for tables of cases.
func describe(err error) string {
	var u *swap.RouterUnavailable
	var n *swap.NoRoute
	var h *swap.RejectedRoute
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &u):
		return u.Kind
	case errors.As(err, &n):
		return "no route " + n.Code
	case errors.As(err, &h):
		return "route_rejected " + h.What
	default:
		return "another error: " + err.Error()
	}
}

func TestMalformedAnswers(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	refusal := func(status int, code string) reply {
		return reply{status: status, body: `{"error":"Could not find any route for ` + user.String() + `","errorCode":"` + code + `"}`}
	}
	tests := map[string]struct {
		reply     reply
		want      string
		wantPause time.Duration
	}{
		"429":                                  {reply{status: 429}, "rate_limited", 0},
		"429 for some seconds":                 {reply{status: 429, header: map[string]string{"Retry-After": "7"}}, "rate_limited", 7 * time.Second},
		"429 until a time":                     {reply{status: 429, header: map[string]string{"Retry-After": "Sat, 21 Nov 2026 12:00:09 GMT"}}, "rate_limited", 9 * time.Second},
		"429 until a time in the past":         {reply{status: 429, header: map[string]string{"Retry-After": "Sat, 21 Nov 2026 11:00:00 GMT"}}, "rate_limited", 0},
		"429 with an invalid Retry-After":      {reply{status: 429, header: map[string]string{"Retry-After": "-3"}}, "rate_limited", 0},
		"429 with a code":                      {refusal(429, swap.CodeNoRoutes), "rate_limited", 0},
		"500":                                  {reply{status: 500, body: "<html>"}, "server_error", 0},
		"500 with a code that is not known":    {refusal(500, "INTERNAL"), "server_error", 0},
		"502":                                  {reply{status: 502}, "server_error", 0},
		"503 for some seconds":                 {reply{status: 503, header: map[string]string{"Retry-After": "2"}}, "server_error", 2 * time.Second},
		"408":                                  {reply{status: 408}, "server_error", 0},
		"401":                                  {refusal(401, swap.CodeNoRoutes), "rejected", 0},
		"403":                                  {reply{status: 403}, "rejected", 0},
		"404":                                  {reply{status: 404, body: `{"error":"Not found"}`}, "rejected", 0},
		"405":                                  {reply{status: 405}, "rejected", 0},
		"a redirect":                           {reply{status: 302, header: map[string]string{"Location": "/elsewhere"}}, "rejected", 0},
		"a permanent redirect":                 {reply{status: 308, header: map[string]string{"Location": "/elsewhere"}}, "rejected", 0},
		"204":                                  {reply{status: 204}, "rejected", 0},
		"400 with a code that is not known":    {refusal(400, "CANARY_"+user.String()), "no route OTHER", 0},
		"400 with a text":                      {reply{status: 400, body: `{"error":"Query parameter amount cannot be parsed"}`}, "no route OTHER", 0},
		"400 with an empty body":               {reply{status: 400}, "no route OTHER", 0},
		"422":                                  {reply{status: 422, body: "[]"}, "no route OTHER", 0},
		"404 with a code":                      {refusal(404, swap.CodeNoMarket), "no route MARKET_NOT_FOUND", 0},
		"500 with a code":                      {refusal(500, swap.CodeNotBuilt), "no route FAILED_TO_GET_SWAP_AND_ACCOUNT_METAS", 0},
		"200 with a code":                      {refusal(200, swap.CodeNotTradable), "no route TOKEN_NOT_TRADABLE", 0},
		"200 with an error":                    {reply{body: `{"error":"no"}`}, "no route OTHER", 0},
		"200 with a code that is not text":     {reply{body: `{"errorCode":7}`}, "no route OTHER", 0},
		"200 with a page":                      {reply{body: "<!doctype html><title>ok</title>", header: map[string]string{"Content-Type": "text/html"}}, "bad_response", 0},
		"200 with an empty body":               {reply{}, "bad_response", 0},
		"200 with a list":                      {reply{body: "[" + goodQuote + "]"}, "bad_response", 0},
		"200 with null":                        {reply{body: "null"}, "bad_response", 0},
		"200 with an answer that is cut off":   {reply{body: goodQuote[:len(goodQuote)-1]}, "bad_response", 0},
		"200 with an answer cut inside a text": {reply{body: goodQuote[:40]}, "bad_response", 0},
		"200 with more after the answer":       {reply{body: goodQuote + "{}"}, "bad_response", 0},
		"200 with a body above the limit":      {reply{body: goodQuote + strings.Repeat(" ", maxResponse)}, "bad_response", 0},
		"200 with very deep nesting":           {reply{body: `{"a":` + strings.Repeat("[", 100_000)}, "bad_response", 0},
	}
	for _, code := range swap.NoRouteCodes() {
		name := "400 with " + code
		tests[name] = struct {
			reply     reply
			want      string
			wantPause time.Duration
		}{refusal(400, code), "no route " + code, 0}
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, test.reply)
			c := newClient(t, Options{BaseURL: s.URL, Now: func() time.Time { return now }})
			quote, quoteErr := c.Quote(t.Context(), quoteRequest)
			// A second client, because Retry-After pauses the first.
			c = newClient(t, Options{BaseURL: s.URL, Now: func() time.Time { return now }})
			instructions, instructionsErr := c.Instructions(t.Context(), decodedQuote(t), user)
			if quote != nil || instructions != nil {
				t.Fatalf("a malformed answer is accepted: %v, %v", quote, instructions)
			}
			for _, err := range []error{quoteErr, instructionsErr} {
				if got := describe(err); got != test.want {
					t.Errorf("error is %s, want %s", got, test.want)
				}
				var u *swap.RouterUnavailable
				if errors.As(err, &u) && u.RetryAfter != test.wantPause {
					t.Errorf("RetryAfter is %s, want %s", u.RetryAfter, test.wantPause)
				}
				if strings.Contains(err.Error(), user.String()) || strings.Contains(err.Error(), "html") {
					t.Errorf("the error contains the answer's text: %v", err)
				}
			}
			if s.calls() != 2 {
				t.Errorf("%d calls, want 2: one of each, without repeats or redirects", s.calls())
			}
		})
	}
}

func TestQuoteIsCheckedAgainstRequest(t *testing.T) {
	t.Parallel()
	const (
		in        = `"inAmount":"100000000"`
		out       = `"outAmount":"17057460"`
		threshold = `"otherAmountThreshold":"16886885"`
		slot      = `"contextSlot":324307186`
		slippage  = `"slippageBps":100`
		mode      = `"swapMode":"ExactIn"`
		input     = `"inputMint":"So11111111111111111111111111111111111111112"`
	)
	tests := map[string]struct{ old, text, want string }{
		"unchanged":                                        {in, in, "ok"},
		"without a slot":                                   {slot + ",", "", "ok"},
		"with a null slot":                                 {slot, `"contextSlot":null`, "ok"},
		"with an output of zero":                           {out + "," + threshold, `"outAmount":"0","otherAmountThreshold":"0"`, "ok"},
		"with the largest output":                          {out, `"outAmount":"18446744073709551615"`, "ok"},
		"with a threshold equal to the output":             {threshold, `"otherAmountThreshold":"17057460"`, "ok"},
		"for another input":                                {input, `"inputMint":"` + usdc.String() + `"`, "route_rejected input_mint"},
		"for another output":                               {`"outputMint":"` + usdc.String() + `"`, `"outputMint":"` + wsol.String() + `"`, "route_rejected output_mint"},
		"for more input":                                   {in, `"inAmount":"100000001"`, "route_rejected amount"},
		"for less input":                                   {in, `"inAmount":"1"`, "route_rejected amount"},
		"of another mode":                                  {mode, `"swapMode":"ExactOut"`, "route_rejected mode"},
		"of a mode in another case":                        {mode, `"swapMode":"exactin"`, "route_rejected mode"},
		"with more slippage":                               {slippage, `"slippageBps":101`, "route_rejected slippage"},
		"with less slippage":                               {slippage, `"slippageBps":0`, "route_rejected slippage"},
		"with a threshold above the output":                {threshold, `"otherAmountThreshold":"17057461"`, "route_rejected threshold"},
		"with a number for an amount":                      {in, `"inAmount":100000000`, "bad_response"},
		"with a negative output":                           {out, `"outAmount":"-1"`, "bad_response"},
		"with a positive sign":                             {out, `"outAmount":"+1"`, "bad_response"},
		"with an output beyond 64 bits":                    {out, `"outAmount":"18446744073709551616"`, "bad_response"},
		"with an output in hexadecimal":                    {out, `"outAmount":"0x11"`, "bad_response"},
		"with an output with an exponent":                  {out, `"outAmount":"1e9"`, "bad_response"},
		"with a fraction":                                  {out, `"outAmount":"17057460.0"`, "bad_response"},
		"with underscores":                                 {out, `"outAmount":"17_057_460"`, "bad_response"},
		"with leading zeros":                               {threshold, `"otherAmountThreshold":"016886885"`, "bad_response"},
		"with space":                                       {out, `"outAmount":" 17057460"`, "bad_response"},
		"with an empty amount":                             {out, `"outAmount":""`, "bad_response"},
		"with a null amount":                               {out, `"outAmount":null`, "bad_response"},
		"without the threshold":                            {threshold + ",", "", "bad_response"},
		"without the amount":                               {in + ",", "", "bad_response"},
		"without slippage":                                 {slippage + ",", "", "bad_response"},
		"with slippage as text":                            {slippage, `"slippageBps":"100"`, "bad_response"},
		"with a negative slippage":                         {slippage, `"slippageBps":-100`, "bad_response"},
		"with a fractional slippage":                       {slippage, `"slippageBps":100.5`, "bad_response"},
		"without a mode":                                   {mode + ",", "", "bad_response"},
		"with a negative slot":                             {slot, `"contextSlot":-1`, "bad_response"},
		"with a slot beyond 64 bits":                       {slot, `"contextSlot":18446744073709551616`, "bad_response"},
		"with a slot as text":                              {slot, `"contextSlot":"5"`, "bad_response"},
		"with a mint that is not base58":                   {input, `"inputMint":"So1111111111111111111111111111111111111111O"`, "bad_response"},
		"with a mint of 31 bytes":                          {input, `"inputMint":"` + strings.Repeat("1", 31) + `"`, "bad_response"},
		"with a very long mint":                            {input, `"inputMint":"` + strings.Repeat("z", 200_000) + `"`, "bad_response"},
		"with a mint as a list":                            {input, `"inputMint":["` + wsol.String() + `"]`, "bad_response"},
		"with two amounts":                                 {in, in + `,"inAmount":"1"`, "bad_response"},
		"with one amount twice":                            {in, in + "," + in, "bad_response"},
		"with two amounts, one under an escaped key":       {in, in + `,"in\u0041mount":"1"`, "bad_response"},
		"with keys in another case":                        {in, `"inamount":"100000000"`, "bad_response"},
		"with a second amount under a key in another case": {in, in + `,"INAMOUNT":"1"`, "ok"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, reply{body: replaceIn(t, goodQuote, test.old, test.text)})
			observer := &recorder{}
			quote, err := newClient(t, Options{BaseURL: s.URL, Observer: observer}).Quote(t.Context(), quoteRequest)
			if got := describe(err); got != test.want {
				t.Errorf("error is %s, want %s: %v", got, test.want, err)
			}
			if (quote == nil) != (err != nil) {
				t.Errorf("quote is %v with error %v, want exactly one of them", quote, err)
			}
			if quote != nil && quote.InAmount != quoteRequest.Amount {
				t.Errorf("InAmount is %d, want %d", quote.InAmount, quoteRequest.Amount)
			}
			outcome, what, rejected := strings.Cut(test.want, " ")
			want := []string{"quote " + outcome}
			if rejected {
				want = []string{"quote route_rejected", "route_rejected " + what}
			}
			if diff := cmp.Diff(want, observer.all()); diff != "" {
				t.Errorf("observed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInstructions(t *testing.T) {
	t.Parallel()
	const (
		program = `"programId":"JUP6LkbZbjS1jKKwapdHNy74zcZ3tLUZoi5QNyVTaV4","accounts"`
		data    = `"data":"5RfLl3rjrSo="`
		signer  = `{"pubkey":"BQ72nSv9f3PRyRKCBnHLVrerrv37CYTHm5h3s9VSGQDV","isSigner":true,"isWritable":false}`
		other   = `{"pubkey":"HXpGFJGCEEFdV31tDmjDBaJMEB1fKLiAoKoWr3Fnonid","isSigner":false,"isWritable":true}`
		tables  = `["GxS6FiQ9RbErBB48mE34U4Jv13MdEJov4R1e5KgFzRFY"]`
		setup   = `"setupInstructions":[]`
		others  = `"otherInstructions":[]`
	)
	list := func(n int, item func(i int) string) string {
		items := make([]string, n)
		for i := range items {
			items[i] = item(i)
		}
		return strings.Join(items, ",")
	}
	numbered := func(i int) string { return fmt.Sprintf("%q", solana.PublicKey{1, byte(i)}) }
	tests := map[string]struct {
		old, text string
		want      string
		others    int
	}{
		"may name any program, which the planner checks": {old: program, text: `"programId":"` + amm.String() + `","accounts"`, want: "ok"},
		"may do without tables":                          {tables, `[]`, "ok", 0},
		"may name a table twice":                         {tables, `["` + table.String() + `","` + table2.String() + `","` + table.String() + `"]`, "ok", 0},
		"may name eight tables":                          {tables, "[" + list(8, numbered) + "]", "ok", 0},
		"may leave out optional lists":                   {setup + ",", "", "ok", 0},
		"may have null for an optional list":             {setup, `"setupInstructions":null`, "ok", 0},
		"may name 80 accounts":                           {other, list(79, func(int) string { return other }), "ok", 0},
		"may leave out the user's signature":             {signer, strings.Replace(signer, "true", "false", 1), "ok", 0},
		"may fill a transaction":                         {data, `"data":"` + strings.Repeat("AAAA", 1365) + `"`, "ok", 0},
		"want more data than a transaction holds":        {data, `"data":"` + strings.Repeat("AAAA", 1366) + `"`, "no route TOO_LARGE", 0},
		"want more than 80 accounts":                     {other, list(80, func(int) string { return other }), "no route TOO_LARGE", 0},
		"want more than eight tables":                    {tables, "[" + list(9, numbered) + "]", "no route TOO_LARGE", 0},
		"want another signer":                            {other, strings.Replace(other, "false", "true", 1), "route_rejected signer", 0},
		"are without a swap":                             {`"swapInstruction"`, `"swap"`, "bad_response", 0},
		"have null for the swap":                         {`"swapInstruction":{`, `"swapInstruction":null,"x":{`, "bad_response", 0},
		"have a list for the swap":                       {`"swapInstruction":{`, `"swapInstruction":[],"x":{`, "bad_response", 0},
		"have two swaps":                                 {`"swapInstruction":{`, `"swapInstruction":{},"swapInstruction":{`, "bad_response", 0},
		"have two programs":                              {program, `"programId":"` + amm.String() + `",` + program, "bad_response", 0},
		"have no program":                                {program, `"accounts"`, "bad_response", 0},
		"have a program that is not an address":          {program, `"programId":"jup","accounts"`, "bad_response", 0},
		"have no accounts":                               {signer + ",\n  " + other, "", "bad_response", 0},
		"have null for an account":                       {other, "null", "bad_response", 0},
		"have an address for an account":                 {other, `"` + amm.String() + `"`, "bad_response", 0},
		"have an account without its permissions":        {`,"isSigner":false,"isWritable":true`, "", "bad_response", 0},
		"have an account with a permission twice":        {`"isSigner":false`, `"isSigner":false,"isSigner":true`, "bad_response", 0},
		"have permissions that are not booleans":         {`"isSigner":false`, `"isSigner":0`, "bad_response", 0},
		"have permissions that are null":                 {`"isSigner":false`, `"isSigner":null`, "bad_response", 0},
		"have no data":                                   {data, `"data":""`, "bad_response", 0},
		"have data that is not base64":                   {data, `"data":"5RfLl3rjrS?="`, "bad_response", 0},
		"have data in URL-safe base64":                   {data, `"data":"__fLl3rjrSo="`, "bad_response", 0},
		"have data without padding":                      {data, `"data":"5RfLl3rjrSo"`, "bad_response", 0},
		"have data with unused bits that are not zero":   {data, `"data":"5RfLl3rjrSp="`, "bad_response", 0},
		"have data of several lines":                     {data, `"data":"5RfL\nl3rjrSo="`, "bad_response", 0},
		"have data as numbers":                           {data, `"data":[1,2]`, "bad_response", 0},
		"have no list of tables":                         {`"addressLookupTableAddresses":` + tables + ",", "", "bad_response", 0},
		"have null for the tables":                       {tables, "null", "bad_response", 0},
		"have a table that is not an address":            {tables, `["` + table.String() + `","x"]`, "bad_response", 0},
		"have a table that is not text":                  {tables, `[{"address":1}]`, "bad_response", 0},
		"have an object for the other instructions":      {others, `"otherInstructions":{}`, "bad_response", 0},
		"want a token ledger":                            {`"tokenLedgerInstruction":null`, `"tokenLedgerInstruction":{}`, "ok", 1},
		"want SOL unwrapped":                             {`"cleanupInstruction":null`, `"cleanupInstruction":{}`, "ok", 1},
		"want accounts created":                          {setup, `"setupInstructions":[{},{}]`, "ok", 2},
		"want a tip":                                     {others, `"otherInstructions":[{}]`, "ok", 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, reply{body: replaceIn(t, goodInstructions, test.old, test.text)})
			observer := &recorder{}
			got, err := newClient(t, Options{BaseURL: s.URL, Observer: observer}).Instructions(t.Context(), decodedQuote(t), user)
			if describe(err) != test.want {
				t.Fatalf("error is %s, want %s: %v", describe(err), test.want, err)
			}
			if (got == nil) != (err != nil) {
				t.Errorf("instructions are %v with error %v, want exactly one of them", got, err)
			}
			if got != nil && got.Others != test.others {
				t.Errorf("%d other instructions, want %d", got.Others, test.others)
			}
			outcome, what, _ := strings.Cut(test.want, " ")
			want := []string{"instructions " + outcome}
			switch outcome {
			case "route_rejected":
				want = []string{"instructions route_rejected", "route_rejected " + what}
			case "no":
				want = []string{"instructions no_route"}
			}
			if diff := cmp.Diff(want, observer.all()); diff != "" {
				t.Errorf("observed (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRepeatedTablesAreListedOnce: the list of tables has no repeats, and keeps the router's order.
func TestRepeatedTablesAreListedOnce(t *testing.T) {
	t.Parallel()
	body := replaceIn(t, goodInstructions, `["GxS6FiQ9RbErBB48mE34U4Jv13MdEJov4R1e5KgFzRFY"]`, fmt.Sprintf("[%q,%q,%q]", table2, table, table2))
	got, err := decodeInstructions([]byte(body), user)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]solana.PublicKey{table2, table}, got.LookupTables); diff != "" {
		t.Errorf("tables (-want +got):\n%s", diff)
	}
}

// TestCompressedAnswerIsBounded: the limit applies to the uncompressed size of an answer.
func TestCompressedAnswerIsBounded(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(append([]byte(goodQuote), bytes.Repeat([]byte(" "), 64<<20)...)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if packed.Len() > maxResponse {
		t.Fatalf("the compressed answer has %d bytes, want at most %d", packed.Len(), maxResponse)
	}
	s := newServer(t, reply{body: packed.String(), header: map[string]string{"Content-Encoding": "gzip"}})
	_, err := newClient(t, Options{BaseURL: s.URL}).Quote(t.Context(), quoteRequest)
	if describe(err) != swap.FaultBadResponse || !strings.Contains(err.Error(), "above 524288 bytes") {
		t.Errorf("error is %v, want bad_response for an answer above 524288 bytes", err)
	}
}

// TestErrorsNameTheSetting: errors that an operator has to fix name the setting.
func TestErrorsNameTheSetting(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{
		http.StatusForbidden: "swap router is unavailable: rejected: HTTP 403: check the router's URL and API key",
		http.StatusNotFound:  "swap router is unavailable: rejected: HTTP 404: check the router's URL",
	} {
		if diff := cmp.Diff(want, refusal(status, nil, 0).Error()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if diff := cmp.Diff(&swap.RouterUnavailable{Kind: swap.FaultRateLimited, RetryAfter: time.Second}, refusal(429, nil, time.Second), cmpopts.IgnoreFields(swap.RouterUnavailable{}, "Detail")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

package router

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/relaypool/relaypool/relay/internal/swap"
)

// isDocumented reports whether an error has one of the types that Client documents.
func isDocumented(err error) bool {
	var u *swap.RouterUnavailable
	var n *swap.NoRoute
	var h *swap.RejectedRoute
	return errors.As(err, &u) || errors.As(err, &n) || errors.As(err, &h)
}

// FuzzDecodeQuote: an accepted quote matches the request, and can be sent back.
func FuzzDecodeQuote(f *testing.F) {
	for _, seed := range []string{
		goodQuote, strings.Replace(goodQuote, `"100000000"`, `"1"`, 1), strings.Replace(goodQuote, "ExactIn", "ExactOut", 1),
		"", "{}", "[]", "null", `{"inputMint":null}`, `{"a":1,"a":2}`, goodQuote[:99], goodQuote + goodQuote, "<html>", "\xef\xbb\xbf{}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		sent := bytes.Clone(body)
		q, err := decodeQuote(body, quoteRequest)
		if (q == nil) == (err == nil) || (err != nil && !isDocumented(err)) {
			t.Fatalf("quote %v, error %v; want one of them, and a documented error", q, err)
		}
		if !bytes.Equal(sent, body) {
			t.Fatal("decoding changes the answer")
		}
		if q == nil {
			return
		}
		if q.InAmount != quoteRequest.Amount || q.Threshold > q.OutAmount || !bytes.Equal(q.Raw, sent) {
			t.Fatalf("the accepted quote does not match the request: %+v", q)
		}
		var back struct {
			User  *string         `json:"userPublicKey"`
			Wrap  *bool           `json:"wrapAndUnwrapSol"`
			Quote json.RawMessage `json:"quoteResponse"`
		}
		if err := json.Unmarshal(instructionsRequest(q, user), &back); err != nil || *back.User != user.String() || *back.Wrap {
			t.Fatalf("the request for instructions is invalid: %v", err)
		}
		if !bytes.Equal(bytes.TrimSpace(sent), back.Quote) {
			t.Fatal("the quote is not sent back unchanged")
		}
	})
}

// FuzzDecodeInstructions: accepted instructions are within the limits, and only the
// user signs.
func FuzzDecodeInstructions(f *testing.F) {
	for _, seed := range []string{
		goodInstructions, strings.Replace(goodInstructions, `"isSigner":false`, `"isSigner":true`, 1),
		strings.Replace(goodInstructions, `"setupInstructions":[]`, `"setupInstructions":[{},null,1]`, 1),
		strings.Replace(goodInstructions, `"addressLookupTableAddresses":["GxS6FiQ9RbErBB48mE34U4Jv13MdEJov4R1e5KgFzRFY"]`, `"addressesByLookupTableAddress":{"GxS6FiQ9RbErBB48mE34U4Jv13MdEJov4R1e5KgFzRFY":[]}`, 1),
		"", "{}", `{"swapInstruction":{}}`, `{"swapInstruction":null}`, goodInstructions[:300],
		`{"swapInstruction":{"programId":"11111111111111111111111111111111","accounts":[null],"data":"AA=="},"addressLookupTableAddresses":[]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		i, err := decodeInstructions(body, user)
		if (i == nil) == (err == nil) || (err != nil && !isDocumented(err)) {
			t.Fatalf("instructions %v, error %v; want one of them, and a documented error", i, err)
		}
		if i == nil {
			return
		}
		if n := len(i.Accounts); n < 1 || n > maxAccounts || len(i.Data) < 1 || len(i.Data) > maxData || len(i.LookupTables) > maxTables {
			t.Fatalf("%d accounts, %d bytes and %d tables exceed the limits", n, len(i.Data), len(i.LookupTables))
		}
		for _, a := range i.Accounts {
			if a.IsSigner && a.PublicKey != user {
				t.Fatal("another account than the user signs")
			}
		}
	})
}

// FuzzErrorCode: every refusal gives a documented error, and a *swap.NoRoute has a code
// from the fixed set.
func FuzzErrorCode(f *testing.F) {
	for _, seed := range []string{`{"errorCode":"NO_ROUTES_FOUND"}`, `{"error":"x"}`, `{"errorCode":null}`, `{}`, ``, `{"errorCode":"a","errorCode":"b"}`} {
		f.Add(400, []byte(seed))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		err := refusal(status, body, 0)
		if !isDocumented(err) {
			t.Fatalf("error is %v, want a documented one", err)
		}
		var n *swap.NoRoute
		if errors.As(err, &n) && swap.NewNoRoute(n.Code).Code != n.Code {
			t.Fatalf("code %q is not known", n.Code)
		}
	})
}

package trade_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/relaypool/relaypool/hack/wallet/trade"
)

func quote(in, out, amount, output, mode string) string {
	return fmt.Sprintf(`{"inputMint":%q,"outputMint":%q,"inAmount":%q,"outAmount":%q,"otherAmountThreshold":%q,"swapMode":%q}`, in, out, amount, output, output, mode)
}

const sol = "So11111111111111111111111111111111111111112"

func TestQuote(t *testing.T) {
	t.Parallel()
	const amount = 4_970_000
	valid := quote(sol, usdc.String(), "4970000", "745000", "ExactIn")
	tests := map[string]struct {
		status    int
		body      string
		want      uint64
		wantError string
	}{
		"a quote":                    {200, valid, 745_000, ""},
		"a refusal names its code":   {400, `{"error":"x","errorCode":"COULD_NOT_FIND_ANY_ROUTE"}`, 0, "router answered 400 COULD_NOT_FIND_ANY_ROUTE"},
		"a refusal in HTML":          {503, "<html>", 0, "router answered 503"},
		"an answer that is not JSON": {200, "<html>", 0, "6 bytes that are not valid JSON"},
		"a truncated answer":         {200, valid[:40], 0, "40 bytes that are not valid JSON"},
		"another input":              {200, quote(usdc.String(), usdc.String(), "4970000", "1", "ExactIn"), 0, "another mint, amount or mode"},
		"another output":             {200, quote(sol, sol, "4970000", "1", "ExactIn"), 0, "another mint, amount or mode"},
		"another amount":             {200, quote(sol, usdc.String(), "4970001", "1", "ExactIn"), 0, "another mint, amount or mode"},
		"another mode":               {200, quote(sol, usdc.String(), "4970000", "1", "ExactOut"), 0, "another mint, amount or mode"},
		"an output of 0":             {200, quote(sol, usdc.String(), "4970000", "0", "ExactIn"), 0, "outAmount has 1 characters"},
		"a negative output":          {200, quote(sol, usdc.String(), "4970000", "-1", "ExactIn"), 0, "outAmount has 2 characters"},
		"an output beyond 64 bits":   {200, quote(sol, usdc.String(), "4970000", "18446744073709551616", "ExactIn"), 0, "outAmount has 20 characters"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if got := r.URL.Path + "?" + r.URL.RawQuery; got != "/v1/quote?amount=4970000&inputMint="+sol+"&outputMint="+usdc.String()+"&restrictIntermediateTokens=true&slippageBps=0" {
					t.Errorf("the request is %s, want the path and query of a quote", got)
				}
				w.WriteHeader(tc.status)
				fmt.Fprint(w, tc.body)
			}))
			t.Cleanup(server.Close)
			router := trade.Router{URL: server.URL + "/v1", HTTP: server.Client()}
			got, err := router.Quote(t.Context(), usdc, amount)
			if got != tc.want {
				t.Errorf("got a quote of %d, want %d", got, tc.want)
			}
			if tc.wantError == "" && err != nil || tc.wantError != "" && (err == nil || !strings.Contains(err.Error(), tc.wantError)) {
				t.Errorf("error %v, want one with %q", err, tc.wantError)
			}
		})
	}
}

func TestAFailedQuoteDoesNotShowTheURL(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(server.Close)
	for name, url := range map[string]string{
		"a closed connection": strings.Replace(server.URL, "http://", "http://user:canary@", 1) + "/canary",
		"an invalid URL":      "http://canary:canary/canary",
	} {
		router := trade.Router{URL: url, HTTP: server.Client()}
		if _, err := router.Quote(t.Context(), usdc, 1); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: error %v, want one without the URL", name, err)
		}
	}
}

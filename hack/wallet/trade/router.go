package trade

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/gagliardetto/solana-go"
)

// maxQuote is the maximum length of an answer in bytes.
const maxQuote = 1 << 20

// Router is a client of a router with Jupiter's swap API v1. A wallet asks it for a quote
// before its user chooses a minimum. The relay asks the router independently.
type Router struct {
	// URL has no slash at the end. Both fields are required.
	URL  string
	HTTP *http.Client
}

// Quote returns the current output for an amount of wrapped SOL, in the output mint's
// smallest unit.
func (r *Router) Quote(ctx context.Context, mint solana.PublicKey, lamports uint64) (out uint64, err error) {
	query := url.Values{
		"inputMint": {solana.WrappedSol.String()}, "outputMint": {mint.String()},
		"amount": {strconv.FormatUint(lamports, 10)}, "slippageBps": {"0"}, "restrictIntermediateTokens": {"true"},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL+"/quote?"+query.Encode(), http.NoBody)
	if err != nil {
		return 0, errors.New("ask the router for a quote: its URL is invalid")
	}
	answer, err := r.HTTP.Do(request)
	if err != nil {
		return 0, fmt.Errorf("ask the router for a quote: %w", withoutURL(err))
	}
	defer func() { _ = answer.Body.Close() }() // an error does not matter: the body has been read
	content, err := io.ReadAll(io.LimitReader(answer.Body, maxQuote))
	if err != nil {
		return 0, fmt.Errorf("read the router's quote: %w", err)
	}
	return readQuote(answer.StatusCode, content, mint, lamports)
}

func readQuote(status int, content []byte, mint solana.PublicKey, lamports uint64) (out uint64, err error) {
	var quote struct {
		InputMint  string `json:"inputMint"`
		OutputMint string `json:"outputMint"`
		InAmount   string `json:"inAmount"`
		OutAmount  string `json:"outAmount"`
		SwapMode   string `json:"swapMode"`
		ErrorCode  string `json:"errorCode"`
	}
	err = json.Unmarshal(content, &quote)
	switch {
	case status != http.StatusOK:
		return 0, fmt.Errorf("router answered %d %s, expected a quote", status, quote.ErrorCode)
	case err != nil:
		return 0, fmt.Errorf("read the router's quote: received %d bytes that are not valid JSON", len(content))
	case quote.InputMint != solana.WrappedSol.String() || quote.OutputMint != mint.String() || quote.InAmount != strconv.FormatUint(lamports, 10) || quote.SwapMode != "ExactIn":
		return 0, errors.New("read the router's quote: it is for another mint, amount or mode than requested")
	}
	if out, err = strconv.ParseUint(quote.OutAmount, 10, 64); err != nil || out == 0 {
		return 0, fmt.Errorf("read the router's quote: outAmount has %d characters, expected a decimal number above 0", len(quote.OutAmount))
	}
	return out, nil
}

// withoutURL removes the URL from the error of a call, because URLs may contain credentials.
func withoutURL(err error) error {
	var call *url.Error
	if errors.As(err, &call) {
		return call.Err
	}
	return err
}

package chainwatch

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/gagliardetto/solana-go/rpc/jsonrpc"

	"github.com/relaypool/relaypool/relay/poolcheck"
)

// maxResponse bounds an answer in bytes. The largest tree account has ten
// megabytes, and a third more in base64.
const maxResponse = 64 << 20

// NewHTTPClient gives a client for Options. It follows no redirect: an endpoint
// is where the RelayPool says.
func NewHTTPClient() *http.Client {
	return &http.Client{
		Transport: bounded{&http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			ForceAttemptHTTP2:   true,
			MaxIdleConns:        256,
			MaxIdleConnsPerHost: 16,
			IdleConnTimeout:     90 * time.Second,
			TLSHandshakeTimeout: 10 * time.Second,
		}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// bounded cuts answers off, so that none fills the memory: what is cut decodes no more.
type bounded struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, maxResponse), resp.Body}
	return resp, nil
}

// reader reads one endpoint. call is a function so that no printing of a
// reader shows the URL.
type reader struct {
	call       func(ctx context.Context, out any, method string, params ...any) error
	commitment rpc.CommitmentType
}

// dial makes a reader of an endpoint. It makes no call.
func dial(client *http.Client, address string, finalized bool) (poolcheck.Reader, error) {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("its URL of %d characters is not usable: expected http:// or https:// and a host", len(address))
	}
	r := reader{commitment: rpc.CommitmentConfirmed}
	if finalized {
		r.commitment = rpc.CommitmentFinalized
	}
	endpoint := rpc.NewWithCustomRPCClient(jsonrpc.NewClientWithOpts(address, &jsonrpc.RPCClientOpts{HTTPClient: client}))
	r.call = func(ctx context.Context, out any, method string, params ...any) error {
		if err := endpoint.RPCCallForInto(ctx, out, method, params); err != nil {
			return callFault(method, err)
		}
		return nil
	}
	return r, nil
}

// GenesisHash implements poolcheck.Reader.
func (r reader) GenesisHash(ctx context.Context) (solana.Hash, error) {
	const method = "getGenesisHash"
	var text string
	if err := r.call(ctx, &text, method); err != nil {
		return solana.Hash{}, err
	}
	h, err := solana.HashFromBase58(text)
	if err != nil || h.IsZero() {
		return solana.Hash{}, malformed(method)
	}
	return h, nil
}

// wireAccounts is what getMultipleAccounts answers. What must be there is a
// pointer: a missing value is unknown, never zero.
type wireAccounts struct {
	Context struct {
		Slot *uint64 `json:"slot"`
	} `json:"context"`
	Value []*struct {
		Owner      *solana.PublicKey `json:"owner"`
		Lamports   *uint64           `json:"lamports"`
		Executable *bool             `json:"executable"`
		Data       []string          `json:"data"`
	} `json:"value"`
}

// Accounts implements poolcheck.Reader.
func (r reader) Accounts(ctx context.Context, keys []solana.PublicKey) (uint64, []*poolcheck.Account, error) {
	const method = "getMultipleAccounts"
	var wire wireAccounts
	if err := r.call(ctx, &wire, method, keys, rpc.M{"encoding": solana.EncodingBase64, "commitment": r.commitment}); err != nil {
		return 0, nil, err
	}
	if wire.Context.Slot == nil || len(wire.Value) != len(keys) {
		return 0, nil, malformed(method)
	}
	accounts := make([]*poolcheck.Account, len(keys))
	for i, w := range wire.Value {
		if w == nil {
			continue
		}
		if w.Owner == nil || w.Lamports == nil || w.Executable == nil || len(w.Data) != 2 || w.Data[1] != string(solana.EncodingBase64) {
			return 0, nil, malformed(method)
		}
		data, err := base64.StdEncoding.DecodeString(w.Data[0])
		if err != nil {
			return 0, nil, malformed(method)
		}
		accounts[i] = &poolcheck.Account{Owner: *w.Owner, Lamports: *w.Lamports, Executable: *w.Executable, Data: data}
	}
	return *wire.Context.Slot, accounts, nil
}

func malformed(method string) error {
	return fmt.Errorf("%s: the answer is not what the method answers", method)
}

// callFault tells in what way a call failed. The client's own errors hold the URL,
// and what the server says may repeat it, so neither is kept.
func callFault(method string, err error) error {
	var failed *jsonrpc.HTTPError
	var refused *jsonrpc.RPCError
	var network net.Error
	status := 0
	switch {
	case errors.As(err, &failed):
		status = failed.Code
	case errors.As(err, &refused) && http.StatusText(refused.Code) != "":
		status = refused.Code // providers repeat the HTTP status there, and the client then drops it
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return fmt.Errorf("%s: no answer in time", method)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: %w", method, context.Canceled)
	case status == http.StatusTooManyRequests:
		return fmt.Errorf("%s: HTTP 429: the endpoint limits the rate of requests", method)
	case status >= http.StatusInternalServerError:
		return fmt.Errorf("%s: HTTP %d", method, status)
	case status > 0:
		return fmt.Errorf("%s: HTTP %d: check the URL and its credentials", method, status)
	case errors.As(err, &refused):
		return fmt.Errorf("%s: JSON-RPC error %d", method, refused.Code)
	case errors.As(err, &network):
		return fmt.Errorf("%s: the endpoint cannot be reached", method)
	default:
		return fmt.Errorf("%s: the answer is no JSON-RPC", method)
	}
}

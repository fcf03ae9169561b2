package signer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/openbao/openbao/api/v2"

	"github.com/relaypool/relaypool/relay/cafile"
)

// maxVaultAnswer is the most that is read of an answer. A key with a thousand versions has some 150 kB.
const maxVaultAnswer = 1 << 20

// vaultClient makes single calls to Vault.
type vaultClient struct{ client *api.Client }

// newVaultClient makes a client that trusts only the authorities in the CA file, if there is one.
func newVaultClient(o VaultTransitOptions) (*vaultClient, error) {
	base := &http.Transport{ // it ignores proxies from the environment, as that of the routers does
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    16,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
	config := api.NewConfig() // unlike DefaultConfig it ignores the environment
	config.Address = o.URL
	config.MaxRetries = 0          // the caller repeats calls
	config.Timeout = 0             // the caller's context has one
	config.DisableRedirects = true // the token is for this server alone
	config.HttpClient.Transport = boundedAnswers{base}
	if o.CAFile != "" {
		trusting, err := cafile.NewTransport(base, cafile.Options{Path: o.CAFile, Now: o.Now, Changed: o.CAFileChanged})
		if err != nil {
			return nil, fmt.Errorf("vault's authorities: %w", err)
		}
		config.HttpClient.Transport = boundedAnswers{trusting}
	}
	client, err := api.NewClient(config)
	if err != nil {
		return nil, fmt.Errorf("make vault's client: %w", err)
	}
	if o.Namespace != "" {
		client.SetNamespace(o.Namespace)
	}
	return &vaultClient{client}, nil
}

// call makes one request, without repeating it, and decodes the answer. Its error is an
// *api.ResponseError if Vault answered with a failure; nobody should see that one's text, which may
// repeat what the request contained.
func (c *vaultClient) call(ctx context.Context, token, method, path string, body, answer any) error {
	request := c.client.NewRequest(method, "/v1/"+path)
	request.ClientToken = token
	if err := request.SetJSONBody(body); err != nil {
		return fmt.Errorf("encode the call of vault: %w", err)
	}
	response, err := c.client.RawRequestWithContext(ctx, request)
	if response != nil {
		defer func() { _ = response.Body.Close() }()
	}
	if err != nil {
		return withVaultHost(err, request.Host)
	}
	if response.StatusCode/100 == 3 {
		return fmt.Errorf("vault at %s redirects (%d), and the token is for no other server: give the url of the active server, or let standby servers forward requests", request.Host, response.StatusCode)
	}
	err = response.DecodeJSON(answer)
	if ctx.Err() != nil {
		return withVaultHost(ctx.Err(), request.Host)
	}
	if err != nil {
		return fmt.Errorf("decode what %s answered to %s: %w: expected the JSON of vault: correct the url", request.Host, path, err)
	}
	return nil
}

// boundedAnswers cuts off answers that are too long.
type boundedAnswers struct{ http.RoundTripper }

func (b boundedAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(response.Body, maxVaultAnswer), response.Body}
	}
	return response, err
}

// withVaultHost says who did not answer. It leaves an *api.ResponseError as it is.
func withVaultHost(err error, host string) error {
	var refusal *api.ResponseError
	if errors.As(err, &refusal) {
		return err
	}
	var call *url.Error
	if errors.As(err, &call) {
		err = call.Err
	}
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		return fmt.Errorf("call vault at %s: %w: put the authority of vault's certificate into the ca file", host, err)
	}
	return fmt.Errorf("call vault at %s: %w", host, err)
}

func hasStatus(err error, status int) bool {
	var refusal *api.ResponseError
	return errors.As(err, &refusal) && refusal.StatusCode == status
}

// vaultReasons returns what Vault said, on one line and without the secrets.
func vaultReasons(refusal *api.ResponseError, secrets ...string) string {
	const maxReasons = 300
	if refusal.RawError { // it can be anything, such as the page of a proxy with all headers
		return "an answer that is not vault's JSON"
	}
	text := strings.Join(refusal.Errors, "; ")
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "[redacted]")
		}
	}
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxReasons {
		text = text[:maxReasons] + "…"
	}
	if text == "" {
		return "no reason given"
	}
	return text
}

// vaultStatusError is the error of a failure that says nothing about the key or the login.
func vaultStatusError(status int, reasons string) error {
	switch status {
	case http.StatusServiceUnavailable:
		return fmt.Errorf("vault does not serve (%d: %s): unseal it, or wait until it is active", status, reasons)
	case http.StatusTooManyRequests:
		return fmt.Errorf("vault refuses so many calls (%d: %s): raise its quota", status, reasons)
	}
	return fmt.Errorf("vault answered with a failure (%d: %s): its log says more", status, reasons)
}

package router

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/internal/swap"
)

const (
	// maxResponse is the largest size of an answer in bytes, uncompressed; a normal answer has
	// a few thousand bytes.
	maxResponse = 512 << 10
	// maxPause is the longest pause that one Retry-After can cause: a swap has only about 40
	// seconds in all.
	maxPause = 8 * time.Second
	// If the caller's deadline ends a call that has run for at least abandonAfter, the call
	// counts as a failure of the router.
	abandonAfter = time.Second
)

// call is one request, and how to decode its answer.
type call[T any] struct {
	name, method, path string
	query              url.Values
	body               []byte
	decode             func(body []byte) (T, error)
}

// ask makes the call once there is capacity for it, and reports its outcome to the breaker
// and the observer.
func ask[T any](ctx context.Context, c *Client, q call[T]) (T, error) {
	var none T
	permit, leave, err := c.admit(ctx)
	if err != nil {
		c.observer.RouterSkipped(c.name, q.name, err.Kind)
		return none, err
	}
	defer leave()
	start := c.now()
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	answer, fault := attempt(ctx, limited, c, q)
	took := c.now().Sub(start)
	c.recordResult(permit, took, fault)
	c.observer.RouterCalled(c.name, q.name, outcomeOf(fault), took)
	var rejected *swap.RejectedRoute
	if errors.As(fault, &rejected) {
		rejected.Router = c.name
		c.observer.RouteRejected(rejected.What)
	}
	if fault != nil {
		return none, fault
	}
	return answer, nil
}

func contextEnded(ctx context.Context) *swap.RouterUnavailable {
	return &swap.RouterUnavailable{Kind: swap.FaultCancelled, Err: ctx.Err()}
}

// attempt makes the call under ctx. parent is the caller's own context, which shows whether
// the caller or the timeout ended the call.
func attempt[T any](parent, ctx context.Context, c *Client, q call[T]) (T, error) {
	var none T
	target := c.base().JoinPath(q.path)
	query := target.Query() // the configured URL's query may hold a key
	for name, values := range q.query {
		query[name] = values
	}
	target.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, q.method, target.String(), bytes.NewReader(q.body))
	if err != nil {
		return none, transportFault(parent, ctx, err)
	}
	req.Header.Set("Accept", "application/json")
	if key := c.key(); key != "" {
		req.Header.Set("X-Api-Key", key)
	}
	if q.body != nil {
		req.Header.Set("Content-Type", "application/json")
		// The request changes nothing, so it may be repeated. Because of this header, net/http
		// repeats the request on a new connection if an idle one turns out to be dead. The
		// header itself is not sent, because its list of values is empty.
		req.Header["X-Idempotency-Key"] = []string{}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return none, transportFault(parent, ctx, err)
	}
	defer func() { _ = resp.Body.Close() }() // nothing is lost: the body has been read
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	pause := retryAfter(resp.Header.Get("Retry-After"), c.now())
	switch {
	case err != nil:
		return none, transportFault(parent, ctx, err)
	case len(body) > maxResponse:
		return none, badResponse("answer is above %d bytes", maxResponse)
	case resp.StatusCode != http.StatusOK:
		return none, refusal(resp.StatusCode, body, pause)
	}
	if code, is := errorCode(body); is {
		// Some of the API's servers send refusals with status 200.
		return none, swap.NewNoRoute(code)
	}
	return q.decode(body)
}

// refusal is the error of an answer with another status than 200. It leaves out the
// answer's text, which may repeat the request.
func refusal(status int, body []byte, pause time.Duration) error {
	code, _ := errorCode(body)
	noRoute := swap.NewNoRoute(code)
	unavailable := func(kind, advice string) error {
		return &swap.RouterUnavailable{Kind: kind, Detail: fmt.Sprintf("HTTP %d%s", status, advice), RetryAfter: pause}
	}
	switch {
	case status == http.StatusTooManyRequests:
		return unavailable(swap.FaultRateLimited, "")
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return unavailable(swap.FaultRejected, ": check the router's URL and API key")
	case noRoute.Code != swap.CodeOther:
		return noRoute
	case status >= http.StatusInternalServerError || status == http.StatusRequestTimeout:
		return unavailable(swap.FaultServerError, "")
	case status == http.StatusBadRequest || status == http.StatusUnprocessableEntity:
		return noRoute
	default:
		return unavailable(swap.FaultRejected, ": check the router's URL")
	}
}

// transportFault returns why no answer came. It leaves out net/http's own error, which
// repeats the URL and with it the request.
func transportFault(parent, ctx context.Context, err error) *swap.RouterUnavailable {
	switch {
	case parent.Err() != nil:
		return contextEnded(parent)
	case ctx.Err() != nil:
		return &swap.RouterUnavailable{Kind: swap.FaultTimeout}
	default:
		return &swap.RouterUnavailable{Kind: swap.FaultConnection, Detail: connectionDetail(err)}
	}
}

// connectionDetail describes the most common causes, without the error's own text.
func connectionDetail(err error) string {
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.As(err, &dns):
		return "host name not resolved"
	case errors.As(err, &certificate):
		return "TLS certificate not accepted"
	default:
		return ""
	}
}

// recordResult reports a call's outcome to the breaker, and releases the permit.
func (c *Client) recordResult(permit outbound.Permit, took time.Duration, err error) {
	var unavailable *swap.RouterUnavailable
	var rejected *swap.RejectedRoute
	outcome, pause := outbound.Good, time.Duration(0)
	switch {
	case errors.As(err, &rejected):
		outcome = outbound.Bad
		c.last.set(outcomeRejected)
	case !errors.As(err, &unavailable):
		// NoRoute is a good answer: the router works.
	case unavailable.Kind == swap.FaultCancelled && (took < abandonAfter || !errors.Is(unavailable.Err, context.DeadlineExceeded)):
		outcome = outbound.NoOutcome
	default:
		outcome, pause = outbound.Bad, unavailable.RetryAfter
		c.last.set(unavailable.Kind)
	}
	permit.Done(outcome)
	if pause > 0 {
		c.breaker.Pause(pause, maxPause)
	}
}

func (c *Client) breakerChanged(from, to outbound.State) {
	switch {
	case to == outbound.Open && from == outbound.Closed:
		c.log.Warn("swap router breaker opened", "router", c.name, "last_error", c.last.get())
	case to == outbound.Closed:
		c.log.Info("swap router breaker closed", "router", c.name)
	}
}

const outcomeRejected = "route_rejected"

// outcomeOf is a call's outcome as a metric's label, from a fixed set.
func outcomeOf(err error) string {
	var unavailable *swap.RouterUnavailable
	var rejected *swap.RejectedRoute
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &unavailable):
		return unavailable.Kind
	case errors.As(err, &rejected):
		return outcomeRejected
	default:
		return "no_route"
	}
}

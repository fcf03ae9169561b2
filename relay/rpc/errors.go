package rpc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// These are the JSON-RPC error codes of the specification and Agave's own (rpc-client-api,
// custom_error).
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeUnknownMethod  = -32601
	codeInvalidParams  = -32602

	codeBlockCleanedUp          = -32001
	codePreflightFailure        = -32002
	codeSignatureVerification   = -32003
	codeBlockNotAvailable       = -32004
	codeNodeUnhealthy           = -32005
	codeSlotSkipped             = -32007
	codeKeyExcluded             = -32010
	codeHistoryNotAvailable     = -32011
	codeLongTermSlotSkipped     = -32009
	codeBlockStatusNotAvailable = -32014
	codeUnsupportedVersion      = -32015
	codeMinContextSlot          = -32016

	// Providers' own codes for 429 inside an answer of status 200.
	codeTooManyRequests        = 429
	codeTooManyRequestsPrivate = -32429
)

// rpcFault is the error member of a JSON-RPC answer.
type rpcFault struct {
	Code    int            `json:"code"`
	Message string         `json:"message"`
	Data    jsontext.Value `json:"data"`
}

// fault converts a JSON-RPC error. If the code does not show that the endpoint refused the call,
// the outcome is unknown: a send may have been forwarded.
func (c *Client) fault(method string, f *rpcFault) error {
	detail := strings.TrimSuffix(fmt.Sprintf("code %d: %s", f.Code, c.message(f.Message)), ": ")
	unavailable := func(kind string) error {
		return &onchain.Unavailable{Method: method, Kind: kind, Detail: detail}
	}
	if f.Code == codeUnsupportedVersion {
		c.learnVersion(f.Message)
	}
	refused := &onchain.RPCError{Method: method, Code: f.Code, Message: c.message(f.Message)}
	switch f.Code {
	case codePreflightFailure:
		if e := preflightError(f.Data); e != nil {
			return &onchain.SendError{Err: e}
		}
		return refused
	case codeSignatureVerification:
		return &onchain.SendError{Err: &shieldpool.TransactionError{Kind: "SignatureFailure"}}
	case codeBlockCleanedUp:
		return fmt.Errorf("%s: %w", method, onchain.ErrBlockPruned)
	case codeSlotSkipped, codeLongTermSlotSkipped:
		return fmt.Errorf("%s: %w", method, onchain.ErrSlotSkipped)
	case codeBlockNotAvailable, codeBlockStatusNotAvailable:
		return unavailable(onchain.KindNotYet)
	case codeNodeUnhealthy, codeMinContextSlot:
		return &onchain.Unavailable{
			Method: method, Kind: onchain.KindNodeBehind, Slot: contextSlot(f.Data), Detail: detail,
		}
	case codeTooManyRequests, codeTooManyRequestsPrivate:
		return unavailable(onchain.KindRateLimited)
	case codeParse, codeInvalidRequest, codeUnknownMethod, codeInvalidParams,
		codeKeyExcluded, codeHistoryNotAvailable, codeUnsupportedVersion:
		return refused
	default:
		return unavailable(onchain.KindServerError)
	}
}

// preflightError returns the transaction's error in the data of a preflight failure; nil when it
// is missing or malformed.
func preflightError(data jsontext.Value) *shieldpool.TransactionError {
	var d struct {
		Err jsontext.Value `json:"err"`
	}
	if json.Unmarshal(data, &d, lenient) != nil {
		return nil
	}
	e, err := shieldpool.ParseTransactionError(d.Err)
	if err != nil {
		return nil
	}
	return e
}

// contextSlot returns the node's slot from the data of a refusal; 0 when it is missing. A node that
// has not reached minContextSlot reports its slot there.
func contextSlot(data jsontext.Value) uint64 {
	var d struct {
		Slot uint64 `json:"contextSlot"`
	}
	if json.Unmarshal(data, &d, lenient) != nil {
		return 0
	}
	return d.Slot
}

// gateError returns the error of a call that was not made, because the budget was exhausted or
// the caller stopped waiting.
func gateError(ctx context.Context, method string, err error) error {
	if ctx.Err() != nil {
		return Ended(ctx, method)
	}
	return &onchain.Unavailable{Method: method, Kind: onchain.KindBudget, Detail: err.Error()}
}

// ErrLimit is the cause of a context that ended because the call's time was up, not because
// the caller stopped waiting.
var ErrLimit = errors.New("the endpoint took too long")

// Ended returns the error of a call whose context has ended.
func Ended(ctx context.Context, method string) error {
	if errors.Is(context.Cause(ctx), ErrLimit) {
		return &onchain.Unavailable{Method: method, Kind: onchain.KindTimeout}
	}
	return &onchain.Unavailable{Method: method, Kind: onchain.KindCancelled, Err: ctx.Err()}
}

// transportFault returns the reason why no answer came. It omits net/http's error, which repeats
// the URL.
func transportFault(parent, attempt context.Context, method string, err error) error {
	switch {
	case parent.Err() != nil:
		return Ended(parent, method)
	case attempt.Err() != nil:
		return &onchain.Unavailable{Method: method, Kind: onchain.KindTimeout}
	default:
		return &onchain.Unavailable{Method: method, Kind: onchain.KindConnection, Detail: ConnectionDetail(err)}
	}
}

// ConnectionDetail returns the cause of a failed connection if that is a common one, and ""
// otherwise. The result never contains the URL.
func ConnectionDetail(err error) string {
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

// ClassOf returns the metric class of a call: "ok", "refused", "preflight" or a kind of
// onchain.Unavailable.
func ClassOf(err error) string {
	var u *onchain.Unavailable
	var s *onchain.SendError
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &u):
		return u.Kind
	case errors.As(err, &s):
		return "preflight"
	default:
		return "refused"
	}
}

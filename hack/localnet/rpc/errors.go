package rpc

import (
	"fmt"
)

// Codes of JSON-RPC 2.0 and of Agave's own errors.
const (
	codeParse                    = -32700
	codeInvalidRequest           = -32600
	codeMethodNotFound           = -32601
	codeInvalidParams            = -32602
	codeInternal                 = -32603
	codeBlockCleanedUp           = -32001
	codePreflightFailure         = -32002
	codeSignatureFailure         = -32003
	codeBlockNotAvailable        = -32004
	codeNodeUnhealthy            = -32005
	codeSlotSkipped              = -32007
	codeUnsupportedVersion       = -32015
	codeMinContextSlotNotReached = -32016
)

// Error is a JSON-RPC error with Agave's code, message and data.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

// Error returns the message and code.
func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

func errorf(code int, format string, args ...any) error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

func invalidParams(format string, args ...any) error {
	return errorf(codeInvalidParams, format, args...)
}

func errInvalidTransaction(broken error) error {
	return invalidParams("invalid transaction: %v", broken)
}

func errSignatureFailure() error {
	return errorf(codeSignatureFailure, "Transaction signature verification failure")
}

func errNodeBehind(slots uint64) error {
	return &Error{
		Code:    codeNodeUnhealthy,
		Message: fmt.Sprintf("Node is behind by %d slots", slots),
		Data:    map[string]uint64{"numSlotsBehind": slots},
	}
}

func errMinContextSlot(slot uint64) error {
	return &Error{
		Code:    codeMinContextSlotNotReached,
		Message: "Minimum context slot has not been reached",
		Data:    map[string]uint64{"contextSlot": slot},
	}
}

func errUnsupportedVersion(version int) error {
	return errorf(codeUnsupportedVersion, "Transaction version (%d) is not supported by the requesting client. Please try the request again with the "+
		"following configuration parameter: \"maxSupportedTransactionVersion\": %d", version, version)
}

package rpc

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/relaypool/relaypool/hack/localnet/fault"
)

type request struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
}

type response struct {
	Version string          `json:"jsonrpc"`
	Result  any             `json:"result"`
	ID      json.RawMessage `json:"id"`
}

type errorResponse struct {
	Version string          `json:"jsonrpc"`
	Error   *Error          `json:"error"`
	ID      json.RawMessage `json:"id"`
}

func fail(id json.RawMessage, err *Error) any {
	return errorResponse{Version: "2.0", Error: err, ID: id}
}

// pendingCall is a client's call that is not yet answered, with its method and faults.
type pendingCall struct {
	request
	// refusal is the answer to a message that is not a call, nil for a call.
	refusal any
	serve   method
	plan    fault.Plan
}

// connectionFailure returns the rule that fails the call on the connection (by status, cut
// or hang), or nil. A rule that answers with a JSON-RPC error does not count.
func (p *pendingCall) connectionFailure(afterActing bool) *fault.Rule {
	rule := p.plan.Failure
	if rule == nil || rule.Error.Code != 0 || rule.AfterActing != afterActing {
		return nil
	}
	return rule
}

// parse reads a call and draws its faults.
func (e *Endpoint) parse(body []byte, methods map[string]method) *pendingCall {
	p := &pendingCall{}
	if !json.Valid(body) {
		p.refusal = fail(nil, &Error{Code: codeParse, Message: "Parse error"})
		return p
	}
	if err := json.Unmarshal(body, &p.request); err != nil || p.Version != "2.0" || p.Method == "" {
		p.refusal = fail(p.ID, &Error{Code: codeInvalidRequest, Message: "Invalid request"})
		return p
	}
	// Unknown methods count under one name. Otherwise clients could fill the memory with counts.
	var name string
	if serve, ok := methods[p.Method]; ok {
		name, p.serve = p.Method, serve
	}
	e.count(name)
	p.plan = e.faults.Plan(name)
	return p
}

// answer executes a call under its faults. It returns the value to marshal, or the rule that fails
// the call on the connection. When ctx ends first, that rule is a hang.
func (e *Endpoint) answer(ctx context.Context, p *pendingCall) (any, *fault.Rule) {
	if p.refusal != nil {
		return p.refusal, nil
	}
	clientGone := &fault.Rule{Hang: true}
	if !fault.Wait(ctx, p.plan.Before) {
		return nil, clientGone
	}
	if rule := p.connectionFailure(false); rule != nil {
		return nil, rule
	}
	answer := e.execute(p)
	if !fault.Wait(ctx, p.plan.After) {
		return nil, clientGone
	}
	if rule := p.connectionFailure(true); rule != nil {
		return nil, rule
	}
	return answer, nil
}

// execute executes the call and returns its answer, which may be an error.
func (e *Endpoint) execute(p *pendingCall) any {
	result, err := e.call(p)
	if err == nil {
		return response{Version: "2.0", Result: result, ID: p.ID}
	}
	var refused *Error
	if !errors.As(err, &refused) {
		refused = &Error{Code: codeInternal, Message: "Internal error: " + err.Error()}
	}
	return fail(p.ID, refused)
}

func (e *Endpoint) call(p *pendingCall) (any, error) {
	var injected *Error
	if rule := p.plan.Failure; rule != nil && rule.Error.Code != 0 {
		injected = &Error{Code: rule.Error.Code, Message: rule.Error.Message}
		if !rule.AfterActing {
			return nil, injected
		}
	}
	if p.serve == nil {
		return nil, &Error{Code: codeMethodNotFound, Message: "Method not found"}
	}
	var parameters params
	if len(p.Params) > 0 && json.Unmarshal(p.Params, &parameters) != nil {
		return nil, invalidParams("Invalid params: expected an array of positional parameters")
	}
	result, err := p.serve(&call{Endpoint: e, plan: p.plan}, parameters)
	if injected != nil {
		return nil, injected
	}
	return result, err
}

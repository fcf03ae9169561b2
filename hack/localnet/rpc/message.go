package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

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

// pending is one call of a message.
type pending struct {
	request
	// refusal is the answer when the call is none; nil when it is one.
	refusal any
	serve   method
	plan    fault.Plan
}

// transport is the rule by which the whole message fails, or nil: one that
// answers with a JSON-RPC error fails its call alone.
func (p *pending) transport(afterActing bool) *fault.Rule {
	rule := p.plan.Failure
	if rule == nil || rule.Error.Code != 0 || rule.AfterActing != afterActing {
		return nil
	}
	return rule
}

// message is what a client sent: one call or a batch.
type message struct {
	calls []*pending
	batch bool
	// refusal is the answer when there is no call in it.
	refusal any
}

// parse reads a message and draws the faults of its calls.
func (e *Endpoint) parse(body []byte, methods map[string]method) message {
	body = bytes.TrimSpace(body)
	if len(body) == 0 || body[0] != '[' {
		return message{calls: []*pending{e.parseOne(body, methods)}}
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(body, &raw); err != nil {
		return message{refusal: fail(nil, &Error{Code: codeParse, Message: "Parse error"})}
	}
	if len(raw) == 0 {
		return message{refusal: fail(nil, &Error{Code: codeInvalidRequest, Message: "Invalid request"})}
	}
	m := message{batch: true}
	for _, one := range raw {
		m.calls = append(m.calls, e.parseOne(one, methods))
	}
	return m
}

func (e *Endpoint) parseOne(body []byte, methods map[string]method) *pending {
	p := &pending{}
	if !json.Valid(body) {
		p.refusal = fail(nil, &Error{Code: codeParse, Message: "Parse error"})
		return p
	}
	if err := json.Unmarshal(body, &p.request); err != nil || p.Version != "2.0" || p.Method == "" {
		p.refusal = fail(p.ID, &Error{Code: codeInvalidRequest, Message: "Invalid request"})
		return p
	}
	// Methods that do not exist share one name, or clients could fill the
	// memory with their counts.
	var name string
	if serve, ok := methods[p.Method]; ok {
		name, p.serve = p.Method, serve
	}
	e.count(name)
	p.plan = e.faults.Plan(name)
	return p
}

// answer acts on a message under its faults. It gives what to marshal, or nil
// when nothing is to be said, because a call without id is a notification; or
// the rule by which the transport fails. When ctx ends first it gives a hang.
func (e *Endpoint) answer(ctx context.Context, m message) (any, *fault.Rule) {
	if m.refusal != nil {
		return m.refusal, nil
	}
	var before, after time.Duration
	for _, p := range m.calls {
		before, after = max(before, p.plan.Before), max(after, p.plan.After)
	}
	gone := &fault.Rule{Hang: true}
	if !wait(ctx, before) {
		return nil, gone
	}
	for _, p := range m.calls {
		if rule := p.transport(false); rule != nil {
			return nil, rule
		}
	}
	var answers []any
	for _, p := range m.calls {
		if one := e.act(p); one != nil {
			answers = append(answers, one)
		}
	}
	if !wait(ctx, after) {
		return nil, gone
	}
	for _, p := range m.calls {
		if rule := p.transport(true); rule != nil {
			return nil, rule
		}
	}
	switch {
	case answers == nil:
		return nil, nil
	case !m.batch:
		return answers[0], nil
	default:
		return answers, nil
	}
}

// act makes one call and gives its answer, or nil for a notification.
func (e *Endpoint) act(p *pending) any {
	if p.refusal != nil {
		return p.refusal
	}
	result, err := e.call(p)
	switch {
	case p.ID == nil:
		return nil
	case err != nil:
		return fail(p.ID, err)
	default:
		return response{Version: "2.0", Result: result, ID: p.ID}
	}
}

func (e *Endpoint) call(p *pending) (any, *Error) {
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
	parameters, err := parseParams(p.Params)
	if err != nil {
		return nil, err
	}
	result, err := p.serve(&call{Endpoint: e, plan: p.plan}, parameters)
	if injected != nil {
		return nil, injected
	}
	return result, err
}

// wait lets time pass; it reports false when ctx ends first.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

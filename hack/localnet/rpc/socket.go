package rpc

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/relaypool/relaypool/hack/localnet/fault"
)

const (
	// maxSocketMessage is Agave's limit on a client's message, in bytes.
	maxSocketMessage = 4096
	// writeTimeout is the timeout of one write: a client may have stopped reading.
	writeTimeout = 5 * time.Second
)

// socket is one WebSocket connection with its subscriptions.
type socket struct {
	*Endpoint
	conn *websocket.Conn
	// woken has a value when the slot has changed since the last check of the subscriptions.
	woken chan struct{}
	// unanswered are subscriptions whose answer is not yet sent. Only the goroutine of
	// serve uses them.
	unanswered []*subscription

	mu   sync.Mutex
	subs []*subscription
}

// serveSocket opens a WebSocket and serves it until one side closes it.
func (e *Endpoint) serveSocket(w http.ResponseWriter, r *http.Request) {
	e.count(fault.MethodSocket)
	plan := e.faults.Plan(fault.MethodSocket)
	if !fault.Wait(r.Context(), plan.Before+plan.After) {
		return
	}
	if rule := plan.Failure; rule != nil {
		if rule.Error.Code != 0 {
			// A handshake can fail only with an HTTP status.
			rule = &fault.Rule{Status: http.StatusServiceUnavailable}
		}
		e.failHTTP(w, r, rule)
		return
	}
	// As on Agave, the origin is not checked: a page of any site may subscribe.
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		// Accept has answered the client.
		e.log.Debug("websocket not opened", "error", err)
		return
	}
	conn.SetReadLimit(maxSocketMessage)
	s := &socket{Endpoint: e, conn: conn, woken: make(chan struct{}, 1)}
	if !e.register(s) {
		s.cut()
		return
	}
	defer e.unregister(s)
	// After the upgrade the request's context no longer ends with the connection.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	var notifying sync.WaitGroup
	notifying.Go(func() { s.notifyAll(ctx) })
	s.serve(ctx)
	cancel()
	s.cut()
	notifying.Wait()
}

// register registers a socket unless the endpoint is closed. It reports whether it did.
func (e *Endpoint) register(s *socket) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-e.closed:
		return false
	default:
	}
	e.sockets[s] = struct{}{}
	e.serving.Add(1)
	return true
}

func (e *Endpoint) unregister(s *socket) {
	e.mu.Lock()
	delete(e.sockets, s)
	e.mu.Unlock()
	e.serving.Done()
}

// wake makes every socket check its subscriptions. It never waits.
func (e *Endpoint) wake() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for s := range e.sockets {
		select {
		case s.woken <- struct{}{}:
		default:
		}
	}
}

// Close cuts all WebSocket connections and waits for them. The endpoint then opens
// no further WebSocket.
func (e *Endpoint) Close() {
	e.closeOnce.Do(func() {
		e.cancelOnSlot()
		close(e.closed)
	})
	e.mu.Lock()
	open := maps.Clone(e.sockets)
	e.mu.Unlock()
	for s := range open {
		s.cut()
	}
	e.serving.Wait()
}

// cut closes the connection without a close message. Further calls do nothing.
func (s *socket) cut() {
	// The only possible error says that the connection is already closed.
	_ = s.conn.CloseNow()
}

// serve answers the client's calls one after the other, as Agave does, until the connection ends.
func (s *socket) serve(ctx context.Context) {
	methods := map[string]method{methodSubscribe: s.accountSubscribe}
	for {
		_, body, err := s.conn.Read(ctx)
		if err != nil {
			return
		}
		p := s.parse(body, methods)
		p.replaceStatus()
		answer, failure := s.answer(ctx, p)
		if failure != nil && failure.Cut {
			return
		}
		if s.send(ctx, answer) != nil {
			return
		}
	}
}

// send writes an answer, unless it is nil, and starts the notifications of unanswered
// subscriptions. Both happen in one critical section. A notification therefore never precedes the
// answer with the subscription's id, and no change after the answer is missed.
func (s *socket) send(ctx context.Context, answer any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subs, s.unanswered = append(s.subs, s.unanswered...), nil
	if answer == nil {
		return nil
	}
	return s.write(ctx, answer)
}

// replaceStatus turns a failure with an HTTP status into a failure with a JSON-RPC
// error, as providers do on a WebSocket, where an answer has no HTTP status.
func (p *pendingCall) replaceStatus() {
	if rule := p.plan.Failure; rule != nil && rule.Status != 0 {
		err := statusError(rule)
		p.plan.Failure = &fault.Rule{Error: fault.Error{Code: err.Code, Message: err.Message}, AfterActing: rule.AfterActing}
	}
}

func (s *socket) write(ctx context.Context, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		s.log.Error("answer not encoded", "error", err)
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return s.conn.Write(ctx, websocket.MessageText, raw)
}

// notifyAll checks the subscriptions after every change of the open slot.
func (s *socket) notifyAll(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.woken:
		}
		if s.faults.CutSocket() {
			s.cut()
			return
		}
		s.mu.Lock()
		for _, sub := range s.subs {
			if n := s.checkSubscription(sub); n != nil && s.write(ctx, n) != nil {
				s.mu.Unlock()
				s.cut()
				return
			}
		}
		s.mu.Unlock()
	}
}

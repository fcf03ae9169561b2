package rpc

import (
	"cmp"
	"math"
	"reflect"
	"slices"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/fault"
)

// subscription is what a client asked to be told of.
type subscription struct {
	id uint64
	// method subscribed, notification is told.
	method, notification string
	// find gives the results to tell since it was called last, and whether it
	// has told all that it ever will.
	find func(*call) (results []any, done bool)
}

// notification is the message of one result.
type notification struct {
	Version string             `json:"jsonrpc"`
	Method  string             `json:"method"`
	Params  notificationParams `json:"params"`
}

type notificationParams struct {
	Result       any    `json:"result"`
	Subscription uint64 `json:"subscription"`
}

// notice is a result with its slot. Unlike that of an answer its context has
// no version.
type notice struct {
	Context struct {
		Slot uint64 `json:"slot"`
	} `json:"context"`
	Value any `json:"value"`
}

func noticeAt(slot uint64, value any) notice {
	n := notice{Value: value}
	n.Context.Slot = slot
	return n
}

// socketMethods are those of a WebSocket, which serves no others.
func socketMethods() map[string]func(*socket, *call, params) (any, *Error) {
	return map[string]func(*socket, *call, params) (any, *Error){
		"signatureSubscribe":   (*socket).signatureSubscribe,
		"accountSubscribe":     (*socket).accountSubscribe,
		"slotSubscribe":        (*socket).slotSubscribe,
		"signatureUnsubscribe": (*socket).unsubscribe,
		"accountUnsubscribe":   (*socket).unsubscribe,
		"slotUnsubscribe":      (*socket).unsubscribe,
		"getVersion":           func(_ *socket, c *call, p params) (any, *Error) { return c.getVersion(p) },
	}
}

// methodsOfSocket binds the methods to this socket.
func (s *socket) methodsOfSocket() map[string]method {
	bound := make(map[string]method)
	for name, serve := range socketMethods() {
		bound[name] = func(c *call, p params) (any, *Error) { return serve(s, c, p) }
	}
	return bound
}

func (s *socket) subscribe(sub *subscription) (any, *Error) {
	sub.id = s.subscribed.Add(1) - 1
	s.fresh = append(s.fresh, sub)
	return sub.id, nil
}

// unsubscribe ends a subscription of any kind, as on Agave.
func (s *socket) unsubscribe(_ *call, p params) (any, *Error) {
	if err := p.want(1, 1); err != nil {
		return nil, err
	}
	var id uint64
	if err := p.decode(0, &id); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := len(s.subs) + len(s.fresh)
	delete(s.subs, id)
	s.fresh = slices.DeleteFunc(s.fresh, func(sub *subscription) bool { return sub.id == id })
	if len(s.subs)+len(s.fresh) == known {
		return nil, invalidParams("Invalid subscription id.")
	}
	return true, nil
}

func (s *socket) signatureSubscribe(_ *call, p params) (any, *Error) {
	if err := p.want(1, 2); err != nil {
		return nil, err
	}
	var text string
	if err := p.decode(0, &text); err != nil {
		return nil, err
	}
	var cfg contextConfig
	if err := p.decode(1, &cfg); err != nil {
		return nil, err
	}
	signature, err := parseSignature(text)
	if err != nil {
		return nil, invalidParams("Invalid Request: Invalid signature provided")
	}
	return s.subscribe(&subscription{
		method: "signatureSubscribe", notification: "signatureNotification",
		// One that landed before is told of too, with the next slot.
		find: func(c *call) (found []any, _ bool) {
			c.readAt(bank.Commitment(cfg.Commitment), func(v view) {
				if landed := v.Transaction(signature); landed != nil {
					found = []any{noticeAt(v.Slot(), map[string]any{"err": landed.Meta.Err})}
				}
			})
			return found, found != nil
		},
	})
}

func (s *socket) accountSubscribe(c *call, p params) (any, *Error) {
	if err := p.want(1, 2); err != nil {
		return nil, err
	}
	// A data slice is read and has no effect on notifications, as on Agave.
	cfg := accountConfig{Encoding: encodingBinary}
	if err := p.decode(1, &cfg); err != nil {
		return nil, err
	}
	if _, err := encodeData(nil, cfg.Encoding); err != nil {
		return nil, err
	}
	key, err := p.key()
	if err != nil {
		return nil, invalidParams("Invalid Request: Invalid pubkey provided")
	}
	at := bank.Commitment(cfg.Commitment)
	watched := &watched{key: key}
	c.readAt(at, func(v view) { watched.changed(v) })
	return s.subscribe(&subscription{
		method: "accountSubscribe", notification: "accountNotification",
		find: func(c *call) (found []any, _ bool) {
			c.readAt(at, func(v view) {
				if watched.changed(v) {
					found = []any{noticeAt(v.Slot(), encodeNotified(watched.last, cfg.Encoding))}
				}
			})
			return found, false
		},
	})
}

// watched is an account as a subscriber knows it.
type watched struct {
	key solana.PublicKey
	// slot is when the account was last written; 0 when there is none.
	slot uint64
	last *bank.Account
}

// changed looks at the account and reports whether it is another one than
// before: one that a transaction has written, or that a fork brought back.
func (w *watched) changed(v view) bool {
	slot := v.WrittenAt(w.key)
	// What was written in the newest slot can be written again in it; and the
	// data may be large, so it is not looked at without need.
	if slot == w.slot && slot < v.Slot() {
		return false
	}
	now := v.Account(w.key)
	if now == nil {
		slot = 0
	}
	if slot == w.slot && reflect.DeepEqual(now, w.last) {
		return false
	}
	w.slot, w.last = slot, now
	return true
}

// encodeNotified gives an account's form in a notification: one that is gone is
// an empty one of the system program's, and data that its encoding does not
// bear is replaced by a text.
func encodeNotified(a *bank.Account, as encoding) account {
	if a == nil {
		a = &bank.Account{Owner: solana.SystemProgramID}
	}
	out := account{
		Executable: a.Executable, Lamports: a.Lamports, Owner: a.Owner.String(), RentEpoch: math.MaxUint64, Space: len(a.Data),
	}
	data, err := encodeData(a.Data, as)
	if err != nil {
		data = "error: data too large for bs58 encoding"
		if as == encodingBase58 {
			data = [2]any{data, encodingBase58}
		}
	}
	out.Data = data
	return out
}

func (s *socket) slotSubscribe(c *call, p params) (any, *Error) {
	if err := p.want(0, 0); err != nil {
		return nil, err
	}
	var last uint64
	c.readAt(bank.Processed, func(v view) { last = v.Slot() })
	return s.subscribe(&subscription{
		method: "slotSubscribe", notification: "slotNotification",
		find: func(c *call) (found []any, _ bool) {
			var root uint64
			c.readAt(bank.Finalized, func(v view) { root = v.Slot() })
			c.readAt(bank.Processed, func(v view) {
				for _, slot := range v.Blocks(last+1, v.Slot()) {
					if block, err := v.Block(slot); err == nil {
						found = append(found, map[string]uint64{"slot": slot, "parent": block.ParentSlot, "root": root})
					}
				}
				last = max(last, v.Slot())
			})
			return found, false
		},
	})
}

// look gives the notifications that a subscription has now. s.mu is held.
func (s *socket) look(sub *subscription) []any {
	lag, lost := s.faults.Notify(sub.method)
	results, done := sub.find(&call{Endpoint: s.Endpoint, plan: fault.Plan{Lag: lag}})
	if done {
		delete(s.subs, sub.id)
	}
	if lost && len(results) > 0 {
		s.faults.Lost()
		return nil
	}
	out := make([]any, len(results))
	for i, result := range results {
		out[i] = notification{
			Version: "2.0", Method: sub.notification,
			Params: notificationParams{Result: result, Subscription: sub.id},
		}
	}
	return out
}

// inOrder lists the subscriptions as they were made. s.mu is held.
func (s *socket) inOrder() []*subscription {
	subs := make([]*subscription, 0, len(s.subs))
	for _, sub := range s.subs {
		subs = append(subs, sub)
	}
	slices.SortFunc(subs, func(a, b *subscription) int { return cmp.Compare(a.id, b.id) })
	return subs
}

package rpc

import (
	"reflect"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/fault"
)

// methodSubscribe is the one method of a WebSocket. A subscription ends with its
// connection.
const methodSubscribe = "accountSubscribe"

// notification is the message of one change.
type notification struct {
	Version string             `json:"jsonrpc"`
	Method  string             `json:"method"`
	Params  notificationParams `json:"params"`
}

type notificationParams struct {
	Result       answer `json:"result"`
	Subscription uint64 `json:"subscription"`
}

// subscription is an account as its subscriber knows it.
type subscription struct {
	id  uint64
	key solana.PublicKey
	at  bank.Commitment
	// slot is when the account was last written; 0 when there is none.
	slot uint64
	last *bank.Account
}

func (s *socket) accountSubscribe(c *call, p params) (any, error) {
	sub := &subscription{}
	// A data slice is read and has no effect on notifications, as on Agave.
	var cfg accountConfig
	if err := p.read(1, &sub.key, &cfg); err != nil {
		return nil, err
	}
	sub.at, sub.id = bank.Commitment(cfg.Commitment), s.subscribed.Add(1)-1
	if _, err := c.readAt(sub.at, func(v view) (any, error) { return sub.changed(v), nil }); err != nil {
		return nil, err
	}
	s.fresh = append(s.fresh, sub)
	return sub.id, nil
}

// changed looks at the account and reports whether it is another one than
// before: one that a transaction has written, or that a fork brought back.
func (sub *subscription) changed(v view) bool {
	slot := v.WrittenAt(sub.key)
	// What was written in the newest slot can be written again in it; and the
	// data may be large, so it is not looked at without need.
	if slot == sub.slot && slot < v.Slot() {
		return false
	}
	now := v.Account(sub.key)
	if now == nil {
		slot = 0
	}
	if slot == sub.slot && reflect.DeepEqual(now, sub.last) {
		return false
	}
	sub.slot, sub.last = slot, now
	return true
}

// look gives the notification that a subscription has now, or nil: an account
// that is gone is an empty one of the system program's. s.mu is held.
func (s *socket) look(sub *subscription) *notification {
	lag, lost := s.faults.Notify(methodSubscribe)
	c := &call{Endpoint: s.Endpoint, plan: fault.Plan{Lag: lag}}
	out := &notification{Version: "2.0", Method: "accountNotification", Params: notificationParams{Subscription: sub.id}}
	changed, _ := c.readAt(sub.at, func(v view) (any, error) { // which reads, and cannot fail
		out.Params.Result.Context.Slot = v.Slot()
		return sub.changed(v), nil
	})
	if changed != true {
		return nil
	}
	if lost {
		s.faults.Lost()
		return nil
	}
	now := sub.last
	if now == nil {
		now = &bank.Account{Owner: solana.SystemProgramID}
	}
	out.Params.Result.Value = encodeAccount(now, nil)
	return out
}

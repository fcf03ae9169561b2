package rpc

import (
	"reflect"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/fault"
)

// methodSubscribe is the only method on a WebSocket. A subscription ends with its
// connection, because there is no method to unsubscribe.
const methodSubscribe = "accountSubscribe"

// notification is the message about one change of an account.
type notification struct {
	Version string             `json:"jsonrpc"`
	Method  string             `json:"method"`
	Params  notificationParams `json:"params"`
}

type notificationParams struct {
	Result       answer `json:"result"`
	Subscription uint64 `json:"subscription"`
}

// subscription is an account with the state that its subscriber has last received.
type subscription struct {
	id         uint64
	key        solana.PublicKey
	commitment bank.Commitment
	last       *bank.Account
}

func (s *socket) accountSubscribe(c *call, p params) (any, error) {
	sub := &subscription{}
	// As on Agave, dataSlice is accepted and has no effect on notifications.
	var cfg accountConfig
	if err := p.read(1, &sub.key, &cfg); err != nil {
		return nil, err
	}
	sub.commitment, sub.id = bank.Commitment(cfg.Commitment), s.subscribed.Add(1)-1
	if _, err := c.readAt(sub.commitment, func(v view) (any, error) { return sub.changed(v), nil }); err != nil {
		return nil, err
	}
	s.unanswered = append(s.unanswered, sub)
	return sub.id, nil
}

// changed reads the account and reports whether it differs from the last state: a
// transaction has changed it, or a fork has restored an older state.
func (sub *subscription) changed(v view) bool {
	now := v.Account(sub.key)
	if reflect.DeepEqual(now, sub.last) {
		return false
	}
	sub.last = now
	return true
}

// checkSubscription returns a notification if the account has changed, or nil. A deleted account is
// sent as an account of the system program without lamports and data. The caller holds s.mu.
func (s *socket) checkSubscription(sub *subscription) *notification {
	lag, lost := s.faults.Notify(methodSubscribe)
	c := &call{Endpoint: s.Endpoint, plan: fault.Plan{Rule: fault.Rule{Lag: lag}}}
	out := &notification{Version: "2.0", Method: "accountNotification", Params: notificationParams{Subscription: sub.id}}
	changed, _ := c.readAt(sub.commitment, func(v view) (any, error) { // the callback cannot fail
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

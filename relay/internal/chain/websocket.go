package chain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/coder/websocket"
	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/rpc"
)

const (
	socketDial = 10 * time.Second
	// A ping is sent every socketPing. Its answer has to come within socketPong.
	socketPing = 20 * time.Second
	socketPong = 10 * time.Second
	// socketDelay is the pause before a new connection. It doubles up to socketMaxDelay. After a
	// connection that lasted at least socketStableAfter, it starts again at socketDelay.
	socketDelay       = 500 * time.Millisecond
	socketMaxDelay    = 30 * time.Second
	socketStableAfter = time.Minute
	// maxNotification bounds a message in bytes. The subscription asks for no data, so
	// messages are small.
	maxNotification = 1 << 20
)

// socketOf returns the endpoint's WebSocket URL: the configured one, or else the RPC URL with the
// scheme ws or wss. Nil when the WebSocket is off.
func socketOf(endpoint, configured string) (func() *url.URL, error) {
	switch configured {
	case NoWebSocket:
		return nil, nil
	case "":
		out, err := url.Parse(endpoint)
		if err != nil {
			// The parser's error is omitted, because it repeats the URL.
			return nil, fmt.Errorf("RPC URL of %d bytes is not usable", len(endpoint))
		}
		out.Scheme = map[string]string{"http": "ws", "https": "wss"}[out.Scheme]
		return func() *url.URL { return out }, nil
	}
	out, err := url.Parse(configured)
	if err != nil || (out.Scheme != "ws" && out.Scheme != "wss") || out.Host == "" {
		// The parser's error is omitted, because it repeats the URL.
		return nil, fmt.Errorf("WebSocket URL of %d bytes is not usable: expected ws:// or wss:// and a host, or %s", len(configured), NoWebSocket)
	}
	return func() *url.URL { return out }, nil
}

// Subscribe calls notify whenever an endpoint reports that the account has changed, with the slot, at
// the confirmed commitment, until the context ends. A notification only shows that a read is
// worthwhile; its content is not used. Without notifications, the relay still notices each change,
// but a little later. One connection is open at a time, to the first endpoint with a working
// WebSocket. notify must not block.
func (e *Endpoints) Subscribe(ctx context.Context, account solana.PublicKey, notify func(slot uint64)) {
	var candidates []*endpoint
	for _, ep := range e.all {
		if ep.socket != nil {
			candidates = append(candidates, ep)
		}
	}
	delay := socketDelay
	for i := 0; len(candidates) > 0; i++ {
		ep := candidates[i%len(candidates)]
		began := e.now()
		if !ep.isForeign() {
			err := e.listen(ctx, ep, account, notify)
			e.log.Debug("rpc endpoint websocket ended", "endpoint", ep.name, "reason", socketReason(err))
		}
		if e.now().Sub(began) >= socketStableAfter {
			// Start with the first endpoint again: it may have been down when this connection
			// began, and work now.
			delay, i = socketDelay, -1
		}
		if !sleep(ctx, time.Duration(float64(delay)*(1-retryJitter*e.rand()))) {
			return
		}
		delay = min(2*delay, socketMaxDelay)
	}
}

var (
	errSubscription = errors.New("the endpoint refuses the subscription")
	errSilent       = errors.New("the endpoint answers no ping")
)

// socketReason describes why a connection ended. It leaves out the library's error, which
// repeats the URL.
func socketReason(err error) string {
	switch {
	case errors.Is(err, errSubscription), errors.Is(err, errSilent):
		return err.Error()
	case websocket.CloseStatus(err) >= 0:
		return fmt.Sprintf("the endpoint closed it with status %d", websocket.CloseStatus(err))
	case rpc.ConnectionDetail(err) != "":
		return rpc.ConnectionDetail(err)
	default:
		return "connection failed"
	}
}

// listen keeps one connection until it ends.
func (e *Endpoints) listen(ctx context.Context, ep *endpoint, account solana.PublicKey, notify func(slot uint64)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	conn, err := dialSocket(ctx, ep, account)
	if err != nil {
		return err
	}
	// No close handshake, because it would wait for an endpoint that may be gone.
	defer func() { _ = conn.CloseNow() }()
	go func() {
		for sleep(ctx, socketPing) {
			if ping(ctx, conn) != nil {
				cancel(errSilent)
			}
		}
	}()
	var subscribed bool
	defer ep.setSubscribed(false)
	for {
		var message struct {
			ID     *int            `json:"id"`
			Method string          `json:"method"`
			Error  json.RawMessage `json:"error"`
			Params struct {
				Result struct {
					Context struct {
						Slot uint64 `json:"slot"`
					} `json:"context"`
				} `json:"result"`
			} `json:"params"`
		}
		_, raw, err := conn.Read(ctx)
		if err != nil {
			if subscribed && ctx.Err() == nil {
				e.log.Info("rpc endpoint websocket lost", "endpoint", ep.name, "reason", socketReason(err))
			}
			return errors.Join(context.Cause(ctx), err)
		}
		switch {
		case json.Unmarshal(raw, &message) != nil:
		case message.ID != nil && message.Error != nil:
			return errSubscription
		case message.ID != nil:
			subscribed = true
			ep.setSubscribed(true)
			e.log.Info("rpc endpoint websocket opened", "endpoint", ep.name)
		case message.Method == "accountNotification":
			e.observer.NotificationReceived(ep.name)
			notify(message.Params.Result.Context.Slot)
		}
	}
}

// setSubscribed records whether the endpoint sends notifications.
func (ep *endpoint) setSubscribed(subscribed bool) {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	ep.subscribed = subscribed
}

// dialSocket connects and subscribes.
func dialSocket(ctx context.Context, ep *endpoint, account solana.PublicKey) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, socketDial)
	defer cancel()
	conn, resp, err := websocket.Dial(ctx, ep.socket().String(), &websocket.DialOptions{HTTPClient: ep.http})
	if resp != nil && resp.Body != nil {
		defer func() { _ = resp.Body.Close() }() // the body of a refused handshake; its error has no consequence
	}
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(maxNotification)
	subscribe, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "accountSubscribe", "params": []any{account, map[string]any{
		"encoding": "base64", "commitment": onchain.Confirmed, "dataSlice": map[string]int{"offset": 0, "length": 0},
	}}})
	if err == nil {
		err = conn.Write(ctx, websocket.MessageText, subscribe)
	}
	if err != nil {
		_ = conn.CloseNow()
		return nil, err
	}
	return conn, nil
}

func ping(ctx context.Context, conn *websocket.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, socketPong)
	defer cancel()
	return conn.Ping(ctx)
}

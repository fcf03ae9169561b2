package localnet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/hack/localnet/router"
	"github.com/relaypool/relaypool/hack/localnet/rpc"
)

const (
	// maxAdminBody is the largest body of an admin request, in bytes.
	maxAdminBody = 1 << 20
	// maxAdminSlots is the most slots by which one request may advance the chain.
	maxAdminSlots = 100_000
)

// ListenAdmin serves the admin port on a loopback address until Close and
// returns its URL. It refuses any other address, because every client of the port
// controls the chain.
func (c *Chain) ListenAdmin(addr string) (url string, err error) {
	at, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return "", fmt.Errorf("listen for admin: %w", err)
	}
	if !at.IP.IsLoopback() {
		return "", fmt.Errorf("listen for admin: %s is no loopback address, expected one such as 127.0.0.1:8898", addr)
	}
	return c.listen("admin", addr, c.Admin())
}

// Admin is the handler of the admin port: JSON in and out, errors as
// {"error": "..."} with status 400 or 404. README.md has its routes.
func (c *Chain) Admin() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, serve func(*http.Request) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, maxAdminBody)
			c.reply(w, r, serve)
		})
	}
	handle("GET /stats", c.adminStats)
	handle("GET /endpoints/{name}/faults", c.adminFaults(nil))
	handle("PUT /endpoints/{name}/faults", c.adminFaults(fault.ParseRules))
	handle("GET /router", c.adminRouter(nil))
	handle("PUT /router", c.adminRouter(router.ParseSettings))
	handle("POST /fork", c.adminFork)
	handle("POST /airdrop", c.adminAirdrop)
	handle("POST /advance", c.adminMove(c.Advance))
	handle("POST /skip", c.adminMove(c.Skip))
	handle("/", func(r *http.Request) (any, error) {
		return nil, notFoundError{fmt.Errorf("no route %s %s: see README.md of hack/localnet", r.Method, r.URL.Path)}
	})
	return mux
}

// notFoundError is an error that is answered with status 404.
type notFoundError struct{ error }

func (c *Chain) reply(w http.ResponseWriter, r *http.Request, serve func(*http.Request) (any, error)) {
	answer, err := serve(r)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if err != nil {
		status := http.StatusBadRequest
		if errors.As(err, new(notFoundError)) {
			status = http.StatusNotFound
		}
		w.WriteHeader(status)
		answer = map[string]string{"error": err.Error()}
	}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		c.opts.Log.Debug("answer not written", "error", err)
	}
}

func read[T any](r *http.Request, parse func([]byte) (T, error)) (out T, err error) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return out, fmt.Errorf("read request: %w", err)
	}
	return parse(raw)
}

// decodeStrictly reads a JSON value of type T and refuses fields that T does not have.
func decodeStrictly[T any](raw []byte) (out T, err error) {
	err = fault.DecodeStrictly(raw, &out)
	return out, err
}

func (c *Chain) adminStats(*http.Request) (any, error) {
	stats := make(map[string]rpc.Stats)
	for _, name := range c.names() {
		stats[name] = c.Endpoint(name).Stats()
	}
	return stats, nil
}

// adminFaults sets the rules that parse reads from the request, unless parse is
// nil. It answers with the endpoint's rules.
func (c *Chain) adminFaults(parse func([]byte) ([]fault.Rule, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		e, err := c.existingEndpoint(r.PathValue("name"))
		if err != nil {
			return nil, notFoundError{err}
		}
		if parse != nil {
			rules, err := read(r, parse)
			if err != nil {
				return nil, err
			}
			if err := e.SetFaults(rules); err != nil {
				return nil, err
			}
		}
		return e.Faults(), nil
	}
}

// adminRouter sets the settings that parse reads from the request, unless parse is
// nil. It answers with the router's settings and statistics.
func (c *Chain) adminRouter(parse func([]byte) (router.Settings, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		if parse != nil {
			settings, err := read(r, parse)
			if err != nil {
				return nil, err
			}
			if err := c.Router().Set(settings); err != nil {
				return nil, err
			}
		}
		return map[string]any{"lookupTable": RouterTable(), "settings": c.Router().Settings(), "stats": c.Router().Stats()}, nil
	}
}

func (c *Chain) adminFork(r *http.Request) (any, error) {
	request, err := read(r, decodeStrictly[struct {
		Blocks       uint64 `json:"blocks"`
		Transactions string `json:"transactions"`
	}])
	if err != nil {
		return nil, err
	}
	again, ok := map[string]func(*bank.Landed) bool{"lost": nil, "replayed": bank.LandAgain}[request.Transactions]
	if !ok {
		return nil, fmt.Errorf(`transactions is %q, expected "lost" or "replayed"`, request.Transactions)
	}
	undone, err := c.Fork(request.Blocks, again)
	if err != nil {
		return nil, err
	}
	out := make([]any, len(undone))
	for i, u := range undone {
		out[i] = map[string]any{"signature": u.Signature, "slot": u.Slot, "again": u.Again}
	}
	position := c.position()
	position["undone"] = out
	return position, nil
}

func (c *Chain) adminAirdrop(r *http.Request) (any, error) {
	request, err := read(r, decodeStrictly[struct {
		To       solana.PublicKey `json:"to"`
		Lamports uint64           `json:"lamports"`
	}])
	if err != nil {
		return nil, err
	}
	signature, err := c.airdrop(request.To, request.Lamports)
	return map[string]any{"signature": signature}, err
}

// adminMove calls move, which advances the chain, with the request's number of
// slots.
func (c *Chain) adminMove(move func(uint64)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		request, err := read(r, decodeStrictly[struct {
			Slots uint64 `json:"slots"`
		}])
		if err != nil {
			return nil, err
		}
		if request.Slots < 1 || request.Slots > maxAdminSlots {
			return nil, fmt.Errorf("slots is %d, expected 1 to %d", request.Slots, maxAdminSlots)
		}
		move(request.Slots)
		return c.position(), nil
	}
}

// position returns the chain's slot and block height, and the number of
// transactions that wait because the open block is full.
func (c *Chain) position() map[string]any {
	out := map[string]any{"waiting": c.bank.Waiting()}
	c.bank.Read(bank.Processed, func(v bank.View) { out["slot"], out["blockHeight"] = v.Slot(), v.Height() })
	return out
}

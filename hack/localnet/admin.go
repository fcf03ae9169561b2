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
	"github.com/relaypool/relaypool/hack/localnet/rpc"
)

const (
	// maxAdminBody bounds an admin request, in bytes.
	maxAdminBody = 1 << 20
	// maxAdminSlots bounds how far one request may move the chain.
	maxAdminSlots = 100_000
)

// What becomes of the transactions that a fork undoes, in an admin request.
const (
	forkLost     = "lost"
	forkReplayed = "replayed"
)

// ListenAdmin serves the admin port on a loopback address until Close and
// returns its URL. Whoever reaches it owns the chain, so other addresses are
// refused.
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
	handle("GET /endpoints", c.adminEndpoints)
	handle("GET /stats", c.adminStats)
	handle("GET /chain", func(*http.Request) (any, error) { return c.position(), nil })
	handle("GET /faults", c.adminFaults)
	handle("PUT /faults", c.adminSetAllFaults)
	handle("GET /endpoints/{name}/faults", c.adminFaultsOf)
	handle("PUT /endpoints/{name}/faults", c.adminSetFaults)
	handle("DELETE /endpoints/{name}/faults", c.adminClearFaults)
	handle("GET /market", c.adminMarket)
	handle("PUT /market", c.adminSetMarket)
	handle("GET /router", c.adminRouter)
	handle("PUT /router", c.adminSetRouter)
	handle("DELETE /router", c.adminClearRouter)
	handle("POST /fork", c.adminFork)
	handle("POST /airdrop", c.adminAirdrop)
	handle("POST /mint", c.adminMint)
	handle("POST /mint-to", c.adminMintTo)
	handle("POST /freeze", c.adminSetFrozen(c.Freeze))
	handle("POST /thaw", c.adminSetFrozen(c.Thaw))
	handle("POST /lookup-table", c.adminLookupTable)
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
		c.opts.Log.Debug("Answer not written", "error", err)
	}
}

// read decodes a request's body into to.
func read(r *http.Request, to any) error {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	err := decoder.Decode(to)
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) {
		return fmt.Errorf("%s: got a %s, expected %s", wrongType.Field, wrongType.Value, wrongType.Type)
	}
	if err != nil {
		return fmt.Errorf("read request: expected a JSON object: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("read request: expected one JSON value, got more after it")
	}
	return nil
}

func (c *Chain) named(r *http.Request) (*endpoint, error) {
	e, err := c.known(r.PathValue("name"))
	if err != nil {
		return nil, notFoundError{err}
	}
	return e, nil
}

func (c *Chain) adminEndpoints(*http.Request) (any, error) {
	out := make(map[string]any)
	for _, name := range c.names() {
		e := c.endpoint(name)
		c.mu.Lock()
		urls := append([]string{}, e.urls...)
		c.mu.Unlock()
		out[name] = map[string]any{"urls": urls, "faults": e.Faults()}
	}
	return out, nil
}

func (c *Chain) adminStats(*http.Request) (any, error) {
	stats := make(map[string]rpc.Stats)
	for _, name := range c.names() {
		stats[name] = c.Endpoint(name).Stats()
	}
	return stats, nil
}

func (c *Chain) adminFaults(*http.Request) (any, error) {
	faults := make(map[string][]fault.Rule)
	for _, name := range c.names() {
		faults[name] = c.Endpoint(name).Faults()
	}
	return faults, nil
}

func (c *Chain) adminSetAllFaults(r *http.Request) (any, error) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("read request: %w", err)
	}
	faults, err := ParseFaults(raw)
	if err != nil {
		return nil, err
	}
	if err := c.SetFaults(faults); err != nil {
		return nil, err
	}
	return c.adminFaults(r)
}

// ParseFaults reads the rules of several endpoints: a JSON object with an array
// of rules for each name.
func ParseFaults(raw []byte) (map[string][]fault.Rule, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, fmt.Errorf("faults: expected a JSON object with an array of rules for each endpoint: %w", err)
	}
	faults := make(map[string][]fault.Rule, len(members))
	for name, member := range members {
		rules, err := fault.ParseRules(member)
		if err != nil {
			return nil, fmt.Errorf("endpoint %s: %w", name, err)
		}
		faults[name] = rules
	}
	return faults, nil
}

func (c *Chain) adminFaultsOf(r *http.Request) (any, error) {
	e, err := c.named(r)
	if err != nil {
		return nil, err
	}
	return e.Faults(), nil
}

func (c *Chain) adminSetFaults(r *http.Request) (any, error) {
	e, err := c.named(r)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("read request: %w", err)
	}
	rules, err := fault.ParseRules(raw)
	if err != nil {
		return nil, err
	}
	if err := e.SetFaults(rules); err != nil {
		return nil, err
	}
	return e.Faults(), nil
}

func (c *Chain) adminClearFaults(r *http.Request) (any, error) {
	e, err := c.named(r)
	if err != nil {
		return nil, err
	}
	if err := e.SetFaults(nil); err != nil {
		return nil, err
	}
	return e.Faults(), nil
}

func (c *Chain) adminFork(r *http.Request) (any, error) {
	var ask struct {
		Blocks       uint64 `json:"blocks"`
		Transactions string `json:"transactions"`
	}
	if err := read(r, &ask); err != nil {
		return nil, err
	}
	var again func(*bank.Landed) bool
	switch ask.Transactions {
	case forkLost:
	case forkReplayed:
		again = bank.LandAgain
	default:
		return nil, fmt.Errorf("transactions is %q, expected %q or %q", ask.Transactions, forkLost, forkReplayed)
	}
	undone, err := c.Fork(ask.Blocks, again)
	if err != nil {
		return nil, err
	}
	out := make([]any, len(undone))
	for i, u := range undone {
		out[i] = map[string]any{"signature": u.Signature.String(), "slot": u.Slot, "again": u.Again}
	}
	position := c.position()
	position["undone"] = out
	return position, nil
}

func (c *Chain) adminAirdrop(r *http.Request) (any, error) {
	var ask struct {
		To       string `json:"to"`
		Lamports uint64 `json:"lamports"`
	}
	if err := read(r, &ask); err != nil {
		return nil, err
	}
	to, err := readAddress("to", ask.To)
	if err != nil {
		return nil, err
	}
	signature, err := c.airdrop(to, ask.Lamports)
	if err != nil {
		return nil, err
	}
	return map[string]string{"signature": signature.String()}, nil
}

// readAddress reads the address in a field of a request.
func readAddress(field, text string) (solana.PublicKey, error) {
	key, err := solana.PublicKeyFromBase58(text)
	if err != nil {
		return key, fmt.Errorf("%s: expected an address, 32 bytes in base58: %w", field, err)
	}
	return key, nil
}

func (c *Chain) adminMint(r *http.Request) (any, error) {
	var ask struct {
		Decimals        uint8   `json:"decimals"`
		FreezeAuthority *string `json:"freezeAuthority"`
	}
	if err := read(r, &ask); err != nil {
		return nil, err
	}
	var freezer *solana.PublicKey
	if ask.FreezeAuthority != nil {
		key, err := readAddress("freezeAuthority", *ask.FreezeAuthority)
		if err != nil {
			return nil, err
		}
		freezer = &key
	}
	mint, err := c.CreateMint(ask.Decimals, freezer)
	if err != nil {
		return nil, err
	}
	return map[string]string{"mint": mint.String()}, nil
}

func (c *Chain) adminMintTo(r *http.Request) (any, error) {
	var ask struct {
		Mint   string `json:"mint"`
		Owner  string `json:"owner"`
		Amount uint64 `json:"amount"`
	}
	if err := read(r, &ask); err != nil {
		return nil, err
	}
	mint, owner, err := readHolding(ask.Mint, ask.Owner)
	if err != nil {
		return nil, err
	}
	account, signature, err := c.MintTo(mint, owner, ask.Amount)
	if err != nil {
		return nil, err
	}
	return map[string]string{"account": account.String(), "signature": signature.String()}, nil
}

// readHolding reads the fields that name an associated token account.
func readHolding(mintText, ownerText string) (mint, owner solana.PublicKey, err error) {
	if mint, err = readAddress("mint", mintText); err != nil {
		return mint, owner, err
	}
	owner, err = readAddress("owner", ownerText)
	return mint, owner, err
}

// adminSetFrozen freezes or thaws the token account that the request names.
func (c *Chain) adminSetFrozen(set func(mint, owner solana.PublicKey) (solana.Signature, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		var ask struct {
			Mint  string `json:"mint"`
			Owner string `json:"owner"`
		}
		if err := read(r, &ask); err != nil {
			return nil, err
		}
		mint, owner, err := readHolding(ask.Mint, ask.Owner)
		if err != nil {
			return nil, err
		}
		signature, err := set(mint, owner)
		if err != nil {
			return nil, err
		}
		return map[string]string{"signature": signature.String()}, nil
	}
}

func (c *Chain) adminLookupTable(r *http.Request) (any, error) {
	var ask struct {
		Addresses []string `json:"addresses"`
	}
	if err := read(r, &ask); err != nil {
		return nil, err
	}
	addresses := make([]solana.PublicKey, len(ask.Addresses))
	for i, text := range ask.Addresses {
		var err error
		if addresses[i], err = readAddress(fmt.Sprintf("addresses[%d]", i), text); err != nil {
			return nil, err
		}
	}
	table, err := c.CreateLookupTable(addresses...)
	if err != nil {
		return nil, err
	}
	return map[string]string{"table": table.String()}, nil
}

// adminMove moves the chain by the request's number of slots.
func (c *Chain) adminMove(move func(uint64)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		var ask struct {
			Slots uint64 `json:"slots"`
		}
		if err := read(r, &ask); err != nil {
			return nil, err
		}
		if ask.Slots < 1 || ask.Slots > maxAdminSlots {
			return nil, fmt.Errorf("slots is %d, expected 1 to %d", ask.Slots, maxAdminSlots)
		}
		move(ask.Slots)
		return c.position(), nil
	}
}

// position tells where the chain stands, and how many transactions wait for
// room in a block.
func (c *Chain) position() map[string]any {
	out := map[string]any{"waiting": c.bank.Waiting()}
	c.bank.Read(bank.Processed, func(v bank.View) { out["slot"], out["blockHeight"] = v.Slot(), v.Height() })
	return out
}

// Package router is the swap router of the local chain: an HTTP server with the part of Jupiter's
// swap API v1 and v2 that a relay calls, over the markets of package market. By default its answers are
// true. Settings make it fail and lie, as a real router might.
package router

import (
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"sync"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/hack/localnet/market"
)

// The names of the calls in fault rules, lies and statistics.
const (
	CallBuild        = "build"
	CallQuote        = "quote"
	CallInstructions = "swap-instructions"
)

// Ledger is the chain from which the router reads its markets: a bank.Bank.
type Ledger interface {
	Read(bank.Commitment, func(bank.View))
}

// Options configures a Router.
type Options struct {
	// Ledger and Log are required.
	Ledger Ledger
	Log    *slog.Logger
	// Table is the lookup table that every answer names, or zero for none. It exists
	// on the chain and holds TableAddresses.
	Table solana.PublicKey
	// Seed is the seed of random faults and lies.
	Seed uint64
}

// Router answers requests for quotes and for swap instructions. It is safe for concurrent use.
type Router struct {
	opts   Options
	mux    *http.ServeMux
	faults *fault.Injector

	mu       sync.Mutex
	settings Settings
	stats    Stats
}

// Stats are the counts of a router since its start.
type Stats struct {
	// Calls are the calls received, by name.
	Calls map[string]uint64 `json:"calls"`
	// Refused are the answers with status 400, by their errorCode, which may be "".
	Refused map[string]uint64 `json:"refused"`
	// Faults are the faults that took effect, by their names in a rule's JSON.
	Faults map[string]uint64 `json:"faults"`
	// Lies are the lies that took effect.
	Lies map[Lie]uint64 `json:"lies"`
}

// New makes a router without faults and lies. The error names the missing option.
func New(opts Options) (*Router, error) {
	switch {
	case opts.Ledger == nil:
		return nil, errors.New("router options: Ledger is missing, want the chain's bank")
	case opts.Log == nil:
		return nil, errors.New("router options: Log is missing")
	}
	r := &Router{
		opts: opts, mux: http.NewServeMux(), faults: fault.NewInjector(opts.Seed),
		stats: Stats{Calls: make(map[string]uint64), Refused: make(map[string]uint64), Lies: make(map[Lie]uint64)},
	}
	r.mux.HandleFunc("GET /v2/build", r.handle(CallBuild, r.build))
	r.mux.HandleFunc("GET /quote", r.handle(CallQuote, func(req *http.Request, d *draft) (any, error) { return r.quote(req, d) }))
	r.mux.HandleFunc("POST /swap-instructions", r.handle(CallInstructions, r.instructions))
	return r, nil
}

// TableAddresses are the addresses for the router's lookup table: the accounts and
// programs of every swap on the market, and the padding accounts of wide routes.
func TableAddresses(m *market.Market) []solana.PublicKey {
	out := []solana.PublicKey{
		market.ProgramID, m.Address, m.VaultSOL, m.VaultTokens, m.Mint, solana.WrappedSol, solana.TokenProgramID, solana.SystemProgramID,
	}
	for i := range tablePadding {
		out = append(out, padding(i))
	}
	return out
}

// ServeHTTP answers GET /v2/build, and in v1 of the API GET /quote and POST /swap-instructions.
func (r *Router) ServeHTTP(w http.ResponseWriter, req *http.Request) { r.mux.ServeHTTP(w, req) }

// Stats returns a copy of the counts.
func (r *Router) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Stats{
		Calls: maps.Clone(r.stats.Calls), Refused: maps.Clone(r.stats.Refused), Lies: maps.Clone(r.stats.Lies),
		Faults: r.faults.Applied(),
	}
}

// market reads a mint's market and its state, and returns the slot of that state. m is
// nil when the mint has no market.
func (r *Router) market(mint solana.PublicKey) (m *market.Market, state *market.State, slot uint64) {
	m, err := market.For(mint)
	if err != nil {
		return nil, nil, 0
	}
	var account *bank.Account
	r.opts.Ledger.Read(bank.Processed, func(v bank.View) { account, slot = v.Account(m.Address), v.Slot() })
	if account == nil || account.Owner != market.ProgramID {
		return nil, nil, 0
	}
	if state, err = market.ParseState(account.Data); err != nil {
		return nil, nil, 0
	}
	return m, state, slot
}

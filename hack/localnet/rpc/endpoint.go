// Package rpc serves a bank over Solana's JSON-RPC, with the shapes and error
// codes of Agave: the part of its methods that a relay and its clients call.
// An Endpoint is one node's RPC, or one provider's: several of them may serve
// one bank, each with faults of its own.
package rpc

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/fault"
)

// version is the release of Agave whose answers these are modelled on.
const version = "2.3.0"

// Options configures an Endpoint. All fields but Seed are required.
type Options struct {
	Bank    *bank.Bank
	Genesis solana.Hash
	// Airdrop lands a transaction that sends lamports to an address.
	Airdrop func(to solana.PublicKey, lamports uint64) (solana.Signature, error)
	// Seed makes random faults reproducible.
	Seed uint64
	Log  *slog.Logger
}

// Endpoint answers JSON-RPC over HTTP and WebSocket. It is safe for concurrent
// use.
type Endpoint struct {
	bank    *bank.Bank
	genesis solana.Hash
	airdrop func(solana.PublicKey, uint64) (solana.Signature, error)
	log     *slog.Logger
	methods map[string]method
	faults  *fault.Injector
	// setting serialises replacements of the rules.
	setting sync.Mutex
	// frozen are the answers of getLatestBlockhash when the faults were set.
	frozen atomic.Pointer[map[bank.Commitment]any]
	// subscribed counts the subscriptions of all sockets, for their ids.
	subscribed atomic.Uint64

	// unhook cancels the bank's calls of wake.
	unhook    func()
	closed    chan struct{}
	closeOnce sync.Once
	// serving are the sockets that Close waits for.
	serving sync.WaitGroup

	mu      sync.Mutex
	calls   map[string]uint64
	sockets map[*socket]struct{}
}

// method answers one call with a result to marshal.
type method func(*call, params) (any, error)

// New makes an endpoint without faults, to be closed after use. The error names the option that is
// missing.
func New(opts Options) (*Endpoint, error) {
	switch {
	case opts.Bank == nil:
		return nil, errors.New("rpc options: Bank is missing")
	case opts.Airdrop == nil:
		return nil, errors.New("rpc options: Airdrop is missing")
	case opts.Log == nil:
		return nil, errors.New("rpc options: Log is missing")
	case opts.Genesis == solana.Hash{}:
		return nil, errors.New("rpc options: Genesis is missing")
	}
	return newEndpoint(opts), nil
}

// Another makes a second endpoint without faults for the same bank, to be
// closed after use as well.
func (e *Endpoint) Another(seed uint64) *Endpoint {
	return newEndpoint(Options{Bank: e.bank, Genesis: e.genesis, Airdrop: e.airdrop, Seed: seed, Log: e.log})
}

func newEndpoint(opts Options) *Endpoint {
	e := &Endpoint{
		bank: opts.Bank, genesis: opts.Genesis, airdrop: opts.Airdrop, log: opts.Log,
		methods: methods(), faults: fault.NewInjector(opts.Seed),
		closed: make(chan struct{}), calls: make(map[string]uint64), sockets: make(map[*socket]struct{}),
	}
	e.unhook = e.bank.OnSlot(e.wake)
	return e
}

// methods are the methods over HTTP.
func methods() map[string]method {
	return map[string]method{
		"getHealth":                         (*call).getHealth,
		"getVersion":                        (*call).getVersion,
		"getGenesisHash":                    (*call).getGenesisHash,
		"getSlot":                           onView(func(v view) any { return v.Slot() }),
		"getBlockHeight":                    onView(func(v view) any { return v.Height() }),
		"getEpochInfo":                      onView(epochInfo),
		"getFirstAvailableBlock":            onView(func(v view) any { return v.FirstAvailableBlock() }),
		"getLatestBlockhash":                (*call).getLatestBlockhash,
		"getMinimumBalanceForRentExemption": (*call).getMinimumBalanceForRentExemption,
		"getRecentPrioritizationFees":       (*call).getRecentPrioritizationFees,
		"getBalance":                        (*call).getBalance,
		"getAccountInfo":                    (*call).getAccountInfo,
		"getMultipleAccounts":               (*call).getMultipleAccounts,
		"requestAirdrop":                    (*call).requestAirdrop,
		"sendTransaction":                   (*call).sendTransaction,
		"simulateTransaction":               (*call).simulateTransaction,
		"getSignatureStatuses":              (*call).getSignatureStatuses,
		"getSignaturesForAddress":           (*call).getSignaturesForAddress,
		"getTransaction":                    (*call).getTransaction,
		"getBlock":                          (*call).getBlock,
		"getBlocks":                         (*call).getBlocks,
	}
}

// SetFaults replaces the endpoint's fault rules; with none it is faultless. The
// error names the rule and the invalid field, and then the old rules stay.
func (e *Endpoint) SetFaults(rules []fault.Rule) error {
	if err := e.CheckFaults(rules); err != nil {
		return err
	}
	e.setting.Lock()
	defer e.setting.Unlock()
	e.freeze()
	return e.faults.Set(rules)
}

// CheckFaults returns the error that SetFaults would return, and sets nothing.
func (e *Endpoint) CheckFaults(rules []fault.Rule) error {
	if err := fault.Validate(rules); err != nil {
		return err
	}
	for i := range rules {
		if name := rules[i].Method; !e.knows(name) {
			return fmt.Errorf("fault rule %d: method is %q, expected one that is served here, %s, or none for all", i, name, fault.MethodSocket)
		}
		if lag := rules[i].Lag; lag > bank.DefaultMaxBehind {
			return fmt.Errorf("fault rule %d: lag is %d, expected at most %d slots, which the chain remembers", i, lag, bank.DefaultMaxBehind)
		}
	}
	return nil
}

func (e *Endpoint) knows(method string) bool {
	if _, ok := e.methods[method]; ok {
		return true
	}
	return method == methodSubscribe || method == "" || method == fault.MethodSocket
}

// freeze keeps the current blockhashes for a rule that freezes them, unless such a
// rule was there already.
func (e *Endpoint) freeze() {
	for _, rule := range e.faults.Rules() {
		if rule.FrozenBlockhash {
			return
		}
	}
	frozen := make(map[bank.Commitment]any)
	for _, at := range []bank.Commitment{bank.Processed, bank.Confirmed, bank.Finalized} {
		e.bank.Read(at, func(v bank.View) { frozen[at] = latestBlockhash(view{View: v}) })
	}
	e.frozen.Store(&frozen)
}

// Faults returns the rules that are set.
func (e *Endpoint) Faults() []fault.Rule { return e.faults.Rules() }

// Stats is what an endpoint has counted since its start.
type Stats struct {
	// Calls are the calls received, by method; calls of methods that do not
	// exist are under "".
	Calls map[string]uint64 `json:"calls"`
	// Sockets are the WebSocket connections that are open now.
	Sockets int `json:"sockets"`
	// Faults are the faults that took effect, by their names in a rule's JSON.
	Faults map[string]uint64 `json:"faults"`
}

// Stats counts calls and faults.
func (e *Endpoint) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	return Stats{Calls: maps.Clone(e.calls), Sockets: len(e.sockets), Faults: e.faults.Applied()}
}

func (e *Endpoint) count(method string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls[method]++
}

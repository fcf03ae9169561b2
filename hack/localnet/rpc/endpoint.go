// Package rpc serves a bank over Solana's JSON-RPC, with the shapes and error codes of Agave. It
// has the methods that a relay and its clients call. An Endpoint is the RPC of one node or one
// provider. Several endpoints may serve one bank, each with its own faults.
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

// version is the release of Agave on which the answers are modelled.
const version = "4.4.0"

// Options configures an Endpoint. All fields but Seed are required.
type Options struct {
	Bank    *bank.Bank
	Genesis solana.Hash
	// Airdrop lands a transaction that sends lamports to an address.
	Airdrop func(to solana.PublicKey, lamports uint64) (solana.Signature, error)
	// Seed is the seed of random faults.
	Seed uint64
	Log  *slog.Logger
}

// Endpoint answers JSON-RPC over HTTP and WebSocket. It is safe for concurrent use.
type Endpoint struct {
	bank    *bank.Bank
	genesis solana.Hash
	airdrop func(solana.PublicKey, uint64) (solana.Signature, error)
	log     *slog.Logger
	methods map[string]method
	faults  *fault.Injector
	// faultsMu serialises SetFaults.
	faultsMu sync.Mutex
	// frozen has the answers of getLatestBlockhash when the fault frozenBlockhash
	// was set, by commitment level.
	frozen atomic.Pointer[map[bank.Commitment]any]
	// subscribed counts the subscriptions of all sockets and gives each its id.
	subscribed atomic.Uint64

	// cancelOnSlot makes the bank stop calling wake.
	cancelOnSlot func()
	closed       chan struct{}
	closeOnce    sync.Once
	// serving are the sockets that Close waits for.
	serving sync.WaitGroup

	mu      sync.Mutex
	calls   map[string]uint64
	sockets map[*socket]struct{}
}

type method func(*call, params) (any, error)

// New makes an endpoint without faults. The caller closes it. The error names the missing option.
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

// Another makes another endpoint for the same bank, without faults. The caller closes it.
func (e *Endpoint) Another(seed uint64) *Endpoint {
	return newEndpoint(Options{Bank: e.bank, Genesis: e.genesis, Airdrop: e.airdrop, Seed: seed, Log: e.log})
}

func newEndpoint(opts Options) *Endpoint {
	e := &Endpoint{
		bank: opts.Bank, genesis: opts.Genesis, airdrop: opts.Airdrop, log: opts.Log,
		methods: methods(), faults: fault.NewInjector(opts.Seed),
		closed: make(chan struct{}), calls: make(map[string]uint64), sockets: make(map[*socket]struct{}),
	}
	e.cancelOnSlot = e.bank.OnSlot(e.wake)
	return e
}

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
		"getRecentPerformanceSamples":       (*call).getRecentPerformanceSamples,
		"getAgGenesisCert":                  (*call).getAgGenesisCert,
		"getFeeForMessage":                  (*call).getFeeForMessage,
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

// SetFaults replaces the endpoint's fault rules; no rules means no faults. After
// an error the old rules stay. The error names the rule and the invalid field.
func (e *Endpoint) SetFaults(rules []fault.Rule) error {
	if err := e.CheckFaults(rules); err != nil {
		return err
	}
	e.faultsMu.Lock()
	defer e.faultsMu.Unlock()
	e.freeze()
	return e.faults.Set(rules)
}

// CheckFaults returns the error that SetFaults would return, and sets nothing.
func (e *Endpoint) CheckFaults(rules []fault.Rule) error {
	if err := fault.Validate(rules); err != nil {
		return err
	}
	for i := range rules {
		if name := rules[i].Method; !e.accepts(name) {
			return fmt.Errorf("fault rule %d: method is %q, expected a method of this endpoint, %s, or none for all", i, name, fault.MethodSocket)
		}
		if lag := rules[i].Lag; lag > bank.MaxBehind {
			return fmt.Errorf("fault rule %d: lag is %d, expected at most %d slots, for which the chain keeps the state", i, lag, bank.MaxBehind)
		}
	}
	return nil
}

func (e *Endpoint) accepts(method string) bool {
	if _, ok := e.methods[method]; ok {
		return true
	}
	return method == methodSubscribe || method == "" || method == fault.MethodSocket
}

// freeze stores the current blockhashes for the fault frozenBlockhash. If a current
// rule has this fault, the stored blockhashes stay as they are.
func (e *Endpoint) freeze() {
	for _, rule := range e.faults.Rules() {
		if rule.FrozenBlockhash {
			return
		}
	}
	frozen := make(map[bank.Commitment]any)
	for _, commitment := range []bank.Commitment{bank.Processed, bank.Confirmed, bank.Finalized} {
		e.bank.Read(commitment, func(v bank.View) { frozen[commitment] = latestBlockhash(view{View: v}) })
	}
	e.frozen.Store(&frozen)
}

// Faults returns the rules that are set.
func (e *Endpoint) Faults() []fault.Rule { return e.faults.Rules() }

// Stats are the counts of an endpoint since its start.
type Stats struct {
	// Calls are the calls received, by method. Calls of unknown methods count under "".
	Calls map[string]uint64 `json:"calls"`
	// Sockets are the WebSocket connections that are open now.
	Sockets int `json:"sockets"`
	// Faults are the faults that took effect, by their names in a rule's JSON.
	Faults map[string]uint64 `json:"faults"`
}

// Stats returns a copy of the counts.
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

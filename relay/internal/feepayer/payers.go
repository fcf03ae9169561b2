// Package feepayer holds the keys that pay the relay's network fees and the rent of
// nullifier accounts, tracks their balances and chooses which of them pays next. No
// client's money passes through them.
package feepayer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/gagliardetto/solana-go"
	"golang.org/x/sync/singleflight"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

// MaxKeys is the greatest number of payers: one call of getMultipleAccounts reads all their
// balances, and accepts 100 accounts.
const MaxKeys = 100

// BalanceReader reads the confirmed lamports of accounts, in the order of keys, and the
// slot at which it read them all. An account that does not exist has 0 lamports.
type BalanceReader interface {
	Balances(ctx context.Context, keys []solana.PublicKey) (lamports []uint64, slot uint64, err error)
	// HighestBalances reads two endpoints, if there are two, and returns the higher balance of
	// each account.
	HighestBalances(ctx context.Context, keys []solana.PublicKey) (lamports []uint64, slot uint64, err error)
}

// Options configure Payers.
type Options struct {
	// Keys are the payers' keys, at least one and at most MaxKeys. A key with the method Available
	// is in a key service, which may be away.
	Keys     []txmgr.Payer
	Balances BalanceReader
	Log      *slog.Logger
	Now      func() time.Time
	// MinBalance is in lamports. A payer that holds less is dry and gets no new work, so
	// that it can still pay for its work in flight. A payer with no lamports is always dry.
	MinBalance uint64
	// Interval is the time between two reads while all payers can be used; 0
	// means 15 s.
	Interval time.Duration
	// Funded is called when a payer can be used again after none could be used, so that held
	// work need not wait for its next try. It must not block. Nil for none.
	Funded func()
}

// Payers chooses who pays for a transaction, by the payers' balances and their attempts in flight.
// When a read fails, the last good balances stay, because a failed read does not mean that a payer
// is empty. Payers is safe for concurrent use.
type Payers struct {
	balances   BalanceReader
	log        *slog.Logger
	now        func() time.Time
	minBalance uint64
	interval   time.Duration
	funded     func()

	keys   []solana.PublicKey
	flight singleflight.Group
	// readNow makes Run read before the next read is due.
	readNow chan struct{}

	mu       sync.Mutex
	accounts []*account // in the order of keys
	byKey    map[solana.PublicKey]*account
	lastRead time.Time // when the last read ended, with an answer or without
	failing  bool      // the last read failed
	// exhausted is set when no payer could be used at the last check.
	exhausted bool
}

// New makes Payers. It does not read the chain; Run, Pick and Ready do.
func New(o Options) (*Payers, error) {
	switch {
	case o.Balances == nil || o.Log == nil || o.Now == nil:
		return nil, errors.New("fee payers need a balance reader, a logger and a clock")
	case len(o.Keys) == 0 || len(o.Keys) > MaxKeys:
		return nil, fmt.Errorf("there are %d fee payer keys: expected 1 to %d", len(o.Keys), MaxKeys)
	case slices.Contains(o.Keys, nil):
		return nil, errors.New("one of the fee payer keys is nil")
	case o.Interval < 0:
		return nil, fmt.Errorf("fee payers' interval is %s: expected a positive duration, or 0 for %s", o.Interval, defaultInterval)
	}
	p := &Payers{
		balances: o.Balances, log: o.Log, now: o.Now, funded: o.Funded,
		minBalance: max(o.MinBalance, 1), interval: o.Interval,
		readNow: make(chan struct{}, 1), byKey: map[solana.PublicKey]*account{},
	}
	if p.interval == 0 {
		p.interval = defaultInterval
	}
	for _, key := range o.Keys {
		if p.byKey[key.PublicKey()] != nil {
			return nil, fmt.Errorf("fee payer %s is given twice: give each key once", key.PublicKey())
		}
		a := &account{key: key}
		p.keys, p.accounts = append(p.keys, key.PublicKey()), append(p.accounts, a)
		p.byKey[key.PublicKey()] = a
	}
	return p, nil
}

// Keys returns the payers' addresses, in the given order.
func (p *Payers) Keys() []solana.PublicKey { return slices.Clone(p.keys) }

// Owns reports whether the address is a payer's.
func (p *Payers) Owns(key solana.PublicKey) bool { return p.byKey[key] != nil }

// State is whether a payer is used and, if not, why.
type State string

// The states of a payer. They are a fixed set, so they can be a metric's label.
const (
	// StateReady: it is used.
	StateReady State = "ready"
	// StateDry: it holds less than the minimum.
	StateDry State = "dry"
	// StateRefused: the chain refused it as a payer.
	StateRefused State = "refused"
	// StateSignerUnavailable: its key is in a key service that does not sign now.
	StateSignerUnavailable State = "signer_unavailable"
	// StateUnknown: its balance has never been read.
	StateUnknown State = "unknown"
)

// Balance is what is known of a payer.
type Balance struct {
	Payer solana.PublicKey
	State State
	// Lamports and Slot are from the last good reading; zero while State is unknown.
	Lamports, Slot uint64
	// At and Age are the time and the age of that reading; zero while State is unknown.
	At  time.Time
	Age time.Duration
	// InFlight counts the attempts of this process; Reserved is the most that they can cost.
	InFlight int
	Reserved uint64
}

// Balances returns what is known of each payer, in the order of Keys. It makes no call.
func (p *Payers) Balances() []Balance {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	out := make([]Balance, len(p.accounts))
	for i, a := range p.accounts {
		out[i] = Balance{Payer: p.keys[i], State: a.state(p.minBalance), InFlight: a.inFlight, Reserved: a.reserved}
		if a.known {
			out[i].Lamports, out[i].Slot, out[i].At, out[i].Age = a.lamports, a.slot, a.at, now.Sub(a.at)
		}
	}
	return out
}

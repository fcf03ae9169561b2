package feepayer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/gagliardetto/solana-go"
	"golang.org/x/sync/singleflight"

	"github.com/relaypool/relaypool/relay/refusal"
)

const (
	defaultInterval = 15 * time.Second
	// minInterval bounds the reads on demand: an empty wallet must not turn
	// every request into a call.
	minInterval = time.Second
	// retryEmpty is what clients are told to wait: funding takes a person or a job.
	retryEmpty = 30 * time.Second
	retryChain = 5 * time.Second
)

// BalanceReader reads an account's confirmed lamports and the slot of the reading.
type BalanceReader interface {
	Balance(ctx context.Context, key solana.PublicKey) (lamports, slot uint64, err error)
}

// Options configure a Watcher.
type Options struct {
	Payer    solana.PublicKey
	Balances BalanceReader
	Log      *slog.Logger
	Now      func() time.Time
	// MinBalance is in lamports: below it the payer counts as empty, so that
	// work in flight can still be paid.
	MinBalance uint64
	// Interval is the time between two reads; 0 means 15 s.
	Interval time.Duration
	// Observe is told of every good reading. Calls do not overlap. Nil for none.
	Observe func(Balance)
}

// Balance is a good reading of the payer's account.
type Balance struct {
	Lamports, Slot uint64
	// At is when it was read: a failed read leaves the last good one, growing older.
	At time.Time
}

// Watcher knows what the fee payer holds. A read that fails changes nothing:
// unknown is not zero. Safe for concurrent use.
type Watcher struct {
	payer      solana.PublicKey
	balances   BalanceReader
	log        *slog.Logger
	now        func() time.Time
	minBalance uint64
	interval   time.Duration
	observe    func(Balance)

	flight singleflight.Group

	mu    sync.Mutex
	last  *Balance
	tried time.Time

	failing, low bool // what was logged last; for the one read at a time
}

// NewWatcher makes a watcher. It makes no call: Run and Ready do.
func NewWatcher(o Options) (*Watcher, error) {
	switch {
	case o.Payer.IsZero() || o.Balances == nil || o.Log == nil || o.Now == nil:
		return nil, errors.New("fee payer watcher needs a payer, a balance reader, a logger and a clock")
	case o.Interval < 0:
		return nil, fmt.Errorf("fee payer watcher's interval is %s: expected a positive duration, or 0 for %s", o.Interval, defaultInterval)
	}
	w := &Watcher{
		payer: o.Payer, balances: o.Balances, log: o.Log, now: o.Now,
		minBalance: o.MinBalance, interval: o.Interval, observe: o.Observe,
	}
	if w.interval == 0 {
		w.interval = defaultInterval
	}
	if w.observe == nil {
		w.observe = func(Balance) {}
	}
	return w, nil
}

// Run reads the balance at once and then every Interval, until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	ticker := time.NewTicker(w.interval)
	defer ticker.Stop()
	for {
		_ = w.Refresh(ctx) // logged once, and the last good value stays
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Balance gives the last good reading; ok is false when there is none yet.
func (w *Watcher) Balance() (b Balance, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil {
		return Balance{}, false
	}
	return *w.last, true
}

// Refresh reads the balance now; all who call at once share one read. Its
// error is the reader's.
func (w *Watcher) Refresh(ctx context.Context) error {
	// The read serves all who wait for it, so it outlives any one of them.
	done := w.flight.DoChan("", func() (any, error) { return nil, w.read(context.WithoutCancel(ctx)) })
	select {
	case <-ctx.Done():
		return ctx.Err()
	case r := <-done:
		return r.Err
	}
}

// Ready refuses work that the payer cannot pay: with fee_payer_empty when the
// last good reading is below MinBalance or below need, in lamports; with
// chain_unavailable when there has never been one. Before refusing it reads
// again, at most once a second, so that a funded payer works at once.
func (w *Watcher) Ready(ctx context.Context, need uint64) error {
	need = max(need, w.minBalance)
	if b, ok := w.Balance(); ok && b.Lamports >= need {
		return nil
	}
	var cause error
	if w.mayAsk() {
		cause = w.Refresh(ctx)
	}
	b, ok := w.Balance()
	switch {
	case !ok:
		return refusal.New(refusal.ChainUnavailable,
			"the relay has not yet been able to read its fee payer's balance: send the same request again later").
			Retry(retryChain).Because(cause)
	case b.Lamports < need:
		return refusal.New(refusal.FeePayerEmpty,
			"the relay's fee payer cannot pay for another transaction until its operator funds it: send the same request again later").
			Retry(retryEmpty).Because(fmt.Errorf("fee payer %s held %d lamports %s ago, %d are needed", w.payer, b.Lamports, w.now().Sub(b.At).Round(time.Second), need))
	default:
		return nil
	}
}

func (w *Watcher) mayAsk() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tried.IsZero() || w.now().Sub(w.tried) >= minInterval
}

// read asks the chain once. Only one runs at a time.
func (w *Watcher) read(ctx context.Context) error {
	b := Balance{At: w.now()}
	var err error
	b.Lamports, b.Slot, err = w.balances.Balance(ctx, w.payer)
	w.mu.Lock()
	w.tried = b.At
	if last := w.last; err == nil {
		if last != nil && b.Slot < last.Slot {
			// A node behind the one asked before knows nothing newer than we do.
			b.Lamports, b.Slot = last.Lamports, last.Slot
		}
		w.last = &b
	}
	w.mu.Unlock()
	w.logChange(b, err)
	if err == nil {
		w.observe(b)
	}
	return err
}

// logChange says once that something changed. Only read calls it.
func (w *Watcher) logChange(b Balance, err error) {
	failing := err != nil
	switch {
	case failing && !w.failing:
		w.log.Warn("Could not read fee payer balance, keeping the last good value", "payer", w.payer, "error", err)
	case !failing && w.failing:
		w.log.Info("Read fee payer balance again", "payer", w.payer)
	}
	w.failing = failing
	if failing {
		return
	}
	low := b.Lamports < w.minBalance
	switch {
	case low && !w.low:
		w.log.Warn("Fee payer fell below its minimum and new work is refused: fund it", "payer", w.payer, "lamports", b.Lamports, "minimum", w.minBalance)
	case !low && w.low:
		w.log.Info("Fee payer was funded", "payer", w.payer, "lamports", b.Lamports)
	}
	w.low = low
}

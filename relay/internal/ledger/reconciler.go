package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// ErrCursorMoved reports that another process has moved a payer's cursor since it was read.
var ErrCursorMoved = errors.New("another relay has moved the ledger's cursor")

// Cursor says how far a payer's history has been read: to the end of Slot.
type Cursor struct {
	Payer solana.PublicKey
	// Opening is the payer's balance before the first transaction of the ledger:
	// 0 when history goes back to the account's creation.
	Opening uint64
	// Signature is that of a transaction in Slot; BalanceAfter is the balance at the end of Slot.
	Signature          solana.Signature
	Slot, BalanceAfter uint64
	// Gaps counts places where no endpoint has history that must exist. Missing is what the
	// payer gained in these gaps together; negative for a loss.
	Gaps    uint64
	Missing int64
	// CheckedAt is the time up to which the whole finalized history has been read; zero until the
	// history has been read completely for the first time.
	CheckedAt time.Time
}

// Store keeps the ledger.
type Store interface {
	// Cursor returns nil for a payer without a cursor.
	Cursor(ctx context.Context, payer solana.PublicKey) (*Cursor, error)
	// Attempts returns the attempts that are stored for the signatures.
	Attempts(ctx context.Context, signatures []solana.Signature) (map[solana.Signature]Attempt, error)
	// BlockPayments returns what the payer paid in these slots, as far as the commitment index of any process
	// has read their blocks. Such a block may be of a fork.
	BlockPayments(ctx context.Context, payer solana.PublicKey, slots []uint64) (BlockPayments, error)
	// Append adds entries and moves the cursor, in one database transaction. from is the cursor
	// that the caller has read; nil if there was none. If the stored cursor is another one, Append
	// changes nothing and returns ErrCursorMoved. Append skips entries that exist already.
	Append(ctx context.Context, from *Cursor, to Cursor, entries []Entry) error
}

// Chain reads finalized history.
type Chain interface {
	// SignaturesFor lists at most limit of an address's transactions, newest first and in
	// no order within a slot. The bounds before and until are exclusive; a zero signature
	// sets no bound.
	SignaturesFor(ctx context.Context, address solana.PublicKey, commitment onchain.Commitment, before, until solana.Signature, limit int) ([]onchain.SignatureInfo, error)
	// Payment returns what a finalized transaction did to the account; nil when no endpoint knows
	// the transaction. A retry can help only after the error onchain.ErrUnavailable.
	Payment(ctx context.Context, signature solana.Signature, account solana.PublicKey) (*onchain.Payment, error)
}

// Observer counts entries and gaps.
type Observer interface {
	// EntryAdded counts an entry and its amounts.
	EntryAdded(kind Kind, a Amounts)
	// GapSkipped counts a place where history is missing.
	GapSkipped()
}

const (
	// pageSize is the number of signatures that one call lists: Agave's maximum.
	pageSize = 1000
	// stepSize is the number of payments that are read from the chain before they are written, apart from those
	// of the last slot.
	stepSize = 200
	// pagesPerPass is the largest number of pages that one pass lists for one payer.
	pagesPerPass = 50

	defaultPayments = 2000
	defaultParallel = 4
)

// ReconcilerOptions configure a Reconciler. Payers, Store, Chain, Observer, Log
// and Now are needed.
type ReconcilerOptions struct {
	Payers   []solana.PublicKey
	Store    Store
	Chain    Chain
	Observer Observer
	Log      *slog.Logger
	Now      func() time.Time
	// Finalized returns the newest slot that is known to be final, 0 if none is; it reads the chain if that is
	// earlier than the slot. Payments up to it that Store.BlockPayments has are not read from the chain. If
	// Finalized is nil, all are read.
	Finalized func(ctx context.Context, slot uint64) uint64
	// Payments bounds the transactions that one pass reads, over all payers; a slot is
	// always finished. 0 means 2000. Parallel is the number of concurrent reads; 0 means 4.
	Payments, Parallel int
	// Rent returns the chain's rate of rent, 0 while it is unknown. If Rent is nil,
	// shieldpool.HighestRent is used.
	Rent func() shieldpool.Rent
	// GapTimeout is how long missing history is requested again before the ledger
	// skips it as a gap; 0 means 10 minutes.
	GapTimeout time.Duration
}

// Reconciler writes the ledger from the chain's finalized history. Only one process of the fleet
// should run it. A second one wastes calls, but does no harm to the ledger.
type Reconciler struct {
	ReconcilerOptions
	mu         sync.Mutex // one pass at a time
	histories  []*payerHistory
	firstPayer int
}

// NewReconciler makes a Reconciler, without a call to the chain or the store.
func NewReconciler(o ReconcilerOptions) (*Reconciler, error) {
	switch {
	case len(o.Payers) == 0 || o.Store == nil || o.Chain == nil || o.Observer == nil || o.Log == nil || o.Now == nil:
		return nil, errors.New("the ledger needs payers, a store, a chain, an observer, a logger and a clock")
	case o.Payments < 0 || o.Parallel < 0 || o.GapTimeout < 0:
		return nil, fmt.Errorf("the ledger's bounds are %d payments, %d at once and %s: expected 0 or more for each", o.Payments, o.Parallel, o.GapTimeout)
	}
	if o.Finalized == nil {
		o.Finalized = func(context.Context, uint64) uint64 { return 0 }
	}
	if o.Rent == nil {
		o.Rent = func() shieldpool.Rent { return shieldpool.HighestRent }
	}
	if o.Payments == 0 {
		o.Payments = defaultPayments
	}
	if o.Parallel == 0 {
		o.Parallel = defaultParallel
	}
	if o.GapTimeout == 0 {
		o.GapTimeout = defaultGapTimeout
	}
	r := &Reconciler{ReconcilerOptions: o}
	for _, payer := range o.Payers {
		r.histories = append(r.histories, &payerHistory{payer: payer})
	}
	return r, nil
}

// Reconcile reads the new part of every payer's history, within the bounds of one pass,
// and adds it to the ledger. A pass that fails keeps what it has added, and the next
// pass continues there. Errors come from the store and the chain; after an error of one
// payer the other payers are still read.
func (r *Reconciler) Reconcile(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	limit := max(r.Payments/len(r.histories), 1)
	var errs []error
	// Each pass starts with another payer, so that a payer with a long history cannot
	// use up the time of every pass.
	r.firstPayer++
	for i := range r.histories {
		h := r.histories[(r.firstPayer+i)%len(r.histories)]
		if err := r.readPayer(ctx, h, limit); err != nil {
			errs = append(errs, fmt.Errorf("reconcile fee payer %s: %w", h.payer, err))
		}
	}
	return errors.Join(errs...)
}

// readPayer reads at most limit payments of one payer's history. It writes after
// each step, so that a pass that times out has still made progress.
func (r *Reconciler) readPayer(ctx context.Context, h *payerHistory, limit int) error {
	for limit > 0 {
		n, err := r.readStep(ctx, h, limit)
		if err != nil || !h.listed {
			return err
		}
		limit -= max(n, 1)
	}
	return nil
}

// readStep reads the next payments and writes their entries. It returns how many payments it has
// read: at most limit, unless one slot has more.
func (r *Reconciler) readStep(ctx context.Context, h *payerHistory, limit int) (n int, err error) {
	cursor, err := r.Store.Cursor(ctx, h.payer)
	if err != nil {
		return 0, err
	}
	if listed, err := r.listHistory(ctx, h, cursor); err != nil || !listed {
		return 0, err
	}
	h.forgetGap(cursor)
	b, n, readErr, err := r.addSlots(ctx, h, cursor, h.nextSlots(cursor, limit))
	if err != nil {
		return 0, errors.Join(readErr, err)
	}
	done := h.finishStep(&b, readErr == nil)
	if done && b.cursor != nil {
		b.cursor.CheckedAt = h.startedAt
	}
	r.reportProblems(ctx, h, &b)
	if b.cursor == nil || cursor != nil && *b.cursor == *cursor {
		return n, readErr
	}
	if err := r.Store.Append(ctx, cursor, *b.cursor, b.entries); err != nil {
		h.restart() // another process moved the cursor, or the write failed
		return 0, errors.Join(readErr, err)
	}
	h.writtenTo = b.cursor.Slot
	r.reportStep(ctx, cursor, &b)
	return n, readErr
}

// addSlots reads the payments of the slots, n in all, and adds them up. If they do not add up with payments
// that are known from blocks, it reads all from the chain. If no endpoint knows a payment, or a call fails, which
// says nothing of earlier slots, it tries once to add those alone. Without a cursor, only the chain shows the
// balance before the first slot.
func (r *Reconciler) addSlots(ctx context.Context, h *payerHistory, cursor *Cursor, slots []slot) (b accumulator, n int, readErr, err error) {
	var known BlockPayments
	if cursor != nil {
		known = r.knownPayments(ctx, h, slots)
	}
	for cut := false; ; {
		var read []slot
		if read, readErr = r.readPayments(ctx, h.payer, known.step(slots, stepSize), known); readErr != nil {
			if len(known) > 0 && len(read) > 0 && !cut {
				slots, cut = read, true
				continue
			}
			read = known.withoutLast(read)
		}
		signatures := signaturesOf(read)
		attempts, err := r.Store.Attempts(ctx, signatures)
		if err != nil {
			return b, 0, readErr, err
		}
		b = accumulator{payer: h.payer, now: r.Now(), rent: r.Rent(), attempts: attempts, acceptGap: h.gapTimedOut(r.Now(), r.GapTimeout)}
		b.start(cursor)
		for _, s := range read {
			if b.add(s); b.problem != "" {
				break
			}
		}
		if b.problem == "" || len(known) == 0 {
			return b, len(signatures), readErr, nil
		}
		before := slices.IndexFunc(slots, func(s slot) bool { return s.number == b.problemSlot })
		if b.problem == problemMissing && before > 0 && !cut {
			slots, cut = slots[:before], true
		} else {
			known = nil
		}
	}
}

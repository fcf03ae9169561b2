package ledger

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

var errDown = errors.New("database is down")

// fixture is a payer's history on a fake chain and its ledger in a fake store, with
// faults of both.
type fixture struct {
	*testing.T
	now time.Time
	log strings.Builder

	mu             sync.Mutex
	payments       []*onchain.Payment // in the order in which they landed
	lamports       uint64
	storedAttempts map[solana.Signature]Attempt
	blockPayments  map[uint64][]*onchain.Payment // by slot
	blockErr       error

	unlisted     map[solana.Signature]bool // listed by no endpoint
	unknown      map[solana.Signature]bool // listed, but no endpoint has the transaction
	listErr      error
	paymentErrs  map[solana.Signature]error // the error of reading a payment
	listCalls    int
	paymentCalls int
	// emptyListings is how many calls return an empty page, like an endpoint that does
	// not know the signature before.
	emptyListings int
	// If ignoresUntil is set, listings continue past the signature until.
	ignoresUntil bool

	cursor    *Cursor
	entries   []Entry
	writes    int
	appendErr error // of the next write

	observedKinds []Kind
	observedGaps  int
}

func newFixture(t *testing.T) *fixture {
	return &fixture{
		T: t, now: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), storedAttempts: map[solana.Signature]Attempt{}, blockPayments: map[uint64][]*onchain.Payment{},
		unlisted: map[solana.Signature]bool{}, unknown: map[solana.Signature]bool{}, paymentErrs: map[solana.Signature]error{},
	}
}

// transactRent is what a transfer pays for its two nullifier accounts, in lamports.
const transactRent = 2 * 890_880

// land adds a transaction that changes the payer's lamports.
func (w *fixture) land(slot uint64, change int64, feePayer solana.PublicKey) solana.Signature {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.payments) + 1
	p := &onchain.Payment{
		Signature: solana.Signature{byte(n), byte(n >> 8), byte(n >> 16)}, Slot: slot, At: w.now, FeePayer: feePayer,
		Before: w.lamports, After: uint64(int64(w.lamports) + change),
	}
	if feePayer == payerKey {
		p.Fee, p.SignatureFees = 5010, 5000
		p.After -= 5010
	}
	w.lamports = p.After
	w.payments = append(w.payments, p)
	return p.Signature
}

func (w *fixture) fund(slot, lamports uint64) solana.Signature {
	return w.land(slot, int64(lamports), otherKey)
}

// transfer adds a transfer of the relay.
func (w *fixture) transfer(slot uint64) solana.Signature {
	signature := w.land(slot, -transactRent, payerKey)
	w.payments[len(w.payments)-1].Created, w.payments[len(w.payments)-1].CreatedSizes = transactRent, []uint64{0, 0}
	w.storedAttempts[signature] = Attempt{Submission: uuid.New(), Kind: shieldpool.KindTransfer}
	return signature
}

func (w *fixture) SignaturesFor(_ context.Context, address solana.PublicKey, c onchain.Commitment, before, until solana.Signature, limit int) ([]onchain.SignatureInfo, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listCalls++
	if address != payerKey || c != onchain.Finalized || limit != pageSize {
		w.Errorf("unexpected listing of %s at %s with limit %d", address, c, limit)
	}
	if w.listErr != nil {
		return nil, w.listErr
	}
	if !before.IsZero() && w.emptyListings > 0 {
		w.emptyListings--
		return nil, nil
	}
	var out []onchain.SignatureInfo
	started := before.IsZero()
	for _, p := range slices.Backward(w.payments) {
		switch {
		case p.Signature == before:
			started = true
		case p.Signature == until && !w.ignoresUntil:
			return out, nil
		case started && !w.unlisted[p.Signature] && len(out) < limit:
			out = append(out, onchain.SignatureInfo{Signature: p.Signature, Slot: p.Slot, Failed: p.Failed})
		}
	}
	return out, nil
}

func (w *fixture) Payment(_ context.Context, signature solana.Signature, account solana.PublicKey) (*onchain.Payment, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.paymentCalls++
	if account != payerKey {
		w.Errorf("unexpected read of a payment of %s", account)
	}
	if err := w.paymentErrs[signature]; err != nil {
		return nil, err
	}
	for _, p := range w.payments {
		if p.Signature == signature && !w.unknown[signature] {
			return p, nil
		}
	}
	return nil, nil //nolint:nilnil // as the interface says
}

func (w *fixture) Cursor(context.Context, solana.PublicKey) (*Cursor, error) {
	if w.cursor == nil {
		return nil, nil //nolint:nilnil // as the interface says
	}
	c := *w.cursor
	return &c, nil
}

func (w *fixture) Attempts(_ context.Context, signatures []solana.Signature) (map[solana.Signature]Attempt, error) {
	found := maps.Clone(w.storedAttempts)
	maps.DeleteFunc(found, func(s solana.Signature, _ Attempt) bool { return !slices.Contains(signatures, s) })
	return found, nil
}

func (w *fixture) BlockPayments(_ context.Context, payer solana.PublicKey, slots []uint64) (BlockPayments, error) {
	if payer != payerKey {
		w.Errorf("unexpected read of what %s paid", payer)
	}
	if w.blockErr != nil {
		return nil, w.blockErr
	}
	found := BlockPayments{}
	for _, slot := range slots {
		for _, p := range w.blockPayments[slot] {
			found[p.Signature] = p
		}
	}
	return found, nil
}

func (w *fixture) Append(_ context.Context, from *Cursor, to Cursor, entries []Entry) error {
	w.writes++
	if err := w.appendErr; err != nil {
		w.appendErr = nil
		return err
	}
	if (from == nil) != (w.cursor == nil) || from != nil && from.Slot != w.cursor.Slot {
		return ErrCursorMoved
	}
	for _, e := range entries {
		if slices.ContainsFunc(w.entries, func(old Entry) bool { return old.Signature == e.Signature }) {
			w.Errorf("entry %s is written twice", e.Signature)
		}
	}
	w.cursor, w.entries = &to, append(w.entries, entries...)
	return nil
}

func (w *fixture) EntryAdded(k Kind, _ Amounts) { w.observedKinds = append(w.observedKinds, k) }

func (w *fixture) GapSkipped() { w.observedGaps++ }

func (w *fixture) reconciler(change func(*ReconcilerOptions)) *Reconciler {
	w.Helper()
	o := ReconcilerOptions{
		Payers: []solana.PublicKey{payerKey}, Store: w, Chain: w, Observer: w, Now: func() time.Time { return w.now },
		Log: slog.New(slog.NewTextHandler(&w.log, nil)),
	}
	if change != nil {
		change(&o)
	}
	r, err := NewReconciler(o)
	if err != nil {
		w.Fatal(err)
	}
	return r
}

func (w *fixture) reconcile(r *Reconciler) {
	w.Helper()
	if err := r.Reconcile(w.Context()); err != nil {
		w.Fatal(err)
	}
}

// checkWholeHistory checks that the ledger has the whole history and that the amounts
// add up.
func (w *fixture) checkWholeHistory() {
	w.Helper()
	var want, got []solana.Signature
	for _, p := range w.payments {
		want = append(want, p.Signature)
	}
	net := int64(0)
	for _, e := range w.entries {
		got = append(got, e.Signature)
		net += e.Net()
	}
	order := func(a, b solana.Signature) int { return slices.Compare(a[:], b[:]) }
	slices.SortFunc(want, order)
	slices.SortFunc(got, order)
	if diff := cmp.Diff(want, got); diff != "" {
		w.Fatalf("entries differ (-want +got):\n%s", diff)
	}
	if c := w.cursor; int64(c.Opening)-net+c.Missing != int64(c.BalanceAfter) || c.BalanceAfter != w.lamports {
		w.Errorf("opening balance %d, net change %d, closing balance %d, missing %d; balance on the chain %d", c.Opening, -net, c.BalanceAfter, c.Missing, w.lamports)
	}
}

func (w *fixture) checkLogged(counts map[string]int) {
	w.Helper()
	for text, want := range counts {
		if got := strings.Count(w.log.String(), text); got != want {
			w.Errorf("%q is logged %d times, want %d:\n%s", text, got, want, w.log.String())
		}
	}
}

func TestReconcileAddsNewHistory(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	r := w.reconciler(nil)
	w.reconcile(r)
	if w.cursor != nil {
		t.Error("a payer without a history has a cursor")
	}
	w.fund(3, 1e9)
	w.transfer(5)
	w.transfer(5)
	w.reconcile(r)
	w.checkWholeHistory()
	if c := w.cursor; c.Opening != 0 || c.Slot != 5 || !c.CheckedAt.Equal(w.now) {
		t.Errorf("cursor is %+v, want slot 5, opened at 0 and checked now", c)
	}
	w.now = w.now.Add(30 * time.Second)
	callsBefore := w.paymentCalls
	w.reconcile(r)
	if w.paymentCalls != callsBefore || !w.cursor.CheckedAt.Equal(w.now) {
		t.Errorf("without new history %d payments are read and CheckedAt is %s; want 0 and now", w.paymentCalls-callsBefore, w.cursor.CheckedAt)
	}
	w.land(7, -100, payerKey)                   // signed with the payer's key, not by the relay
	w.land(8, 0, otherKey)                      // mentions the payer's address
	w.payments = w.payments[:len(w.payments)-1] // it makes no entry, so it is not in the expected history
	mention := w.land(8, 0, otherKey)
	w.transfer(9)
	w.reconcile(r)
	w.payments = slices.DeleteFunc(w.payments, func(p *onchain.Payment) bool { return p.Signature == mention })
	w.checkWholeHistory()
	if diff := cmp.Diff([]Kind{KindReceived, KindTransfer, KindTransfer, KindUnknown, KindTransfer}, w.observedKinds); diff != "" {
		t.Errorf("observed kinds differ (-want +got):\n%s", diff)
	}
	w.checkLogged(map[string]int{"fee payer accounting initialised": 1, "is not in the database": 1, "lamports received": 1, "gap": 0})
}

func TestAnotherProcessContinuesAtTheCursor(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.fund(3, 1e9)
	first, second := w.reconciler(nil), w.reconciler(nil)
	w.reconcile(first)
	w.transfer(5)
	w.reconcile(second)
	w.transfer(6)
	w.reconcile(first)
	w.checkWholeHistory()
	// Both have read the same history: the process that writes last changes nothing.
	w.transfer(7)
	w.appendErr = ErrCursorMoved
	if err := first.Reconcile(t.Context()); !errors.Is(err, ErrCursorMoved) {
		t.Errorf("error is %v, want ErrCursorMoved", err)
	}
	w.reconcile(second)
	w.reconcile(first)
	w.checkWholeHistory()
}

func TestLongHistoryIsReadInBoundedPasses(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.fund(1, 1e15)
	for i := range 3*pageSize + 500 {
		w.transfer(uint64(2 + i/7)) // seven per slot
	}
	r := w.reconciler(func(o *ReconcilerOptions) { o.Payments = 1000 })
	for pass := 1; len(w.entries) < len(w.payments); pass++ {
		callsBefore := w.paymentCalls
		w.reconcile(r)
		if n := w.paymentCalls - callsBefore; n > 1000+6 || pass > 4 {
			t.Fatalf("pass %d reads %d payments, want at most four passes with at most 1006 payments", pass, n)
		}
		if done := len(w.entries) == len(w.payments); done == w.cursor.CheckedAt.IsZero() {
			t.Errorf("after pass %d CheckedAt is %s, want it set only after the last pass", pass, w.cursor.CheckedAt)
		}
	}
	w.checkWholeHistory()
	if w.listCalls > 8 {
		t.Errorf("history was listed with %d calls, want at most 8: one listing", w.listCalls)
	}
}

// Maintenance cancels a pass that takes too long. What the pass has read must stay, or
// no pass would make progress.
func TestCancelledPassMakesProgress(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.fund(1, 1e15)
	for i := range 3 * stepSize {
		w.transfer(uint64(2 + i))
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := w.reconciler(func(o *ReconcilerOptions) {
		d := cancellingChain{w, stepSize + stepSize/2, cancel}
		o.Chain, o.Store, o.Parallel = d, d, 1
	})
	if err := r.Reconcile(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want context.Canceled", err)
	}
	if got := len(w.entries); got != stepSize {
		t.Errorf("%d entries were written, want the first step's %d", got, stepSize)
	}
	w.reconcile(r)
	w.checkWholeHistory()
}

// cancellingChain ends the pass after some payments.
type cancellingChain struct {
	*fixture
	cancelAfter int
	cancel      func()
}

func (d cancellingChain) Payment(ctx context.Context, signature solana.Signature, account solana.PublicKey) (*onchain.Payment, error) {
	p, err := d.fixture.Payment(ctx, signature, account)
	if d.paymentCalls == d.cancelAfter {
		d.cancel()
	}
	if ctx.Err() != nil {
		return nil, &onchain.Unavailable{Method: "getTransaction", Kind: onchain.KindCancelled, Err: ctx.Err()}
	}
	return p, err
}

func (d cancellingChain) Attempts(ctx context.Context, signatures []solana.Signature) (map[solana.Signature]Attempt, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return d.fixture.Attempts(ctx, signatures)
}

func TestHistoryBeyondTheBoundIsListedAgain(t *testing.T) {
	t.Parallel()
	history := payerHistory{payer: payerKey}
	total := maxListed + 2*pageSize
	for n := total; n > 0; n -= pageSize {
		page := make([]onchain.SignatureInfo, pageSize)
		for i := range page {
			page[i] = onchain.SignatureInfo{Signature: solana.Signature{byte(n - i), byte((n - i) >> 8), byte((n - i) >> 16)}, Slot: uint64(n-i) / 3}
		}
		history.addPage(page, nil)
	}
	history.addPage(nil, nil)
	if !history.addPage(nil, nil) || !history.truncated || len(history.signatures) > maxListed {
		t.Fatalf("%d signatures are kept, want at most %d and truncated set", len(history.signatures), maxListed)
	}
	newest := history.signatures[len(history.signatures)-1].Slot
	if n := len(slices.DeleteFunc(slices.Clone(history.signatures), func(i onchain.SignatureInfo) bool { return i.Slot != newest })); n != 3 {
		t.Errorf("%d transactions of the newest slot are kept, want all 3", n)
	}
	if history.signatures[0].Slot != 0 {
		t.Errorf("the oldest slot kept is %d, want 0", history.signatures[0].Slot)
	}
	b := accumulator{lastSlot: newest}
	if history.finishStep(&b, true) || history.listed {
		t.Error("history is marked as fully read although the newest transactions were truncated")
	}
}

func TestFaultDelaysEntries(t *testing.T) {
	t.Parallel()
	down := &onchain.Unavailable{Method: "getSignaturesForAddress", Kind: onchain.KindTimeout}
	tests := map[string]struct {
		inject, repair func(w *fixture, newest solana.Signature)
		wantErr        bool
		wantEntries    int // entries (of 6) after the pass with the fault
	}{
		"history cannot be listed": {
			inject: func(w *fixture, _ solana.Signature) { w.listErr = down }, repair: func(w *fixture, _ solana.Signature) { w.listErr = nil },
			wantErr: true, wantEntries: 3,
		},
		"a payment cannot be read": {
			inject:  func(w *fixture, s solana.Signature) { w.paymentErrs[s] = down },
			repair:  func(w *fixture, s solana.Signature) { delete(w.paymentErrs, s) },
			wantErr: true, wantEntries: 4,
		},
		"a payment is not known": {
			inject:      func(w *fixture, s solana.Signature) { w.unknown[s] = true },
			repair:      func(w *fixture, s solana.Signature) { delete(w.unknown, s) },
			wantEntries: 4,
		},
		"a payment cannot be decoded by any endpoint": {
			inject: func(w *fixture, s solana.Signature) {
				w.paymentErrs[s] = &onchain.RPCError{Method: "getTransaction", Code: -32015}
			},
			repair:      func(w *fixture, s solana.Signature) { delete(w.paymentErrs, s) },
			wantEntries: 4,
		},
		"a transaction is not listed": {
			inject:      func(w *fixture, s solana.Signature) { w.unlisted[s] = true },
			repair:      func(w *fixture, s solana.Signature) { delete(w.unlisted, s) },
			wantEntries: 4,
		},
		"the write fails": {
			inject:  func(w *fixture, _ solana.Signature) { w.appendErr = errDown },
			repair:  func(*fixture, solana.Signature) {},
			wantErr: true, wantEntries: 3,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t)
			w.fund(3, 1e9)
			w.transfer(4)
			w.transfer(5)
			r := w.reconciler(nil)
			w.reconcile(r)
			checked := w.now
			w.now = w.now.Add(time.Minute)
			w.transfer(6)
			faulty := w.transfer(7)
			w.transfer(8)
			test.inject(w, faulty)
			if err := r.Reconcile(t.Context()); (err != nil) != test.wantErr {
				t.Errorf("error is %v, want an error: %v", err, test.wantErr)
			} else if err != nil && !strings.Contains(err.Error(), payerKey.String()) {
				t.Errorf("error %v does not name the payer", err)
			}
			if mismatchLogged := strings.Contains(w.log.String(), "does not add up"); mismatchLogged == test.wantErr {
				t.Errorf("history mismatch logged: %v, want it only if the pass succeeds", mismatchLogged)
			}
			if len(w.entries) != test.wantEntries || !w.cursor.CheckedAt.Equal(checked) {
				t.Errorf("%d entries, CheckedAt %s; want %d entries and CheckedAt unchanged", len(w.entries), w.cursor.CheckedAt, test.wantEntries)
			}
			test.repair(w, faulty)
			w.reconcile(r)
			w.checkWholeHistory()
			if !w.cursor.CheckedAt.Equal(w.now) || w.observedGaps != 0 || w.cursor.Gaps != 0 {
				t.Errorf("cursor is %+v, want it checked now, without a gap", w.cursor)
			}
		})
	}
}

// An endpoint that does not know the signature before returns an empty page. The
// payer's history must not start there.
func TestEmptyPageDoesNotEndHistory(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.fund(1, 1e15)
	for i := range pageSize + 10 {
		w.transfer(uint64(2 + i))
	}
	w.emptyListings = 1
	w.reconcile(w.reconciler(nil))
	w.checkWholeHistory()
	if w.cursor.Opening != 0 {
		t.Errorf("the ledger opens at %d lamports, want 0", w.cursor.Opening)
	}
}

func TestPagesBeyondTheCursorAreNotRead(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.fund(1, 1e15)
	for i := range 3 * pageSize {
		w.transfer(uint64(2 + i))
	}
	r := w.reconciler(func(o *ReconcilerOptions) { o.Payments = 4 * pageSize })
	w.reconcile(r)
	w.transfer(1 << 40)
	w.ignoresUntil = true
	lists, callsBefore := w.listCalls, w.paymentCalls
	w.reconcile(r)
	w.checkWholeHistory()
	if w.listCalls != lists+1 || w.paymentCalls != callsBefore+1 {
		t.Errorf("for one new transaction %d pages and %d payments are read, want 1 of each", w.listCalls-lists, w.paymentCalls-callsBefore)
	}
}

func TestUnwrittenHistoryIsReadAgain(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.fund(3, 1e9)
	w.transfer(4)
	w.transfer(5)
	r := w.reconciler(func(o *ReconcilerOptions) { o.Payments = 1 })
	w.appendErr = errDown
	if err := r.Reconcile(t.Context()); !errors.Is(err, errDown) {
		t.Errorf("error is %v, want errDown", err)
	}
	for range 3 {
		w.reconcile(r)
	}
	w.checkWholeHistory()
	if w.cursor.Opening != 0 || w.observedGaps != 0 {
		t.Errorf("cursor is %+v, want the whole history", w.cursor)
	}
}

func TestHistoryThatStaysMissingIsAGap(t *testing.T) {
	t.Parallel()
	tests := map[string]func(w *fixture, s solana.Signature){
		"the transactions are not listed": func(w *fixture, s solana.Signature) { w.unlisted[s] = true },
		"the transactions are not known":  func(w *fixture, s solana.Signature) { w.unknown[s] = true },
	}
	for name, hide := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t)
			w.fund(3, 1e9)
			r := w.reconciler(nil)
			w.reconcile(r)
			w.transfer(5)
			for range 3 { // each in its own slot
				hide(w, w.transfer(uint64(6+len(w.payments))))
			}
			w.transfer(20)
			hide(w, w.transfer(21)) // in the same slot as a known transaction
			w.transfer(21)
			w.transfer(22)
			for range 3 {
				w.reconcile(r)
				w.now = w.now.Add(defaultGapTimeout / 3)
			}
			if len(w.entries) != 2 || w.observedGaps != 0 {
				t.Fatalf("before the gap timeout there are %d entries and %d gaps, want 2 and none", len(w.entries), w.observedGaps)
			}
			w.reconcile(r)
			const each = transactRent + 5010
			if c := w.cursor; c.BalanceAfter != w.lamports || c.Slot != 22 || c.Gaps != 2 || c.Missing != -4*each || w.observedGaps != 2 {
				t.Errorf("cursor is %+v after %d gaps, want two gaps of %d in total and a balance of %d lamports", c, w.observedGaps, -4*each, w.lamports)
			}
			if !w.cursor.CheckedAt.Equal(w.now) {
				t.Errorf("CheckedAt is %s, want now", w.cursor.CheckedAt)
			}
			w.checkLogged(map[string]int{"does not add up": 1, "gap in a fee payer's history skipped": 2, "fee payer accounting recomputed": 1})

			// The next gap has the same timeout.
			hide(w, w.transfer(30))
			w.transfer(31)
			w.reconcile(r)
			if w.cursor.Slot != 22 {
				t.Error("the next gap was skipped before the gap timeout")
			}
		})
	}
}

func TestLedgerStartsAfterMissingHistory(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.unlisted[w.fund(3, 1e9)] = true
	w.unknown[w.transfer(4)] = true
	w.transfer(5)
	w.transfer(6)
	r := w.reconciler(nil)
	w.reconcile(r)
	if w.cursor != nil {
		t.Error("the ledger started before the gap timeout")
	}
	w.now = w.now.Add(defaultGapTimeout)
	w.reconcile(r)
	const each = transactRent + 5010
	if c := w.cursor; c.Opening != 1e9-each || c.BalanceAfter != w.lamports || c.Gaps != 0 || len(w.entries) != 2 {
		t.Errorf("cursor is %+v with %d entries, want Opening %d and 2 entries", c, len(w.entries), int(1e9-each))
	}
}

func TestErrorOfOnePayerDoesNotStopOthers(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.fund(3, 1e9)
	r := w.reconciler(func(o *ReconcilerOptions) { o.Payers = []solana.PublicKey{{9}, payerKey}; o.Chain = failingChain{w} })
	if err := r.Reconcile(t.Context()); !errors.Is(err, errDown) {
		t.Errorf("error is %v, want errDown of the first payer", err)
	}
	w.checkWholeHistory()
}

// failingChain fails for the first payer.
type failingChain struct{ *fixture }

func (p failingChain) SignaturesFor(ctx context.Context, a solana.PublicKey, c onchain.Commitment, before, until solana.Signature, limit int) ([]onchain.SignatureInfo, error) {
	if a != payerKey {
		return nil, errDown
	}
	return p.fixture.SignaturesFor(ctx, a, c, before, until, limit)
}

func TestNewReconcilerRejectsInvalidOptions(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	full := ReconcilerOptions{Payers: []solana.PublicKey{payerKey}, Store: w, Chain: w, Observer: w, Log: slog.New(slog.DiscardHandler), Now: time.Now}
	for name, change := range map[string]func(*ReconcilerOptions){
		"no payer":             func(o *ReconcilerOptions) { o.Payers = nil },
		"no store":             func(o *ReconcilerOptions) { o.Store = nil },
		"no chain":             func(o *ReconcilerOptions) { o.Chain = nil },
		"no observer":          func(o *ReconcilerOptions) { o.Observer = nil },
		"no logger":            func(o *ReconcilerOptions) { o.Log = nil },
		"no clock":             func(o *ReconcilerOptions) { o.Now = nil },
		"negative payments":    func(o *ReconcilerOptions) { o.Payments = -1 },
		"negative gap timeout": func(o *ReconcilerOptions) { o.GapTimeout = -1 },
	} {
		o := full
		change(&o)
		if r, err := NewReconciler(o); err == nil || r != nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

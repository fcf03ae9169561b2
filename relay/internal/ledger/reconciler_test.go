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

// fixture is a payer's history, a ledger of it, and all that can go wrong in between.
type fixture struct {
	*testing.T
	now time.Time
	log strings.Builder

	mu             sync.Mutex
	payments       []*onchain.Payment // in the order in which they landed
	lamports       uint64
	storedAttempts map[solana.Signature]Attempt

	unlisted     map[solana.Signature]bool // listed by no endpoint
	unknown      map[solana.Signature]bool // listed, but no endpoint has it
	listErr      error
	paymentErrs  map[solana.Signature]error // one payment cannot be asked for now
	listCalls    int
	paymentCalls int
	// emptyListings calls answer as an endpoint that does not know the signature to start before.
	emptyListings int
	// ignoresUntil endpoints go on beyond the signature to end at.
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
		T: t, now: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), storedAttempts: map[solana.Signature]Attempt{},
		unlisted: map[solana.Signature]bool{}, unknown: map[solana.Signature]bool{}, paymentErrs: map[solana.Signature]error{},
	}
}

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

// transfer is one of the relay's own.
func (w *fixture) transfer(slot uint64) solana.Signature {
	signature := w.land(slot, -transactRent, payerKey)
	w.storedAttempts[signature] = Attempt{Submission: uuid.New(), Kind: shieldpool.KindTransfer}
	return signature
}

func (w *fixture) SignaturesFor(_ context.Context, address solana.PublicKey, c onchain.Commitment, before, until solana.Signature, limit int) ([]onchain.SignatureInfo, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listCalls++
	if address != payerKey || c != onchain.Finalized || limit != pageSize {
		w.Errorf("history of %s at %s by %d was asked for", address, c, limit)
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
		w.Errorf("the payment of %s was asked for", account)
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

// wantWholeHistory checks that the ledger has the whole history, and that it adds up.
func (w *fixture) wantWholeHistory() {
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
		w.Errorf("the ledger goes from %d over %d to %d with %d missing, and the balance is %d", c.Opening, -net, c.BalanceAfter, c.Missing, w.lamports)
	}
}

func (w *fixture) wantLogged(counts map[string]int) {
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
	w.wantWholeHistory()
	if c := w.cursor; c.Opening != 0 || c.Slot != 5 || !c.CheckedAt.Equal(w.now) {
		t.Errorf("cursor is %+v, want slot 5, opened at 0 and checked now", c)
	}
	w.now = w.now.Add(30 * time.Second)
	asked := w.paymentCalls
	w.reconcile(r)
	if w.paymentCalls != asked || !w.cursor.CheckedAt.Equal(w.now) {
		t.Errorf("with nothing new %d payments are read, and it was checked at %s", w.paymentCalls-asked, w.cursor.CheckedAt)
	}
	w.land(7, -100, payerKey)                   // signed with our key, not by the relay
	w.land(8, 0, otherKey)                      // a mention of our address
	w.payments = w.payments[:len(w.payments)-1] // which leaves no entry, below
	mention := w.land(8, 0, otherKey)
	w.transfer(9)
	w.reconcile(r)
	w.payments = slices.DeleteFunc(w.payments, func(p *onchain.Payment) bool { return p.Signature == mention })
	w.wantWholeHistory()
	if diff := cmp.Diff([]Kind{KindReceived, KindTransfer, KindTransfer, KindUnknown, KindTransfer}, w.observedKinds); diff != "" {
		t.Errorf("observed kinds differ (-want +got):\n%s", diff)
	}
	w.wantLogged(map[string]int{"fee payer accounting initialised": 1, "is not in the database": 1, "lamports received": 1, "gap": 0})
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
	w.wantWholeHistory()
	// Both have read the same: the one that writes last changes nothing.
	w.transfer(7)
	w.appendErr = ErrCursorMoved
	if err := first.Reconcile(t.Context()); !errors.Is(err, ErrCursorMoved) {
		t.Errorf("error is %v, want ErrMoved", err)
	}
	w.reconcile(second)
	w.reconcile(first)
	w.wantWholeHistory()
}

func TestALongHistoryIsReadInBoundedSteps(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.fund(1, 1e15)
	for i := range 3*pageSize + 500 {
		w.transfer(uint64(2 + i/7)) // seven a slot
	}
	r := w.reconciler(func(o *ReconcilerOptions) { o.Payments = 1000 })
	for pass := 1; len(w.entries) < len(w.payments); pass++ {
		asked := w.paymentCalls
		w.reconcile(r)
		if n := w.paymentCalls - asked; n > 1000+6 || pass > 4 {
			t.Fatalf("pass %d reads %d payments, want at most 1000 and the rest of a slot in each of four", pass, n)
		}
		if done := len(w.entries) == len(w.payments); done == w.cursor.CheckedAt.IsZero() {
			t.Errorf("after pass %d the ledger was checked at %s", pass, w.cursor.CheckedAt)
		}
	}
	w.wantWholeHistory()
	if w.listCalls > 8 {
		t.Errorf("history was listed with %d calls, want it listed once", w.listCalls)
	}
}

// Maintenance cancels a pass that takes too long: what it has read must stay, or no
// pass would make progress.
func TestAPassThatTimesOutMakesProgress(t *testing.T) {
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
		t.Errorf("error is %v, want that the pass was ended", err)
	}
	if got := len(w.entries); got != stepSize {
		t.Errorf("%d entries were written, want the first step's %d", got, stepSize)
	}
	w.reconcile(r)
	w.wantWholeHistory()
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
	tr := payerHistory{payer: payerKey}
	total := maxListed + 2*pageSize
	for n := total; n > 0; n -= pageSize {
		page := make([]onchain.SignatureInfo, pageSize)
		for i := range page {
			page[i] = onchain.SignatureInfo{Signature: solana.Signature{byte(n - i), byte((n - i) >> 8), byte((n - i) >> 16)}, Slot: uint64(n-i) / 3}
		}
		tr.addPage(page, nil)
	}
	tr.addPage(nil, nil)
	if !tr.addPage(nil, nil) || !tr.truncated || len(tr.signatures) > maxListed {
		t.Fatalf("%d signatures are kept, want at most %d and the rest cut", len(tr.signatures), maxListed)
	}
	newest := tr.signatures[len(tr.signatures)-1].Slot
	if n := len(slices.DeleteFunc(slices.Clone(tr.signatures), func(i onchain.SignatureInfo) bool { return i.Slot != newest })); n != 3 {
		t.Errorf("%d transactions of the newest slot are kept, want all 3", n)
	}
	if tr.signatures[0].Slot != 0 {
		t.Errorf("the oldest slot kept is %d, want 0", tr.signatures[0].Slot)
	}
	b := accumulator{lastSlot: newest}
	if tr.finishStep(&b, true) || tr.listed {
		t.Error("all counts as read, and the newest were cut")
	}
}

func TestAFaultDelaysEntriesUntilItEnds(t *testing.T) {
	t.Parallel()
	down := &onchain.Unavailable{Method: "getSignaturesForAddress", Kind: onchain.KindTimeout}
	tests := map[string]struct {
		wrong, right func(w *fixture, newest solana.Signature)
		wantErr      bool
		wantEntries  int // after the pass in which it is wrong, of 6
	}{
		"history cannot be listed": {
			wrong: func(w *fixture, _ solana.Signature) { w.listErr = down }, right: func(w *fixture, _ solana.Signature) { w.listErr = nil },
			wantErr: true, wantEntries: 3,
		},
		"a payment cannot be read": {
			wrong:   func(w *fixture, s solana.Signature) { w.paymentErrs[s] = down },
			right:   func(w *fixture, s solana.Signature) { delete(w.paymentErrs, s) },
			wantErr: true, wantEntries: 4,
		},
		"a payment is not known": {
			wrong:       func(w *fixture, s solana.Signature) { w.unknown[s] = true },
			right:       func(w *fixture, s solana.Signature) { delete(w.unknown, s) },
			wantEntries: 4,
		},
		"a payment is of a kind that no endpoint reads": {
			wrong: func(w *fixture, s solana.Signature) {
				w.paymentErrs[s] = &onchain.RPCError{Method: "getTransaction", Code: -32015}
			},
			right:       func(w *fixture, s solana.Signature) { delete(w.paymentErrs, s) },
			wantEntries: 4,
		},
		"a transaction is not listed": {
			wrong:       func(w *fixture, s solana.Signature) { w.unlisted[s] = true },
			right:       func(w *fixture, s solana.Signature) { delete(w.unlisted, s) },
			wantEntries: 4,
		},
		"the write fails": {
			wrong:   func(w *fixture, _ solana.Signature) { w.appendErr = errDown },
			right:   func(*fixture, solana.Signature) {},
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
			bad := w.transfer(7)
			w.transfer(8)
			test.wrong(w, bad)
			if err := r.Reconcile(t.Context()); (err != nil) != test.wantErr {
				t.Errorf("error is %v", err)
			} else if err != nil && !strings.Contains(err.Error(), payerKey.String()) {
				t.Errorf("error %v does not name the payer", err)
			}
			if doubted := strings.Contains(w.log.String(), "does not add up"); doubted == test.wantErr {
				t.Errorf("doubt is logged: %v; an error says nothing about history", doubted)
			}
			if len(w.entries) != test.wantEntries || !w.cursor.CheckedAt.Equal(checked) {
				t.Errorf("%d entries, checked at %s; want %d, and nothing checked since", len(w.entries), w.cursor.CheckedAt, test.wantEntries)
			}
			test.right(w, bad)
			w.reconcile(r)
			w.wantWholeHistory()
			if !w.cursor.CheckedAt.Equal(w.now) || w.observedGaps != 0 || w.cursor.Gaps != 0 {
				t.Errorf("cursor is %+v, want it checked, without a gap", w.cursor)
			}
		})
	}
}

// An endpoint that does not know the signature to start before answers with
// nothing: the payer's history must not begin there.
func TestAnEmptyPageDoesNotEndHistory(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.fund(1, 1e15)
	for i := range pageSize + 10 {
		w.transfer(uint64(2 + i))
	}
	w.emptyListings = 1
	w.reconcile(w.reconciler(nil))
	w.wantWholeHistory()
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
	lists, asked := w.listCalls, w.paymentCalls
	w.reconcile(r)
	w.wantWholeHistory()
	if w.listCalls != lists+1 || w.paymentCalls != asked+1 {
		t.Errorf("for one new transaction there are %d pages and %d payments read, want 1 of each", w.listCalls-lists, w.paymentCalls-asked)
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
		t.Errorf("error is %v, want the database's", err)
	}
	for range 3 {
		w.reconcile(r)
	}
	w.wantWholeHistory()
	if w.cursor.Opening != 0 || w.observedGaps != 0 {
		t.Errorf("cursor is %+v, want the whole history", w.cursor)
	}
}

func TestHistoryThatStaysMissingIsAGap(t *testing.T) {
	t.Parallel()
	tests := map[string]func(w *fixture, s solana.Signature){
		"it is not listed": func(w *fixture, s solana.Signature) { w.unlisted[s] = true },
		"it is not known":  func(w *fixture, s solana.Signature) { w.unknown[s] = true },
	}
	for name, hide := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t)
			w.fund(3, 1e9)
			r := w.reconciler(nil)
			w.reconcile(r)
			w.transfer(5)
			for range 3 { // in slots of their own
				hide(w, w.transfer(uint64(6+len(w.payments))))
			}
			w.transfer(20)
			hide(w, w.transfer(21)) // in the same slot as one that is known
			w.transfer(21)
			w.transfer(22)
			for range 3 {
				w.reconcile(r)
				w.now = w.now.Add(defaultGapTimeout / 3)
			}
			if len(w.entries) != 2 || w.observedGaps != 0 {
				t.Fatalf("before patience ends there are %d entries and %d gaps, want 2 and none", len(w.entries), w.observedGaps)
			}
			w.reconcile(r)
			const each = transactRent + 5010
			if c := w.cursor; c.BalanceAfter != w.lamports || c.Slot != 22 || c.Gaps != 2 || c.Missing != -4*each || w.observedGaps != 2 {
				t.Errorf("cursor is %+v after %d gaps, want two gaps of %d in all, up to %d lamports", c, w.observedGaps, -4*each, w.lamports)
			}
			if !w.cursor.CheckedAt.Equal(w.now) {
				t.Errorf("it was checked at %s, want now", w.cursor.CheckedAt)
			}
			w.wantLogged(map[string]int{"does not add up": 1, "gap in a fee payer's history skipped": 2, "fee payer accounting recomputed": 1})

			// The next gap has to wait as long.
			hide(w, w.transfer(30))
			w.transfer(31)
			w.reconcile(r)
			if w.cursor.Slot != 22 {
				t.Error("the next gap was not waited for")
			}
		})
	}
}

func TestTheLedgerStartsWhereHistoryStarts(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.unlisted[w.fund(3, 1e9)] = true
	w.unknown[w.transfer(4)] = true
	w.transfer(5)
	w.transfer(6)
	r := w.reconciler(nil)
	w.reconcile(r)
	if w.cursor != nil {
		t.Error("the ledger has begun, and what it lacks was asked for once")
	}
	w.now = w.now.Add(defaultGapTimeout)
	w.reconcile(r)
	const each = transactRent + 5010
	if c := w.cursor; c.Opening != 1e9-each || c.BalanceAfter != w.lamports || c.Gaps != 0 || len(w.entries) != 2 {
		t.Errorf("cursor is %+v with %d entries, want it opened at %d with 2", c, len(w.entries), int(1e9-each))
	}
}

func TestAnErrorOfOnePayerDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.fund(3, 1e9)
	r := w.reconciler(func(o *ReconcilerOptions) { o.Payers = []solana.PublicKey{{9}, payerKey}; o.Chain = failingChain{w} })
	if err := r.Reconcile(t.Context()); !errors.Is(err, errDown) {
		t.Errorf("error is %v, want the first payer's", err)
	}
	w.wantWholeHistory()
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
		"no payer":          func(o *ReconcilerOptions) { o.Payers = nil },
		"no store":          func(o *ReconcilerOptions) { o.Store = nil },
		"no chain":          func(o *ReconcilerOptions) { o.Chain = nil },
		"no observer":       func(o *ReconcilerOptions) { o.Observer = nil },
		"no logger":         func(o *ReconcilerOptions) { o.Log = nil },
		"no clock":          func(o *ReconcilerOptions) { o.Now = nil },
		"negative payments": func(o *ReconcilerOptions) { o.Payments = -1 },
		"negative patience": func(o *ReconcilerOptions) { o.GapTimeout = -1 },
	} {
		o := full
		change(&o)
		if r, err := NewReconciler(o); err == nil || r != nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

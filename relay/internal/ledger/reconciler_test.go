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

// world is a payer's history, a ledger of it, and all that can go wrong in between.
type world struct {
	*testing.T
	now time.Time
	log strings.Builder

	mu       sync.Mutex
	payments []*onchain.Payment // in the order in which they landed
	lamports uint64
	ours     map[solana.Signature]Attempt

	hidden map[solana.Signature]bool // listed by no endpoint
	lost   map[solana.Signature]bool // listed, but no endpoint has it
	down   error
	broken map[solana.Signature]error // one payment cannot be asked for now
	lists  int
	asked  int
	// forgetful calls answer as an endpoint that does not know the signature to start before.
	forgetful int
	// boundless endpoints go on beyond the signature to end at.
	boundless bool

	cursor  *Cursor
	entries []Entry
	writes  int
	failing error // of the next write

	seen []Kind
	gaps int
}

func newWorld(t *testing.T) *world {
	return &world{
		T: t, now: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), ours: map[solana.Signature]Attempt{},
		hidden: map[solana.Signature]bool{}, lost: map[solana.Signature]bool{}, broken: map[solana.Signature]error{},
	}
}

// land adds a transaction that changes the payer's lamports.
func (w *world) land(slot uint64, change int64, feePayer solana.PublicKey) solana.Signature {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.payments) + 1
	p := &onchain.Payment{
		Signature: solana.Signature{byte(n), byte(n >> 8), byte(n >> 16)}, Slot: slot, At: w.now, FeePayer: feePayer,
		Before: w.lamports, After: uint64(int64(w.lamports) + change),
	}
	if feePayer == us {
		p.Fee, p.SignatureFees = 5010, 5000
		p.After -= 5010
	}
	w.lamports = p.After
	w.payments = append(w.payments, p)
	return p.Signature
}

func (w *world) fund(slot, lamports uint64) solana.Signature {
	return w.land(slot, int64(lamports), somebody)
}

// transfer is one of the relay's own.
func (w *world) transfer(slot uint64) solana.Signature {
	signature := w.land(slot, -transactRent, us)
	w.ours[signature] = Attempt{Submission: uuid.New(), Kind: shieldpool.KindTransfer}
	return signature
}

func (w *world) SignaturesFor(_ context.Context, address solana.PublicKey, c onchain.Commitment, before, until solana.Signature, limit int) ([]onchain.SignatureInfo, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lists++
	if address != us || c != onchain.Finalized || limit != pageSize {
		w.Errorf("history of %s at %s by %d was asked for", address, c, limit)
	}
	if w.down != nil {
		return nil, w.down
	}
	if !before.IsZero() && w.forgetful > 0 {
		w.forgetful--
		return nil, nil
	}
	var out []onchain.SignatureInfo
	started := before.IsZero()
	for _, p := range slices.Backward(w.payments) {
		switch {
		case p.Signature == before:
			started = true
		case p.Signature == until && !w.boundless:
			return out, nil
		case started && !w.hidden[p.Signature] && len(out) < limit:
			out = append(out, onchain.SignatureInfo{Signature: p.Signature, Slot: p.Slot, Failed: p.Failed})
		}
	}
	return out, nil
}

func (w *world) Payment(_ context.Context, signature solana.Signature, account solana.PublicKey) (*onchain.Payment, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	if account != us {
		w.Errorf("the payment of %s was asked for", account)
	}
	if err := w.broken[signature]; err != nil {
		return nil, err
	}
	for _, p := range w.payments {
		if p.Signature == signature && !w.lost[signature] {
			return p, nil
		}
	}
	return nil, nil //nolint:nilnil // as the interface says
}

func (w *world) Cursor(context.Context, solana.PublicKey) (*Cursor, error) {
	if w.cursor == nil {
		return nil, nil //nolint:nilnil // as the interface says
	}
	c := *w.cursor
	return &c, nil
}

func (w *world) Attempts(_ context.Context, signatures []solana.Signature) (map[solana.Signature]Attempt, error) {
	found := maps.Clone(w.ours)
	maps.DeleteFunc(found, func(s solana.Signature, _ Attempt) bool { return !slices.Contains(signatures, s) })
	return found, nil
}

func (w *world) Append(_ context.Context, from *Cursor, to Cursor, entries []Entry) error {
	w.writes++
	if err := w.failing; err != nil {
		w.failing = nil
		return err
	}
	if (from == nil) != (w.cursor == nil) || from != nil && from.Slot != w.cursor.Slot {
		return ErrMoved
	}
	for _, e := range entries {
		if slices.ContainsFunc(w.entries, func(old Entry) bool { return old.Signature == e.Signature }) {
			w.Errorf("entry %s is written twice", e.Signature)
		}
	}
	w.cursor, w.entries = &to, append(w.entries, entries...)
	return nil
}

func (w *world) Entered(k Kind, _ Amounts) { w.seen = append(w.seen, k) }

func (w *world) Gap() { w.gaps++ }

func (w *world) reconciler(change func(*ReconcilerOptions)) *Reconciler {
	w.Helper()
	o := ReconcilerOptions{
		Payers: []solana.PublicKey{us}, Store: w, Chain: w, Observer: w, Now: func() time.Time { return w.now },
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

func (w *world) pass(r *Reconciler) {
	w.Helper()
	if err := r.Pass(w.Context()); err != nil {
		w.Fatal(err)
	}
}

// wantAll checks that the ledger has the whole history, and that it adds up.
func (w *world) wantAll() {
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

func (w *world) wantLogged(counts map[string]int) {
	w.Helper()
	for text, want := range counts {
		if got := strings.Count(w.log.String(), text); got != want {
			w.Errorf("%q is logged %d times, want %d:\n%s", text, got, want, w.log.String())
		}
	}
}

func TestTheLedgerFollowsAPayer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.reconciler(nil)
	w.pass(r)
	if w.cursor != nil {
		t.Error("a payer without a history has a cursor")
	}
	w.fund(3, 1e9)
	w.transfer(5)
	w.transfer(5)
	w.pass(r)
	w.wantAll()
	if c := w.cursor; c.Opening != 0 || c.Slot != 5 || !c.CheckedAt.Equal(w.now) {
		t.Errorf("cursor is %+v, want slot 5, opened at 0 and checked now", c)
	}
	w.now = w.now.Add(30 * time.Second)
	asked := w.asked
	w.pass(r)
	if w.asked != asked || !w.cursor.CheckedAt.Equal(w.now) {
		t.Errorf("with nothing new %d payments are read, and it was checked at %s", w.asked-asked, w.cursor.CheckedAt)
	}
	w.land(7, -100, us)                         // signed with our key, not by the relay
	w.land(8, 0, somebody)                      // a mention of our address
	w.payments = w.payments[:len(w.payments)-1] // which leaves no entry, below
	mention := w.land(8, 0, somebody)
	w.transfer(9)
	w.pass(r)
	w.payments = slices.DeleteFunc(w.payments, func(p *onchain.Payment) bool { return p.Signature == mention })
	w.wantAll()
	if diff := cmp.Diff([]Kind{KindReceived, KindTransfer, KindTransfer, KindUnknown, KindTransfer}, w.seen); diff != "" {
		t.Errorf("observed kinds differ (-want +got):\n%s", diff)
	}
	w.wantLogged(map[string]int{"fee payer accounting initialised": 1, "is not in the database": 1, "lamports received": 1, "gap": 0})
}

func TestAnotherProcessGoesOnWhereTheLastStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund(3, 1e9)
	first, second := w.reconciler(nil), w.reconciler(nil)
	w.pass(first)
	w.transfer(5)
	w.pass(second)
	w.transfer(6)
	w.pass(first)
	w.wantAll()
	// Both have read the same: the one that writes last changes nothing.
	w.transfer(7)
	w.failing = ErrMoved
	if err := first.Pass(t.Context()); !errors.Is(err, ErrMoved) {
		t.Errorf("error is %v, want ErrMoved", err)
	}
	w.pass(second)
	w.pass(first)
	w.wantAll()
}

func TestALongHistoryIsReadInBoundedSteps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund(1, 1e15)
	for i := range 3*pageSize + 500 {
		w.transfer(uint64(2 + i/7)) // seven a slot
	}
	r := w.reconciler(func(o *ReconcilerOptions) { o.Payments = 1000 })
	for pass := 1; len(w.entries) < len(w.payments); pass++ {
		asked := w.asked
		w.pass(r)
		if n := w.asked - asked; n > 1000+6 || pass > 4 {
			t.Fatalf("pass %d reads %d payments, want at most 1000 and the rest of a slot in each of four", pass, n)
		}
		if done := len(w.entries) == len(w.payments); done == w.cursor.CheckedAt.IsZero() {
			t.Errorf("after pass %d the ledger was checked at %s", pass, w.cursor.CheckedAt)
		}
	}
	w.wantAll()
	if w.lists > 8 {
		t.Errorf("history was listed with %d calls, want it listed once", w.lists)
	}
}

// Upkeep cancels a pass that takes too long: what it has read must stay, or no
// pass would make progress.
func TestAPassThatTimesOutMakesProgress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund(1, 1e15)
	for i := range 3 * stepSize {
		w.transfer(uint64(2 + i))
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := w.reconciler(func(o *ReconcilerOptions) {
		d := dying{w, stepSize + stepSize/2, cancel}
		o.Chain, o.Store, o.Parallel = d, d, 1
	})
	if err := r.Pass(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want that the pass was ended", err)
	}
	if got := len(w.entries); got != stepSize {
		t.Errorf("%d entries were written, want the first step's %d", got, stepSize)
	}
	w.pass(r)
	w.wantAll()
}

// dying ends the pass after some payments.
type dying struct {
	*world
	after  int
	cancel func()
}

func (d dying) Payment(ctx context.Context, signature solana.Signature, account solana.PublicKey) (*onchain.Payment, error) {
	p, err := d.world.Payment(ctx, signature, account)
	if d.asked == d.after {
		d.cancel()
	}
	if ctx.Err() != nil {
		return nil, &onchain.Unavailable{Method: "getTransaction", Kind: onchain.KindCancelled, Err: ctx.Err()}
	}
	return p, err
}

func (d dying) Attempts(ctx context.Context, signatures []solana.Signature) (map[solana.Signature]Attempt, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return d.world.Attempts(ctx, signatures)
}

func TestHistoryBeyondTheBoundIsListedAgain(t *testing.T) {
	t.Parallel()
	tr := payerHistory{payer: us}
	total := maxListed + 2*pageSize
	for n := total; n > 0; n -= pageSize {
		page := make([]onchain.SignatureInfo, pageSize)
		for i := range page {
			page[i] = onchain.SignatureInfo{Signature: solana.Signature{byte(n - i), byte((n - i) >> 8), byte((n - i) >> 16)}, Slot: uint64(n-i) / 3}
		}
		tr.walk(page, nil)
	}
	tr.walk(nil, nil)
	if !tr.walk(nil, nil) || !tr.truncated || len(tr.found) > maxListed {
		t.Fatalf("%d signatures are kept, want at most %d and the rest cut", len(tr.found), maxListed)
	}
	newest := tr.found[len(tr.found)-1].Slot
	if n := len(slices.DeleteFunc(slices.Clone(tr.found), func(i onchain.SignatureInfo) bool { return i.Slot != newest })); n != 3 {
		t.Errorf("%d transactions of the newest slot are kept, want all 3", n)
	}
	if tr.found[0].Slot != 0 {
		t.Errorf("the oldest slot kept is %d, want 0", tr.found[0].Slot)
	}
	b := balance{upTo: newest}
	if tr.keep(&b, true) || tr.listed {
		t.Error("all counts as read, and the newest were cut")
	}
}

func TestFaultsOfEndpoints(t *testing.T) {
	t.Parallel()
	down := &onchain.Unavailable{Method: "getSignaturesForAddress", Kind: onchain.KindTimeout}
	tests := map[string]struct {
		wrong, right func(w *world, newest solana.Signature)
		wantErr      bool
		wantEntries  int // after the pass in which it is wrong, of 6
	}{
		"history cannot be listed": {
			wrong: func(w *world, _ solana.Signature) { w.down = down }, right: func(w *world, _ solana.Signature) { w.down = nil },
			wantErr: true, wantEntries: 3,
		},
		"a payment cannot be read": {
			wrong:   func(w *world, s solana.Signature) { w.broken[s] = down },
			right:   func(w *world, s solana.Signature) { delete(w.broken, s) },
			wantErr: true, wantEntries: 4,
		},
		"a payment is not known": {
			wrong:       func(w *world, s solana.Signature) { w.lost[s] = true },
			right:       func(w *world, s solana.Signature) { delete(w.lost, s) },
			wantEntries: 4,
		},
		"a payment is of a kind that no endpoint reads": {
			wrong: func(w *world, s solana.Signature) {
				w.broken[s] = &onchain.RPCError{Method: "getTransaction", Code: -32015}
			},
			right:       func(w *world, s solana.Signature) { delete(w.broken, s) },
			wantEntries: 4,
		},
		"a transaction is not listed": {
			wrong:       func(w *world, s solana.Signature) { w.hidden[s] = true },
			right:       func(w *world, s solana.Signature) { delete(w.hidden, s) },
			wantEntries: 4,
		},
		"the write fails": {
			wrong:   func(w *world, _ solana.Signature) { w.failing = errDown },
			right:   func(*world, solana.Signature) {},
			wantErr: true, wantEntries: 3,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.fund(3, 1e9)
			w.transfer(4)
			w.transfer(5)
			r := w.reconciler(nil)
			w.pass(r)
			checked := w.now
			w.now = w.now.Add(time.Minute)
			w.transfer(6)
			bad := w.transfer(7)
			w.transfer(8)
			test.wrong(w, bad)
			if err := r.Pass(t.Context()); (err != nil) != test.wantErr {
				t.Errorf("error is %v", err)
			} else if err != nil && !strings.Contains(err.Error(), us.String()) {
				t.Errorf("error %v does not name the payer", err)
			}
			if doubted := strings.Contains(w.log.String(), "does not add up"); doubted == test.wantErr {
				t.Errorf("doubt is logged: %v; an error says nothing about history", doubted)
			}
			if len(w.entries) != test.wantEntries || !w.cursor.CheckedAt.Equal(checked) {
				t.Errorf("%d entries, checked at %s; want %d, and nothing checked since", len(w.entries), w.cursor.CheckedAt, test.wantEntries)
			}
			test.right(w, bad)
			w.pass(r)
			w.wantAll()
			if !w.cursor.CheckedAt.Equal(w.now) || w.gaps != 0 || w.cursor.Gaps != 0 {
				t.Errorf("cursor is %+v, want it checked, without a gap", w.cursor)
			}
		})
	}
}

// An endpoint that does not know the signature to start before answers with
// nothing: the payer's history must not begin there.
func TestAnEndpointThatForgetsDoesNotEndHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund(1, 1e15)
	for i := range pageSize + 10 {
		w.transfer(uint64(2 + i))
	}
	w.forgetful = 1
	w.pass(w.reconciler(nil))
	w.wantAll()
	if w.cursor.Opening != 0 {
		t.Errorf("the ledger opens at %d lamports, want 0", w.cursor.Opening)
	}
}

func TestAnEndpointThatGoesOnBeyondTheCursorIsNotFollowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund(1, 1e15)
	for i := range 3 * pageSize {
		w.transfer(uint64(2 + i))
	}
	r := w.reconciler(func(o *ReconcilerOptions) { o.Payments = 4 * pageSize })
	w.pass(r)
	w.transfer(1 << 40)
	w.boundless = true
	lists, asked := w.lists, w.asked
	w.pass(r)
	w.wantAll()
	if w.lists != lists+1 || w.asked != asked+1 {
		t.Errorf("for one new transaction there are %d pages and %d payments read, want 1 of each", w.lists-lists, w.asked-asked)
	}
}

func TestUnwrittenHistoryIsReadAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund(3, 1e9)
	w.transfer(4)
	w.transfer(5)
	r := w.reconciler(func(o *ReconcilerOptions) { o.Payments = 1 })
	w.failing = errDown
	if err := r.Pass(t.Context()); !errors.Is(err, errDown) {
		t.Errorf("error is %v, want the database's", err)
	}
	for range 3 {
		w.pass(r)
	}
	w.wantAll()
	if w.cursor.Opening != 0 || w.gaps != 0 {
		t.Errorf("cursor is %+v, want the whole history", w.cursor)
	}
}

func TestHistoryThatStaysMissingIsAGap(t *testing.T) {
	t.Parallel()
	tests := map[string]func(w *world, s solana.Signature){
		"it is not listed": func(w *world, s solana.Signature) { w.hidden[s] = true },
		"it is not known":  func(w *world, s solana.Signature) { w.lost[s] = true },
	}
	for name, hide := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.fund(3, 1e9)
			r := w.reconciler(nil)
			w.pass(r)
			w.transfer(5)
			for range 3 { // in slots of their own
				hide(w, w.transfer(uint64(6+len(w.payments))))
			}
			w.transfer(20)
			hide(w, w.transfer(21)) // in the same slot as one that is known
			w.transfer(21)
			w.transfer(22)
			for range 3 {
				w.pass(r)
				w.now = w.now.Add(defaultPatience / 3)
			}
			if len(w.entries) != 2 || w.gaps != 0 {
				t.Fatalf("before patience ends there are %d entries and %d gaps, want 2 and none", len(w.entries), w.gaps)
			}
			w.pass(r)
			const each = transactRent + 5010
			if c := w.cursor; c.BalanceAfter != w.lamports || c.Slot != 22 || c.Gaps != 2 || c.Missing != -4*each || w.gaps != 2 {
				t.Errorf("cursor is %+v after %d gaps, want two gaps of %d in all, up to %d lamports", c, w.gaps, -4*each, w.lamports)
			}
			if !w.cursor.CheckedAt.Equal(w.now) {
				t.Errorf("it was checked at %s, want now", w.cursor.CheckedAt)
			}
			w.wantLogged(map[string]int{"does not add up": 1, "gap in a fee payer's history skipped": 2, "fee payer accounting recomputed": 1})

			// The next gap has to wait as long.
			hide(w, w.transfer(30))
			w.transfer(31)
			w.pass(r)
			if w.cursor.Slot != 22 {
				t.Error("the next gap was not waited for")
			}
		})
	}
}

func TestALedgerBeginsWhereHistoryDoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hidden[w.fund(3, 1e9)] = true
	w.lost[w.transfer(4)] = true
	w.transfer(5)
	w.transfer(6)
	r := w.reconciler(nil)
	w.pass(r)
	if w.cursor != nil {
		t.Error("the ledger has begun, and what it lacks was asked for once")
	}
	w.now = w.now.Add(defaultPatience)
	w.pass(r)
	const each = transactRent + 5010
	if c := w.cursor; c.Opening != 1e9-each || c.BalanceAfter != w.lamports || c.Gaps != 0 || len(w.entries) != 2 {
		t.Errorf("cursor is %+v with %d entries, want it opened at %d with 2", c, len(w.entries), int(1e9-each))
	}
}

func TestOnePayersTroubleIsNotTheOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund(3, 1e9)
	r := w.reconciler(func(o *ReconcilerOptions) { o.Payers = []solana.PublicKey{{9}, us}; o.Chain = picky{w} })
	if err := r.Pass(t.Context()); !errors.Is(err, errDown) {
		t.Errorf("error is %v, want the first payer's", err)
	}
	w.wantAll()
}

// picky fails for the first payer.
type picky struct{ *world }

func (p picky) SignaturesFor(ctx context.Context, a solana.PublicKey, c onchain.Commitment, before, until solana.Signature, limit int) ([]onchain.SignatureInfo, error) {
	if a != us {
		return nil, errDown
	}
	return p.world.SignaturesFor(ctx, a, c, before, until, limit)
}

func TestNewReconcilerNamesMissingOptions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	full := ReconcilerOptions{Payers: []solana.PublicKey{us}, Store: w, Chain: w, Observer: w, Log: slog.New(slog.DiscardHandler), Now: time.Now}
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

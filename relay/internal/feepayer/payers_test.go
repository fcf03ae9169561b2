package feepayer

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/refusal"
)

// wallets is a BalanceReader whose balances a test sets.
type wallets struct {
	mu       sync.Mutex
	lamports []uint64
	slot     uint64
	err      error
	// next are the answers to the next calls, before the values above are used.
	next  []answer
	reads int
	delay time.Duration
}

type answer struct {
	lamports []uint64
	slot     uint64
	err      error
}

func (w *wallets) set(slot uint64, err error, lamports ...uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lamports, w.slot, w.err = lamports, slot, err
}

func (w *wallets) queue(answers ...answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next = append(w.next, answers...)
}

func (w *wallets) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reads
}

func (w *wallets) Balances(context.Context, []solana.PublicKey) (lamports []uint64, slot uint64, err error) {
	w.mu.Lock()
	a := answer{w.lamports, w.slot, w.err}
	if len(w.next) > 0 {
		a, w.next = w.next[0], w.next[1:]
	}
	w.reads++
	delay := w.delay
	w.mu.Unlock()
	time.Sleep(delay) // virtual time: tests run in a synctest bubble
	return a.lamports, a.slot, a.err
}

func (w *wallets) HighestBalances(ctx context.Context, keys []solana.PublicKey) (lamports []uint64, slot uint64, err error) {
	return w.Balances(ctx, keys)
}

var errDown = errors.New("endpoint is down")

// newPayers makes a payer for each balance of w, with a minimum of 100.
func newPayers(t *testing.T, w *wallets, change func(*Options)) *Payers {
	t.Helper()
	o := Options{Balances: w, Log: slog.New(slog.DiscardHandler), Now: time.Now, MinBalance: 100, Interval: 10 * time.Second}
	for i := range w.lamports {
		o.Keys = append(o.Keys, keyFromSeed(t, byte(i+1)))
	}
	if change != nil {
		change(&o)
	}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func refresh(t *testing.T, p *Payers) {
	t.Helper()
	if err := p.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// pick returns the index of the picked payer.
func pick(t *testing.T, p *Payers, lamports uint64) int {
	t.Helper()
	payer, err := p.Pick(t.Context(), lamports, false)
	if err != nil {
		t.Fatal(err)
	}
	return indexOf(t, p, payer.PublicKey())
}

func indexOf(t *testing.T, p *Payers, key solana.PublicKey) int {
	t.Helper()
	for i, k := range p.Keys() {
		if k == key {
			return i
		}
	}
	t.Fatalf("%s is not a payer's key", key)
	return 0
}

func checkCode(t *testing.T, err error, want refusal.Code) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Errorf("error is %v, want none", err)
		}
		return
	}
	r, ok := refusal.As(err)
	if !ok || r.Code != want {
		t.Fatalf("error is %v, want refusal %s", err, want)
	}
	if r.RetryAfter <= 0 {
		t.Errorf("refusal %s has no Retry-After", want)
	}
}

// checkRefusal checks that Ready and Pick both refuse with the code; "" for no refusal.
func checkRefusal(t *testing.T, p *Payers, lamports uint64, want refusal.Code) {
	t.Helper()
	checkCode(t, p.Ready(t.Context(), lamports), want)
	payer, err := p.Pick(t.Context(), lamports, false)
	checkCode(t, err, want)
	if err == nil {
		p.Release(payer.PublicKey(), lamports)
	}
}

func TestReadingsAndRefusals(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		readings []answer // of one payer, a second apart; the last good one counts
		need     uint64
		want     refusal.Code
	}{
		"enough lamports":                             {readings: []answer{{lamports: []uint64{100}}}, need: 100},
		"below the minimum":                           {readings: []answer{{lamports: []uint64{99}}}, need: 1, want: refusal.FeePayerEmpty},
		"above the minimum, below the need":           {readings: []answer{{lamports: []uint64{150}}}, need: 151, want: refusal.FeePayerEmpty},
		"a wallet that does not exist":                {readings: []answer{{lamports: []uint64{0}}}, want: refusal.FeePayerEmpty},
		"never read":                                  {readings: []answer{{err: errDown}}, want: refusal.ChainUnavailable},
		"a failed read is not an empty wallet":        {readings: []answer{{lamports: []uint64{100}}, {err: errDown}}, need: 100},
		"a failed read does not fill a wallet":        {readings: []answer{{lamports: []uint64{99}}, {err: errDown}}, want: refusal.FeePayerEmpty},
		"funded later":                                {readings: []answer{{lamports: []uint64{0}, slot: 1}, {lamports: []uint64{100}, slot: 2}}, need: 100},
		"a reading of a lower slot is ignored":        {readings: []answer{{lamports: []uint64{100}, slot: 9}, {lamports: []uint64{0}, slot: 8}}, need: 100},
		"an answer with too many balances is ignored": {readings: []answer{{lamports: []uint64{100}}, {lamports: []uint64{0, 0}}}, need: 100},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wallets{lamports: []uint64{0}}
				p := newPayers(t, w, nil)
				for _, r := range test.readings {
					w.set(r.slot, r.err, r.lamports...)
					if err := p.Refresh(t.Context()); r.err != nil && !errors.Is(err, r.err) {
						t.Fatalf("refresh returned %v, want %v", err, r.err)
					}
					time.Sleep(minInterval)
				}
				checkRefusal(t, p, test.need, test.want)
			})
		})
	}
}

// TestWrongSlotIsIgnoredAfterAWhile: a single wrong slot far in the future must not make all later
// readings count as old.
func TestWrongSlotIsIgnoredAfterAWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wallets{lamports: []uint64{500}, slot: 1 << 60}
		p := newPayers(t, w, nil)
		refresh(t, p)
		w.set(10, nil, 400)
		time.Sleep(slotMaxAge - time.Second)
		refresh(t, p)
		if got := p.Balances()[0].Lamports; got != 500 {
			t.Errorf("balance is %d, want 500: the reading's slot is lower", got)
		}
		time.Sleep(2 * time.Second)
		refresh(t, p)
		if got := p.Balances()[0].Lamports; got != 400 {
			t.Errorf("balance is %d, want 400: the high slot was not reported again for two minutes", got)
		}
	})
}

func TestPickPrefersFewestInFlightThenHighestBalance(t *testing.T) {
	t.Parallel()
	w := &wallets{lamports: []uint64{1000, 3000, 2000, 99}}
	p := newPayers(t, w, nil)
	var got []int
	for range 6 {
		got = append(got, pick(t, p, 10))
	}
	if diff := cmp.Diff([]int{1, 2, 0, 1, 2, 0}, got); diff != "" {
		t.Errorf("picked payers differ (-want +got):\n%s", diff)
	}
	p.Release(p.Keys()[2], 10)
	if got := pick(t, p, 10); got != 2 {
		t.Errorf("payer %d is picked, want 2, which has the fewest attempts in flight", got)
	}
}

func TestTransactionsInFlightAreReserved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wallets{lamports: []uint64{1000, 400}}
		p := newPayers(t, w, nil)
		// 1000 lamports pay for three attempts of 300 and keep the minimum of 100; 400 pay for one.
		for i, want := range []int{0, 1, 0, 0} {
			if got := pick(t, p, 300); got != want {
				t.Fatalf("payer %d is picked for attempt %d, want %d", got, i, want)
			}
		}
		checkRefusal(t, p, 300, refusal.FeePayerEmpty)
		balances := p.Balances()
		if b := balances[0]; b.InFlight != 3 || b.Reserved != 900 || b.State != StateReady {
			t.Errorf("payer 0 is %+v, want 3 in flight, 900 reserved, and ready", b)
		}
		// Released lamports may have been spent: only a reading makes them available again.
		p.Release(p.Keys()[0], 300)
		checkRefusal(t, p, 300, refusal.FeePayerEmpty)
		time.Sleep(minInterval)
		w.set(1, nil, 700, 400)
		checkRefusal(t, p, 300, refusal.FeePayerEmpty)
		time.Sleep(minInterval)
		w.set(2, nil, 1000, 400) // the attempt expired without paying
		checkRefusal(t, p, 300, "")
	})
}

// TestReadingOmitsCostsReleasedDuringTheRead: a balance whose read began before an attempt ended
// does not show the attempt's cost.
func TestReadingOmitsCostsReleasedDuringTheRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wallets{lamports: []uint64{1000}, slot: 1}
		p := newPayers(t, w, nil)
		pick(t, p, 800)
		w.mu.Lock()
		w.delay = time.Second
		w.mu.Unlock()
		var group sync.WaitGroup
		group.Go(func() { refresh(t, p) })
		time.Sleep(time.Second / 2)
		p.Release(p.Keys()[0], 800)
		group.Wait()
		if p.canSpend(300) {
			t.Error("lamports that were released during the read can be spent again")
		}
		time.Sleep(time.Second)
		refresh(t, p)
		if !p.canSpend(300) {
			t.Error("released lamports still count as spent after a later reading")
		}
	})
}

func TestReleaseWithoutPickChangesNothing(t *testing.T) {
	t.Parallel()
	w := &wallets{lamports: []uint64{1000}}
	p := newPayers(t, w, nil)
	refresh(t, p)
	p.Release(p.Keys()[0], 500)
	p.Release(solana.PublicKey{9}, 500)
	p.MarkRefused(solana.PublicKey{9}, errDown)
	p.MarkWorking(solana.PublicKey{9})
	if got := p.Balances()[0]; got.InFlight != 0 || got.Reserved != 0 {
		t.Errorf("payer is %+v, want nothing in flight", got)
	}
	checkRefusal(t, p, 1000, "")
	if !p.Owns(p.Keys()[0]) || p.Owns(solana.PublicKey{9}) {
		t.Error("Owns is wrong for a payer's key or another key")
	}
}

func TestFallOfABalanceCountsOnceConfirmed(t *testing.T) {
	t.Parallel()
	zero, full, half := answer{lamports: []uint64{0}, slot: 2}, answer{lamports: []uint64{1000}, slot: 3}, answer{lamports: []uint64{500}, slot: 2}
	tests := map[string]struct {
		answers   []answer
		inFlight  uint64 // cost of the attempt in flight
		released  bool   // that attempt is released
		want      uint64
		wantReads int
	}{
		"one wrong answer":                           {answers: []answer{zero, full}, want: 1000, wantReads: 2},
		"the same answer twice":                      {answers: []answer{zero, zero}, want: 0, wantReads: 2},
		"no second answer":                           {answers: []answer{zero, {err: errDown}}, want: 1000, wantReads: 2},
		"a second answer from a node that is behind": {answers: []answer{zero, {lamports: []uint64{0}, slot: 0}}, want: 1000, wantReads: 2},
		"a fall that stays above the minimum":        {answers: []answer{half}, want: 500, wantReads: 1},
		"a fall that our own spending explains":      {answers: []answer{{lamports: []uint64{50}, slot: 2}}, inFlight: 950, want: 50, wantReads: 1},
		"a fall by more than what is in flight":      {answers: []answer{{lamports: []uint64{50}, slot: 2}, full}, inFlight: 900, want: 1000, wantReads: 2},
		"a fall that a released cost explains":       {answers: []answer{{lamports: []uint64{99}, slot: 2}}, inFlight: 901, released: true, want: 99, wantReads: 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wallets{lamports: []uint64{1000}, slot: 1}
				p := newPayers(t, w, nil)
				refresh(t, p)
				if test.inFlight > 0 {
					p.mu.Lock() // not with Pick, which would keep the minimum
					p.accounts[0].reserve(test.inFlight)
					p.mu.Unlock()
				}
				if test.released {
					p.Release(p.Keys()[0], test.inFlight)
				}
				time.Sleep(time.Second)
				before := w.count()
				w.queue(test.answers...)
				_ = p.Refresh(t.Context())
				if got := p.Balances()[0].Lamports; got != test.want {
					t.Errorf("balance is %d, want %d", got, test.want)
				}
				if got := w.count() - before; got != test.wantReads {
					t.Errorf("%d reads were made, want %d", got, test.wantReads)
				}
			})
		})
	}
}

// TestOneWrongAnswerDoesNotCountWhileAnotherPayerIsDry: while a payer is dry every read asks two endpoints.
// They may be the same node, so an unexplained fall is still read again.
func TestOneWrongAnswerDoesNotCountWhileAnotherPayerIsDry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wallets{lamports: []uint64{1000, 0}, slot: 1}
		p := newPayers(t, w, nil)
		refresh(t, p)
		w.queue(answer{lamports: []uint64{0, 0}, slot: 2})
		refresh(t, p)
		if got := p.Balances(); got[0].State != StateReady || got[1].State != StateDry {
			t.Errorf("payers are %+v, want the first ready and the second dry", got)
		}
	})
}

// TestUnconfirmedFallIsReadAgainSoon: when an unconfirmed answer cannot be read again at once, the
// next read confirms it.
func TestUnconfirmedFallIsReadAgainSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wallets{lamports: []uint64{1000}, slot: 1}
		p := newPayers(t, w, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() { p.Run(ctx) })
		synctest.Wait()
		w.queue(answer{lamports: []uint64{0}, slot: 2}, answer{err: errDown})
		w.set(3, nil, 0)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := p.Balances()[0].Lamports; got != 1000 {
			t.Errorf("balance is %d after one answer of 0, want 1000", got)
		}
		time.Sleep(unusableInterval)
		synctest.Wait()
		if got := p.Balances()[0]; got.Lamports != 0 || got.State != StateDry {
			t.Errorf("payer is %+v after the second answer of 0, want it dry", got)
		}
		cancel()
		group.Wait()
	})
}

func TestDryPayerIsNotUsedUntilItIsFunded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		funded := 0
		w := &wallets{lamports: []uint64{1000, 1000}, slot: 1}
		p := newPayers(t, w, func(o *Options) {
			o.Log = slog.New(slog.NewTextHandler(&out, nil))
			o.Funded = func() { funded++ }
		})
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() { p.Run(ctx) })
		synctest.Wait()
		step := func(slot uint64, wait time.Duration, lamports ...uint64) {
			w.set(slot, nil, lamports...)
			time.Sleep(wait)
			synctest.Wait()
		}
		step(2, 10*time.Second, 50, 1000)
		for range 3 {
			if got := pick(t, p, 10); got != 1 {
				t.Errorf("payer %d is picked, want 1: the other one is dry", got)
			}
		}
		step(3, unusableInterval, 50, 60)
		checkRefusal(t, p, 1, refusal.FeePayerEmpty)
		step(4, unusableInterval, 50, 60) // no change, so nothing is logged
		if funded != 0 {
			t.Errorf("Funded was called %d times before a payer was funded", funded)
		}
		step(5, unusableInterval, 1000, 60)
		checkRefusal(t, p, 10, "")
		if funded != 1 {
			t.Errorf("Funded was called %d times, want once", funded)
		}
		cancel()
		group.Wait()
		for text, want := range map[string]int{
			"fee payer fell below its minimum and is not used":           2,
			"payer=" + p.Keys()[0].String() + " lamports=50 minimum=100": 1,
			"payer=" + p.Keys()[1].String() + " lamports=60 minimum=100": 1,
			"no usable fee payer":               1,
			"fee payer usable again":            1,
			"funded fee payer is used again":    1,
			"reading fee payer balances failed": 0,
		} {
			if got := strings.Count(out.String(), text); got != want {
				t.Errorf("%q is logged %d times, want %d:\n%s", text, got, want, out.String())
			}
		}
	})
}

func TestCauseOfRefusalNamesEveryPayer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wallets{lamports: []uint64{60, 1000}, slot: 1}
		p := newPayers(t, w, nil)
		refresh(t, p)
		time.Sleep(3 * time.Second)
		w.set(0, errDown)
		r, ok := refusal.As(p.Ready(t.Context(), 5000))
		if !ok {
			t.Fatal("Ready accepts a cost that no payer can pay")
		}
		want := "5000 lamports are needed; " + p.Keys()[0].String() + " held 60 lamports 3s ago; " + p.Keys()[1].String() + " held 1000 lamports 3s ago"
		if r.Cause == nil || r.Cause.Error() != want {
			t.Errorf("cause is %v, want %s", r.Cause, want)
		}
		for _, key := range p.Keys() {
			if strings.Contains(r.Message, key.String()) {
				t.Error("the message for clients has a payer's address")
			}
		}
	})
}

func TestReadsOnDemandAreRateLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wallets{lamports: []uint64{0, 0}}
		p := newPayers(t, w, nil)
		refresh(t, p) // two reads, because the first answer is unconfirmed
		before := w.count()
		for range 50 {
			time.Sleep(minInterval / 10)
			checkCode(t, p.Ready(t.Context(), 1), refusal.FeePayerEmpty)
		}
		if got := w.count() - before; got != 5 {
			t.Errorf("%d reads in five seconds, want 5", got)
		}
	})
}

func TestConcurrentReadsAreShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wallets{lamports: []uint64{100}, delay: time.Second}
		p := newPayers(t, w, nil)
		shortCtx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		var group sync.WaitGroup
		group.Go(func() {
			// The first caller stops waiting; the others must still get their answer.
			if err := p.Refresh(shortCtx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the first caller gets %v, want DeadlineExceeded", err)
			}
		})
		synctest.Wait()
		for range 20 {
			group.Go(func() { checkCode(t, p.Ready(t.Context(), 100), "") })
		}
		group.Wait()
		if w.count() != 1 {
			t.Errorf("%d reads, want 1 for all callers", w.count())
		}
	})
}

// TestHangingReadEndsAfterTimeout: a reader that never answers must not block later reads.
func TestHangingReadEndsAfterTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var reader hangingReader
		p, err := New(Options{Keys: []txmgr.Payer{keyFromSeed(t, 1)}, Balances: &reader, Log: slog.New(slog.DiscardHandler), Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := p.Refresh(t.Context()); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != readTimeout {
			t.Errorf("the read ends after %s with error %v, want DeadlineExceeded after %s", time.Since(began), err, readTimeout)
		}
	})
}

type hangingReader struct{}

func (hangingReader) Balances(ctx context.Context, _ []solana.PublicKey) (lamports []uint64, slot uint64, err error) {
	<-ctx.Done()
	return nil, 0, ctx.Err()
}

func (h hangingReader) HighestBalances(ctx context.Context, keys []solana.PublicKey) (lamports []uint64, slot uint64, err error) {
	return h.Balances(ctx, keys)
}

func TestRunKeepsTheLastGoodBalanceWithItsAge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		w := &wallets{lamports: []uint64{500}, slot: 7}
		p := newPayers(t, w, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&out, nil)) })
		if got := p.Balances()[0]; got.State != StateUnknown || !got.At.IsZero() || got.Age != 0 {
			t.Errorf("before the first read the payer is %+v, want it unknown", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() { p.Run(ctx) })
		synctest.Wait()
		read := time.Now()
		w.set(0, errDown)
		time.Sleep(time.Minute)
		synctest.Wait()
		want := []Balance{{Payer: p.Keys()[0], State: StateReady, Lamports: 500, Slot: 7, At: read, Age: time.Minute}}
		if diff := cmp.Diff(want, p.Balances()); diff != "" {
			t.Errorf("balance differs (-want +got):\n%s", diff)
		}
		w.set(8, nil, 500)
		time.Sleep(time.Minute)
		cancel()
		group.Wait()
		for _, text := range []string{"reading fee payer balances failed", "fee payer balances readable again"} {
			if got := strings.Count(out.String(), text); got != 1 {
				t.Errorf("%q is logged %d times, want once:\n%s", text, got, out.String())
			}
		}
	})
}

func TestNewRefusesInvalidOptions(t *testing.T) {
	t.Parallel()
	full := func() Options {
		return Options{Keys: []txmgr.Payer{keyFromSeed(t, 1), keyFromSeed(t, 2)}, Balances: new(wallets), Log: slog.New(slog.DiscardHandler), Now: time.Now}
	}
	tests := map[string]struct{ change func(*Options) }{
		"no key":              {func(o *Options) { o.Keys = nil }},
		"a nil key":           {func(o *Options) { o.Keys = append(o.Keys, nil) }},
		"the same key twice":  {func(o *Options) { o.Keys = append(o.Keys, keyFromSeed(t, 1)) }},
		"too many keys":       {func(o *Options) { o.Keys = make([]txmgr.Payer, MaxKeys+1) }},
		"no reader":           {func(o *Options) { o.Balances = nil }},
		"no logger":           {func(o *Options) { o.Log = nil }},
		"no clock":            {func(o *Options) { o.Now = nil }},
		"a negative interval": {func(o *Options) { o.Interval = -1 }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := full()
			test.change(&o)
			if p, err := New(o); err == nil || p != nil {
				t.Errorf("options with %s are accepted", name)
			}
		})
	}
	if _, err := New(full()); err != nil {
		t.Errorf("full options are refused: %v", err)
	}
}

package feepayer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/refusal"
)

// wallet is a balance that a test changes under the watcher.
type wallet struct {
	mu       sync.Mutex
	lamports uint64
	slot     uint64
	err      error
	reads    int
	delay    time.Duration
}

func (w *wallet) set(lamports, slot uint64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lamports, w.slot, w.err = lamports, slot, err
}

func (w *wallet) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reads
}

func (w *wallet) Balance(context.Context, solana.PublicKey) (lamports, slot uint64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads++
	if w.delay > 0 {
		time.Sleep(w.delay) // virtual time: tests run in a synctest bubble
	}
	return w.lamports, w.slot, w.err
}

var errDown = errors.New("endpoint is down")

func newWatcher(t *testing.T, w *wallet, log *slog.Logger) *Watcher {
	t.Helper()
	watcher, err := NewWatcher(Options{Payer: solana.PublicKey{1}, Balances: w, Log: log, Now: time.Now, MinBalance: 100, Interval: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return watcher
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

func TestReady(t *testing.T) {
	t.Parallel()
	type reading struct {
		lamports, slot uint64
		err            error
	}
	tests := map[string]struct {
		readings []reading // the last one holds when Ready asks
		need     uint64
		want     refusal.Code
	}{
		"enough":                                        {readings: []reading{{lamports: 100}}, need: 100},
		"below the minimum":                             {readings: []reading{{lamports: 99}}, need: 1, want: refusal.FeePayerEmpty},
		"above the minimum, below the need":             {readings: []reading{{lamports: 150}}, need: 151, want: refusal.FeePayerEmpty},
		"a wallet that does not exist":                  {readings: []reading{{lamports: 0}}, want: refusal.FeePayerEmpty},
		"never read":                                    {readings: []reading{{err: errDown}}, want: refusal.ChainUnavailable},
		"a failed read is not an empty wallet":          {readings: []reading{{lamports: 100}, {err: errDown}}, need: 100},
		"a failed read does not fill a wallet":          {readings: []reading{{lamports: 99}, {err: errDown}}, want: refusal.FeePayerEmpty},
		"funded since":                                  {readings: []reading{{lamports: 0, slot: 1}, {lamports: 100, slot: 2}}, need: 100},
		"a node that is behind does not empty a wallet": {readings: []reading{{lamports: 100, slot: 9}, {lamports: 0, slot: 8}}, need: 100},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				account := new(wallet)
				w := newWatcher(t, account, slog.New(slog.DiscardHandler))
				for _, r := range test.readings {
					account.set(r.lamports, r.slot, r.err)
					if err := w.Refresh(t.Context()); !errors.Is(err, r.err) {
						t.Fatalf("refresh gives %v, want %v", err, r.err)
					}
					time.Sleep(minInterval)
				}
				checkCode(t, w.Ready(t.Context(), test.need), test.want)
			})
		})
	}
}

func TestReadyKnowsOfTheFirstBalanceWithoutRun(t *testing.T) {
	t.Parallel()
	account := &wallet{lamports: 100}
	w := newWatcher(t, account, slog.New(slog.DiscardHandler))
	checkCode(t, w.Ready(t.Context(), 100), "")
	checkCode(t, w.Ready(t.Context(), 100), "")
	if account.reads != 1 {
		t.Errorf("%d reads, want 1: a good balance asks for no other", account.reads)
	}
}

func TestEmptyWalletAsksAtMostOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		account := new(wallet)
		w := newWatcher(t, account, slog.New(slog.DiscardHandler))
		for range 50 {
			checkCode(t, w.Ready(t.Context(), 1), refusal.FeePayerEmpty)
			time.Sleep(minInterval / 10)
		}
		if account.count() != 5 {
			t.Errorf("%d reads in five seconds, want 5", account.count())
		}
	})
}

func TestConcurrentReadsAreShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		account := &wallet{lamports: 100, delay: time.Second}
		w := newWatcher(t, account, slog.New(slog.DiscardHandler))
		impatient, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		var group sync.WaitGroup
		group.Go(func() {
			// The first to ask gives up; the others must get their answer all the same.
			if err := w.Refresh(impatient); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("impatient caller gets %v, want its deadline", err)
			}
		})
		synctest.Wait()
		for range 20 {
			group.Go(func() { checkCode(t, w.Ready(t.Context(), 100), "") })
		}
		group.Wait()
		if account.count() != 1 {
			t.Errorf("%d reads, want 1 for all", account.count())
		}
	})
}

func TestRunKeepsTheLastGoodValueWithItsAge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		account := &wallet{lamports: 500, slot: 7}
		w := newWatcher(t, account, slog.New(slog.NewTextHandler(&out, nil)))
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() { w.Run(ctx) })
		synctest.Wait()
		if _, ok := w.Balance(); !ok {
			t.Fatal("Run has not read at once")
		}
		account.set(0, 0, errDown)
		time.Sleep(time.Minute)
		synctest.Wait()
		b, ok := w.Balance()
		if diff := cmp.Diff(Balance{Lamports: 500, Slot: 7, At: time.Now().Add(-time.Minute)}, b); !ok || diff != "" {
			t.Errorf("balance differs (-want +got):\n%s", diff)
		}
		if got := strings.Count(out.String(), "Could not read"); got != 1 {
			t.Errorf("the failure is logged %d times, want once", got)
		}
		account.set(50, 8, nil)
		time.Sleep(time.Minute)
		account.set(100, 9, nil)
		time.Sleep(time.Minute)
		cancel()
		group.Wait()
		for _, want := range []string{"Read fee payer balance again", "fell below its minimum", "was funded"} {
			if got := strings.Count(out.String(), want); got != 1 {
				t.Errorf("%q is logged %d times, want once:\n%s", want, got, out.String())
			}
		}
	})
}

func TestObserveIsToldOfGoodReadingsAlone(t *testing.T) {
	t.Parallel()
	account := &wallet{err: errDown}
	var seen []uint64
	w, err := NewWatcher(Options{
		Payer: solana.PublicKey{1}, Balances: account, Log: slog.New(slog.DiscardHandler), Now: time.Now,
		Observe: func(b Balance) { seen = append(seen, b.Lamports) },
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []error{errDown, nil, errDown} {
		account.set(42, 1, r)
		_ = w.Refresh(t.Context())
	}
	if diff := cmp.Diff([]uint64{42}, seen); diff != "" {
		t.Errorf("observed differs (-want +got):\n%s", diff)
	}
}

func TestNewWatcherNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	full := Options{Payer: solana.PublicKey{1}, Balances: new(wallet), Log: slog.New(slog.DiscardHandler), Now: time.Now}
	tests := map[string]struct{ change func(*Options) }{
		"no payer":            {func(o *Options) { o.Payer = solana.PublicKey{} }},
		"no reader":           {func(o *Options) { o.Balances = nil }},
		"no logger":           {func(o *Options) { o.Log = nil }},
		"no clock":            {func(o *Options) { o.Now = nil }},
		"a negative interval": {func(o *Options) { o.Interval = -1 }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := full
			test.change(&o)
			if w, err := NewWatcher(o); err == nil || w != nil {
				t.Errorf("%s is taken", name)
			}
		})
	}
	if _, err := NewWatcher(full); err != nil {
		t.Error(fmt.Errorf("full options are refused: %w", err))
	}
}

package spendcap

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/refusal"
)

// fakeStore is the fleet's spending, set by a test.
type fakeStore struct {
	mu    sync.Mutex
	spent []record
	err   error
	reads int
	delay time.Duration
}

type record struct {
	at       time.Time
	transfer bool
	lamports int64
}

func (s *fakeStore) add(transfer bool, lamports int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spent = append(s.spent, record{time.Now().Truncate(BucketWidth), transfer, lamports})
}

func (s *fakeStore) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *fakeStore) SpendBuckets(_ context.Context, age time.Duration) ([]Bucket, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if s.delay > 0 {
		time.Sleep(s.delay)
	}
	var out []Bucket
	for _, r := range s.spent {
		if old := time.Since(r.at); old < age {
			out = append(out, Bucket{old, r.transfer, r.lamports})
		}
	}
	return out, s.err
}

var errDown = errors.New("database is down")

func newCaps(t *testing.T, s *fakeStore, l Limits, log *slog.Logger) *Caps {
	t.Helper()
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c, err := New(Options{Limits: l, Store: s, Log: log, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// checkRefused checks that err is spend_cap_reached with part in its message.
func checkRefused(t *testing.T, err error, part string) refusal.Refusal {
	t.Helper()
	r, ok := refusal.As(err)
	if !ok || r.Code != refusal.SpendCapReached || !strings.Contains(r.Message, part) {
		t.Fatalf("error is %v, want the refusal spend_cap_reached with %q", err, part)
	}
	if r.RetryAfter < minRetry || r.RetryAfter > maxRetry {
		t.Errorf("Retry-After is %s, want %s to %s", r.RetryAfter, minRetry, maxRetry)
	}
	return *r
}

// startAttempt makes an attempt, which must be allowed.
func startAttempt(t *testing.T, c *Caps, transfer bool, lamports uint64) (done func(recorded bool)) {
	t.Helper()
	done, err := c.Allow(t.Context(), transfer, lamports)
	if err != nil {
		t.Errorf("%d lamports are refused: %v", lamports, err)
		return func(bool) {}
	}
	return done
}

// recordAttempt makes an attempt, which must be allowed, and records it at once.
func recordAttempt(t *testing.T, c *Caps, transfer bool, lamports uint64) {
	t.Helper()
	startAttempt(t, c, transfer, lamports)(true)
}

// allowError is the error of Allow for an attempt.
func allowError(t *testing.T, c *Caps, transfer bool, lamports uint64) error {
	t.Helper()
	_, err := c.Allow(t.Context(), transfer, lamports)
	return err
}

// TestOwnTransfersCountImmediately: the fleet's sum does not show them yet.
func TestOwnTransfersCountImmediately(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCaps(t, &fakeStore{}, Limits{TransferDay: 100}, nil)
		recordAttempt(t, c, false, 1000)
		recordAttempt(t, c, true, 60)
		checkRefused(t, allowError(t, c, true, 41), "on transfers")
		recordAttempt(t, c, true, 40)
		checkRefused(t, c.Ready(t.Context(), true, 1), "on transfers")
		recordAttempt(t, c, false, 1000)
	})
}

func TestEachCapCoversItsKinds(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		limits   Limits
		spent    []record // at is set to now minus ago
		ago      []time.Duration
		transfer bool
		want     string // a part of the refusal's message; empty for none
	}{
		"without caps the database is not read":                           {spent: []record{{lamports: 1 << 60}}, ago: []time.Duration{0}},
		"the hour cap is reached":                                         {limits: Limits{Hour: 100}, spent: []record{{lamports: 91}}, ago: []time.Duration{0}, want: "in an hour"},
		"the hour cap is met exactly":                                     {limits: Limits{Hour: 100}, spent: []record{{lamports: 90}}, ago: []time.Duration{0}},
		"spending of the previous hour does not count":                    {limits: Limits{Hour: 100}, spent: []record{{lamports: 91}}, ago: []time.Duration{66 * time.Minute}},
		"spending of the previous hour counts for the day cap":            {limits: Limits{Hour: 100, Day: 100}, spent: []record{{lamports: 91}}, ago: []time.Duration{66 * time.Minute}, want: "in a day:"},
		"spending of the previous day does not count":                     {limits: Limits{Day: 100, TransferDay: 100}, spent: []record{{lamports: 91, transfer: true}}, ago: []time.Duration{25 * time.Hour}, transfer: true},
		"the transfer cap is reached":                                     {limits: Limits{TransferDay: 100}, spent: []record{{lamports: 91, transfer: true}}, ago: []time.Duration{0}, transfer: true, want: "on transfers"},
		"the transfer cap does not apply to a withdrawal":                 {limits: Limits{TransferDay: 100}, spent: []record{{lamports: 91, transfer: true}}, ago: []time.Duration{0}},
		"withdrawals do not count for the transfer cap":                   {limits: Limits{TransferDay: 100}, spent: []record{{lamports: 91}}, ago: []time.Duration{0}, transfer: true},
		"transfers count for the other caps":                              {limits: Limits{Hour: 100}, spent: []record{{lamports: 91, transfer: true}}, ago: []time.Duration{0}, want: "in an hour"},
		"released spending does not count":                                {limits: Limits{Hour: 100}, spent: []record{{lamports: 91}, {lamports: -91}}, ago: []time.Duration{10 * time.Minute, 0}},
		"an attempt above the cap is refused even without other spending": {limits: Limits{Hour: 9}, want: "in an hour"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := new(fakeStore)
				for i, r := range test.spent {
					r.at = time.Now().Add(-test.ago[i])
					s.spent = append(s.spent, r)
				}
				c := newCaps(t, s, test.limits, nil)
				allowed := func(_ context.Context, transfer bool, lamports uint64) error {
					return allowError(t, c, transfer, lamports)
				}
				for _, check := range []func(context.Context, bool, uint64) error{c.Ready, allowed} {
					if err := check(t.Context(), test.transfer, 10); test.want == "" && err != nil {
						t.Errorf("10 lamports are refused: %v", err)
					} else if test.want != "" {
						checkRefused(t, err, test.want)
					}
				}
				if test.limits == (Limits{}) && s.reads > 0 {
					t.Error("the database was read without a cap")
				}
			})
		})
	}
}

func TestOwnSpendingCountsImmediatelyAndOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := new(fakeStore)
		c := newCaps(t, s, Limits{Hour: 100}, nil)
		recordAttempt(t, c, false, 60)
		checkRefused(t, allowError(t, c, false, 60), "hour")
		if s.reads != 1 {
			t.Errorf("%d reads within two seconds, want 1", s.reads)
		}
		s.add(false, 60) // its attempt is recorded
		time.Sleep(sumAge)
		recordAttempt(t, c, false, 40) // counted once
		time.Sleep(sumAge)
		recordAttempt(t, c, false, 10)
		time.Sleep(sumAge - recordDelay/2)
		recordAttempt(t, c, false, 30) // recorded late: the next sum must not forget it
		time.Sleep(recordDelay / 2)
		checkRefused(t, allowError(t, c, false, 11), "hour")
		if s.reads != 4 {
			t.Errorf("%d reads, want 4", s.reads)
		}
		time.Sleep(sumAge)
		recordAttempt(t, c, false, 40) // the late attempt was never recorded, so it was never sent
		if err := c.Ready(t.Context(), false, 1); err == nil {
			t.Error("Ready ignores what Allow counted")
		}
	})
}

// A request that is only being checked may be refused, and then others are allowed at once.
func TestWhatIsPendingRefusesForAMoment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCaps(t, new(fakeStore), Limits{Day: 100}, nil)
		done := startAttempt(t, c, false, 60)
		if r := checkRefused(t, allowError(t, c, false, 60), "day"); r.RetryAfter != minRetry {
			t.Errorf("Retry-After is %s, want %s, because the first attempt may be abandoned", r.RetryAfter, minRetry)
		}
		done(false)
		startAttempt(t, c, false, 60)(true)
	})
}

// TestAttemptCountsUntilRecorded: the simulation of an attempt may take seconds, and no
// sum shows the attempt before it is recorded.
func TestAttemptCountsUntilRecorded(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		recorded  bool
		remaining uint64 // what may be spent after the next reads of the sum
	}{
		"a recorded attempt counts once":      {recorded: true, remaining: 40},
		"an abandoned attempt does not count": {remaining: 100},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := new(fakeStore)
				c := newCaps(t, s, Limits{Hour: 100}, nil)
				done := startAttempt(t, c, false, 60)
				for range 5 { // reads of a sum without the attempt
					time.Sleep(sumAge)
					checkRefused(t, allowError(t, c, false, 41), "hour")
				}
				if s.reads != 6 {
					t.Errorf("%d reads, want one every two seconds", s.reads)
				}
				if test.recorded {
					s.add(false, 60)
				}
				done(test.recorded)
				done(!test.recorded) // changes nothing
				if test.recorded {
					checkRefused(t, allowError(t, c, false, 41), "hour") // the sum is older than the record
				}
				time.Sleep(recordDelay + sumAge)
				checkRefused(t, allowError(t, c, false, test.remaining+1), "hour")
				startAttempt(t, c, false, test.remaining)(false)
				startAttempt(t, c, false, test.remaining)
			})
		})
	}
}

func TestReadyCountsNothing(t *testing.T) {
	t.Parallel()
	c := newCaps(t, new(fakeStore), Limits{Hour: 100}, nil)
	for range 5 {
		if err := c.Ready(t.Context(), false, 60); err != nil {
			t.Errorf("60 lamports of 100 are refused: %v", err)
		}
	}
}

func TestDatabaseErrorAllowsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &fakeStore{err: errDown}
		c := newCaps(t, s, Limits{Hour: 100}, nil)
		if err := allowError(t, c, false, 1); !errors.Is(err, errDown) {
			t.Errorf("without a sum the error is %v, want errDown", err)
		}
		s.fail(nil)
		recordAttempt(t, c, false, 1)
		s.fail(errDown)
		recordAttempt(t, c, false, 1) // the sum is still fresh
		time.Sleep(sumAge)
		if err := allowError(t, c, false, 1); !errors.Is(err, errDown) {
			t.Errorf("with an old sum the error is %v, want errDown", err)
		}
	})
}

func TestRetryAfterIsWhenSpendingLeavesWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := new(fakeStore)
		c := newCaps(t, s, Limits{Hour: 100, Day: 150}, nil)
		s.add(false, 50)
		time.Sleep(20 * time.Minute)
		s.add(false, 50)
		r := checkRefused(t, allowError(t, c, false, 10), "hour")
		if want := hour + BucketWidth - 20*time.Minute; r.RetryAfter != want {
			t.Errorf("Retry-After is %s, want %s", r.RetryAfter, want)
		}
		time.Sleep(r.RetryAfter)
		recordAttempt(t, c, false, 10)
		time.Sleep(70 * time.Minute)
		s.add(false, 50)
		r = checkRefused(t, allowError(t, c, false, 10), "in a day")
		if r.RetryAfter != maxRetry {
			t.Errorf("Retry-After is %s, want no more than %s", r.RetryAfter, maxRetry)
		}
		for _, figure := range []string{"10", "50", "100", "150"} {
			if strings.Contains(r.Message, figure) {
				t.Errorf("the message %q contains an amount", r.Message)
			}
		}
	})
}

func TestReachedCapIsLoggedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		s := new(fakeStore)
		c := newCaps(t, s, Limits{Hour: 100}, slog.New(slog.NewTextHandler(&out, nil)))
		s.add(false, 95)
		for range 20 {
			checkRefused(t, allowError(t, c, false, 10), "hour")
			recordAttempt(t, c, false, 1) // a smaller attempt that fits does not end the refusal
			time.Sleep(sumAge)
		}
		usage, err := c.Usage(t.Context())
		want := []Usage{{Cap: "hour", Limit: 100, Spent: 95, Reached: true}, {Cap: "day", Spent: 95}, {Cap: "transfers_day"}}
		if diff := cmp.Diff(want, usage); diff != "" || err != nil {
			t.Errorf("usage differs (-want +got): %v\n%s", err, diff)
		}
		time.Sleep(2 * hour)
		recordAttempt(t, c, false, 10)
		recordAttempt(t, c, false, 10)
		for _, text := range []string{"spend cap reached", "spending below the cap again"} {
			if got := strings.Count(out.String(), text); got != 1 {
				t.Errorf("%q is logged %d times, want once:\n%s", text, got, out.String())
			}
		}
	})
}

func TestSumsAreShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &fakeStore{delay: time.Second}
		c := newCaps(t, s, Limits{Hour: 1000}, nil)
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() { recordAttempt(t, c, false, 1) })
		}
		group.Wait()
		if s.reads != 1 {
			t.Errorf("%d reads, want 1 shared by all attempts", s.reads)
		}
	})
}

func TestNewCapsNamesMissingOptions(t *testing.T) {
	t.Parallel()
	full := Options{Store: new(fakeStore), Log: slog.New(slog.DiscardHandler), Now: time.Now}
	for name, change := range map[string]func(*Options){
		"no store":  func(o *Options) { o.Store = nil },
		"no logger": func(o *Options) { o.Log = nil },
		"no clock":  func(o *Options) { o.Now = nil },
	} {
		o := full
		change(&o)
		if c, err := New(o); err == nil || c != nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

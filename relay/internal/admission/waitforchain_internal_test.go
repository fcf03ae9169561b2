package admission

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// unavailable is the refusal of a request because of a call that failed.
func unavailable(cause error) error {
	return refusal.New(refusal.ChainUnavailable, "the relay cannot read the chain").Because(cause)
}

func failedCall(kind string, retryAfter time.Duration) error {
	return unavailable(&onchain.Unavailable{Method: "getMultipleAccounts", Kind: kind, RetryAfter: retryAfter})
}

const callTimeout = 4 * time.Second

func newWaits(random float64) *chainWaits {
	return &chainWaits{now: time.Now, random: func() float64 { return random }, callTimeout: callTimeout, closing: make(chan struct{})}
}

// The times are those of the tries, after the first one.
func TestWhenARequestIsTriedAgain(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	limited := failedCall(onchain.KindRateLimited, 0)
	invalid := refusal.New(refusal.NullifierSpent, "spent")
	for name, tt := range map[string]struct {
		wait   time.Duration
		errs   []error // of the tries; the last one stands for all further tries
		random float64
		want   []time.Duration
	}{
		"the first try succeeds":                      {wait: 15 * time.Second, errs: []error{nil}},
		"two tries are rate limited":                  {wait: 15 * time.Second, errs: []error{limited, limited, nil}, want: []time.Duration{250 * ms, 750 * ms}},
		"with jitter":                                 {wait: 15 * time.Second, errs: []error{limited, limited, nil}, random: 0.5, want: []time.Duration{312500 * time.Microsecond, 937500 * time.Microsecond}},
		"the pauses stop to grow":                     {wait: 7 * time.Second, errs: []error{limited}, want: []time.Duration{250 * ms, 750 * ms, 1750 * ms, 3750 * ms, 5750 * ms, 7000 * ms}},
		"the breakers open in a moment":               {wait: 15 * time.Second, errs: []error{failedCall(onchain.KindBreakerOpen, 900*ms), nil}, want: []time.Duration{900 * ms}},
		"a breaker lets a call through very soon":     {wait: 15 * time.Second, errs: []error{failedCall(onchain.KindBreakerOpen, 160*ms), nil}, want: []time.Duration{250 * ms}},
		"the endpoint asks for a pause within wait":   {wait: 15 * time.Second, errs: []error{failedCall(onchain.KindRateLimited, 10*time.Second), nil}, want: []time.Duration{10 * time.Second}},
		"the endpoint asks for a pause beyond wait":   {wait: 15 * time.Second, errs: []error{failedCall(onchain.KindRateLimited, 15*time.Second)}},
		"the chain has not been reached yet":          {wait: 15 * time.Second, errs: []error{unavailable(nil), nil}, want: []time.Duration{250 * ms}},
		"the endpoints contradict each other":         {wait: 15 * time.Second, errs: []error{unavailable(fmt.Errorf("%w: two trees", onchain.ErrUnavailable)), nil}, want: []time.Duration{250 * ms}},
		"without a wait":                              {errs: []error{limited}},
		"the request is refused for good after a try": {wait: 15 * time.Second, errs: []error{limited, invalid}, want: []time.Duration{250 * ms}},
		"the request is refused for good":             {wait: 15 * time.Second, errs: []error{invalid}},
		"the pool is busy":                            {wait: 15 * time.Second, errs: []error{refusal.New(refusal.PoolBusy, "busy")}},
		"an error of the relay's own":                 {wait: 15 * time.Second, errs: []error{errors.New("a bug")}},
		"the database does not answer":                {wait: 15 * time.Second, errs: []error{refusal.New(refusal.DatabaseUnavailable, "no answer")}},
		"the database, met on the way to the chain":   {wait: 15 * time.Second, errs: []error{unavailable(refusal.New(refusal.DatabaseUnavailable, "no answer"))}},
		"an error of the relay's own, as a refusal":   {wait: 15 * time.Second, errs: []error{unavailable(errors.New("a bug"))}},
		"a simulation that fails":                     {wait: 15 * time.Second, errs: []error{unavailable(&shieldpool.TransactionError{Kind: "AccountInUse"})}},
		"the endpoint's URL is wrong":                 {wait: 15 * time.Second, errs: []error{failedCall(onchain.KindRejected, 0)}},
		"the endpoint lacks the method":               {wait: 15 * time.Second, errs: []error{unavailable(&onchain.RPCError{Code: -32601})}},
		"a processed root is confirmed":               {wait: 15 * time.Second, errs: []error{unavailable(errRootNotConfirmed), nil}, want: []time.Duration{250 * ms}},
		"a processed root, without a wait":            {errs: []error{unavailable(errRootNotConfirmed)}, want: []time.Duration{250 * ms, 750 * ms, 1750 * ms, 2000 * ms}},
		"the request's own time is over":              {wait: 15 * time.Second, errs: []error{unavailable(context.DeadlineExceeded)}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, began := newWaits(tt.random), time.Now()
				tries := 0
				var got []time.Duration
				err := w.retry(t.Context(), tt.wait, func(context.Context) error {
					if tries++; tries > 1 {
						got = append(got, time.Since(began))
					}
					return tt.errs[min(tries, len(tt.errs))-1]
				})
				if last := tt.errs[len(tt.errs)-1]; !errors.Is(err, last) {
					t.Errorf("error is %v, want the last try's %v", err, last)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("times of further tries differ (-want +got):\n%s", diff)
				}
				if w.waiting != 0 {
					t.Errorf("%d requests wait after the end, want 0", w.waiting)
				}
			})
		})
	}
}

// hangingRead ends with its context, as the client of the chain does.
func hangingRead(ctx context.Context) error {
	<-ctx.Done()
	return unavailable(&onchain.Unavailable{Method: "getMultipleAccounts", Kind: onchain.KindCancelled, Err: ctx.Err()})
}

// A try that hangs takes a part of the client's wait, and no more than the client has.
func TestATryThatHangsIsRepeated(t *testing.T) {
	t.Parallel()
	spent := refusal.New(refusal.NullifierSpent, "spent")
	database := func(ctx context.Context) error {
		<-ctx.Done()
		return refusal.New(refusal.DatabaseUnavailable, "no answer").Because(ctx.Err())
	}
	for name, tt := range map[string]struct {
		wait, client time.Duration // client is how long the client stays
		first        func(context.Context) error
		wantTries    int
		wantTook     time.Duration
	}{
		"within the wait":                 {15 * time.Second, time.Hour, hangingRead, 2, callTimeout + retryDelay},
		"longer than the wait":            {time.Second, time.Hour, hangingRead, 1, callTimeout},
		"without a wait":                  {0, time.Hour, hangingRead, 1, callTimeout},
		"the client's time ends the try":  {15 * time.Second, time.Second, hangingRead, 1, time.Second},
		"the database hangs, not a chain": {15 * time.Second, time.Hour, database, 1, callTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tt.client)
				defer cancel()
				began, tries := time.Now(), 0
				err := newWaits(0).retry(ctx, tt.wait, func(ctx context.Context) error {
					if tries++; tries == 1 {
						return tt.first(ctx)
					}
					return spent
				})
				if took := time.Since(began); err == nil || tries != tt.wantTries || took != tt.wantTook {
					t.Errorf("%d tries took %s and end with %v, want %d in %s", tries, took, err, tt.wantTries, tt.wantTook)
				}
			})
		})
	}
}

func TestWhatEndsAWaitForTheChain(t *testing.T) {
	t.Parallel()
	limited := failedCall(onchain.KindRateLimited, 0)
	for name, tt := range map[string]struct {
		end  func(w *Admission, leave func())
		want error
	}{
		"the client leaves": {func(_ *Admission, leave func()) { leave() }, context.Canceled},
		"the relay stops":   {func(a *Admission, _ func()) { a.Close(); a.Close() }, limited},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &Admission{waits: chainWaits{now: time.Now, random: newWaits(0).random, callTimeout: callTimeout, closing: make(chan struct{})}}
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				ended := make(chan error, 1)
				go func() { ended <- a.waits.retry(ctx, time.Hour, func(context.Context) error { return limited }) }()
				synctest.Wait()
				if n := a.Waiting(); n != 1 {
					t.Fatalf("%d requests wait, want 1", n)
				}
				began := time.Now()
				tt.end(a, leave)
				if err := <-ended; !errors.Is(err, tt.want) {
					t.Errorf("the wait ends with %v, want %v", err, tt.want)
				}
				if took := time.Since(began); took != 0 {
					t.Errorf("the wait ends %s later, want at once", took)
				}
			})
		})
	}
}

// A flood of requests while the chain is down does not pile up.
func TestRequestsThatWaitAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, began := newWaits(0), time.Now()
		limited := failedCall(onchain.KindRateLimited, 0)
		ended := make(chan error, maxWaiting)
		for range maxWaiting {
			go func() { ended <- w.retry(t.Context(), time.Minute, func(context.Context) error { return limited }) }()
		}
		synctest.Wait()
		if err := w.retry(t.Context(), time.Minute, func(context.Context) error { return limited }); !errors.Is(err, limited) || time.Since(began) != 0 {
			t.Errorf("one request more is answered %v after %s, want the refusal at once", err, time.Since(began))
		}
		for range maxWaiting {
			if err := <-ended; !errors.Is(err, limited) {
				t.Errorf("a request that waited is answered %v, want its last refusal", err)
			}
		}
		tries := 0
		if err := w.retry(t.Context(), time.Minute, func(context.Context) error {
			if tries++; tries == 1 {
				return limited
			}
			return nil
		}); err != nil {
			t.Errorf("a request after the flood is answered %v, want that it waits and is accepted", err)
		}
	})
}

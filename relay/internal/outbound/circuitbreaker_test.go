package outbound

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

const half = 0.5

// newBreaker makes a breaker that first opens for firstDelay.
func newBreaker(t *testing.T, o BreakerOptions) (*Breaker, *[]State) {
	t.Helper()
	o.Now, o.Rand = time.Now, func() float64 { return half }
	changes := new([]State)
	last := Closed
	o.Changed = func(from, to State) {
		if from != last {
			t.Errorf("the change is from %s, want from %s", from, last)
		}
		last = to
		*changes = append(*changes, to)
	}
	b, err := NewBreaker(o)
	if err != nil {
		t.Fatal(err)
	}
	return b, changes
}

// call makes a call if the breaker permits it.
func call(b *Breaker, o Outcome) bool {
	p, ok := b.Try()
	if ok {
		p.Done(o)
	}
	return ok
}

func repeat(b *Breaker, n int, o Outcome) {
	for range n {
		call(b, o)
	}
}

// firstDelay is the default delay of 500 ms with jitter of 15 %.
const firstDelay = 575 * time.Millisecond

func TestWhenBreakerOpens(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		calls func(b *Breaker)
		want  State
	}{
		"after five bad calls in a row": {func(b *Breaker) { repeat(b, 5, Bad) }, Open},
		"not after four":                {func(b *Breaker) { repeat(b, 4, Bad) }, Closed},
		"not after good calls in between": {func(b *Breaker) {
			repeat(b, 4, Bad)
			repeat(b, 9, Good)
			repeat(b, 4, Bad)
		}, Closed},
		"when half of the last ten calls are bad": {func(b *Breaker) {
			for range 5 {
				call(b, Good)
				call(b, Bad)
			}
		}, Open},
		"not after nine calls, which are too few": {func(b *Breaker) {
			for range 4 {
				call(b, Bad)
				call(b, Good)
			}
			call(b, Bad)
		}, Closed},
		"not after old failures": {func(b *Breaker) {
			repeat(b, 4, Bad)
			call(b, Good)
			repeat(b, 4, Bad)
			call(b, Good)
			time.Sleep(31 * time.Second)
			call(b, Bad)
		}, Closed},
		"not after reachable calls": {func(b *Breaker) { repeat(b, 100, Reachable) }, Closed},
		"not after cancelled calls": {func(b *Breaker) { repeat(b, 100, NoOutcome) }, Closed},
		"after bad calls with a cancelled one in between": {func(b *Breaker) {
			repeat(b, 3, Bad)
			call(b, NoOutcome)
			repeat(b, 2, Bad)
		}, Open},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, _ := newBreaker(t, BreakerOptions{})
				test.calls(b)
				if got := b.State(); got != test.want {
					t.Errorf("state is %s, want %s", got, test.want)
				}
			})
		})
	}
}

func TestOpenBreakerPermitsOneProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, changes := newBreaker(t, BreakerOptions{})
		repeat(b, 5, Bad)
		if call(b, Good) {
			t.Error("an open breaker permits a call")
		}
		if got := b.Next(); got != firstDelay {
			t.Errorf("the probe is permitted in %s, want %s", got, firstDelay)
		}
		time.Sleep(firstDelay - time.Nanosecond)
		if call(b, Good) {
			t.Error("the breaker permits a call before the delay is over")
		}
		time.Sleep(time.Nanosecond)
		probe, ok := b.Try()
		if !ok || b.State() != HalfOpen {
			t.Fatalf("the probe is permitted: %v, state is %s; want true and half_open", ok, b.State())
		}
		if call(b, Good) {
			t.Error("the breaker permits a second call during the probe")
		}
		probe.Done(Good)
		if !call(b, Good) {
			t.Error("the breaker permits no call after a good probe")
		}
		repeat(b, 4, Bad)
		if b.State() != Closed {
			t.Error("failures from before the probe still count")
		}
		if diff := cmp.Diff([]State{Open, HalfOpen, Closed}, *changes); diff != "" {
			t.Errorf("changes differ (-want +got):\n%s", diff)
		}
	})
}

func TestProbeOutcomes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		outcome Outcome
		want    State
		wantIn  time.Duration
	}{
		"good: the breaker closes":                 {Good, Closed, 0},
		"reachable: the breaker closes":            {Reachable, Closed, 0},
		"bad: the breaker opens for twice as long": {Bad, Open, 2 * firstDelay},
		"no outcome: the next call is the probe":   {NoOutcome, Open, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, _ := newBreaker(t, BreakerOptions{})
				repeat(b, 5, Bad)
				time.Sleep(firstDelay)
				call(b, test.outcome)
				if got, in := b.State(), b.Next(); got != test.want || in != test.wantIn {
					t.Errorf("state is %s for %s, want %s for %s", got, in, test.want, test.wantIn)
				}
			})
		})
	}
}

func TestClosingResetsFailureCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := newBreaker(t, BreakerOptions{})
		repeat(b, 5, Bad)
		time.Sleep(firstDelay)
		call(b, Good)
		repeat(b, 4, Bad)
		if got := b.State(); got != Closed {
			t.Errorf("state is %s after four bad calls since the breaker closed, want closed", got)
		}
		call(b, Bad)
		if got := b.State(); got != Open {
			t.Errorf("state is %s after five bad calls since the breaker closed, want open", got)
		}
	})
}

func TestDelayGrowsUpToMaximum(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := newBreaker(t, BreakerOptions{})
		repeat(b, 5, Bad)
		var got []time.Duration
		for range 6 {
			got = append(got, b.Next())
			time.Sleep(b.Next())
			call(b, Bad)
		}
		want := []time.Duration{firstDelay, 2 * firstDelay, 4 * firstDelay, 8 * firstDelay, 5750 * time.Millisecond, 5750 * time.Millisecond}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("delays differ (-want +got):\n%s", diff)
		}
		time.Sleep(b.Next())
		call(b, Good)
		repeat(b, 5, Bad)
		if got := b.Next(); got != 5750*time.Millisecond {
			t.Errorf("the delay is %s after failures soon after a good probe, want the longest delay", got)
		}
		time.Sleep(b.Next())
		call(b, Good)
		time.Sleep(time.Minute)
		repeat(b, 5, Bad)
		if got := b.Next(); got != firstDelay {
			t.Errorf("the delay is %s after a minute without failures, want %s", got, firstDelay)
		}
	})
}

func TestForcedCalls(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		outcome Outcome
		want    State
	}{
		"a good call closes the breaker":     {Good, Closed},
		"a bad call does not close it":       {Bad, Open},
		"a reachable call does not close it": {Reachable, Open},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, _ := newBreaker(t, BreakerOptions{})
				before, _ := b.Try()
				repeat(b, 5, Bad)
				time.Sleep(time.Millisecond)
				before.Done(Good)
				if b.State() != Open {
					t.Error("a call that started before the breaker opened closed it")
				}
				in := b.Next()
				b.Force().Done(test.outcome)
				if got := b.State(); got != test.want {
					t.Errorf("state is %s, want %s", got, test.want)
				}
				if b.State() == Open && b.Next() != in {
					t.Errorf("the probe is permitted in %s, want %s as before", b.Next(), in)
				}
			})
		})
	}
}

func TestForceIsTheProbeWhenOneIsDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := newBreaker(t, BreakerOptions{})
		repeat(b, 5, Bad)
		time.Sleep(firstDelay)
		b.Force().Done(Reachable)
		if b.State() != Closed {
			t.Errorf("state is %s, want closed by the probe", b.State())
		}
	})
}

func TestPause(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		failures int
		d        time.Duration
		want     time.Duration
	}{
		"a closed breaker opens":                         {0, 3 * time.Second, 3 * time.Second},
		"an open breaker stays open for longer":          {5, 3 * time.Second, 3 * time.Second},
		"the pause is limited to the maximum":            {0, time.Hour, 10 * time.Second},
		"a pause shorter than the delay changes nothing": {5, time.Millisecond, firstDelay},
		"a pause of 0 does not open a closed breaker":    {0, 0, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, _ := newBreaker(t, BreakerOptions{})
				repeat(b, test.failures, Bad)
				b.Pause(test.d, 10*time.Second)
				if got := b.Next(); got != test.want || (b.State() == Closed) != (test.want == 0) {
					t.Errorf("state is %s and the next call permitted in %s, want in %s", b.State(), got, test.want)
				}
				time.Sleep(test.want)
				if !call(b, Good) || b.State() != Closed {
					t.Errorf("state is %s after the pause and a good call, want closed", b.State())
				}
			})
		})
	}
}

func TestNewBreakerRefusesInvalidOptions(t *testing.T) {
	t.Parallel()
	full := BreakerOptions{Now: time.Now, Rand: func() float64 { return 0 }}
	tests := map[string]func(*BreakerOptions){
		"no clock":                   func(o *BreakerOptions) { o.Now = nil },
		"no random numbers":          func(o *BreakerOptions) { o.Rand = nil },
		"a negative threshold":       func(o *BreakerOptions) { o.Consecutive = -1 },
		"a maximum below the delay":  func(o *BreakerOptions) { o.Delay, o.MaxDelay = 2, 1 },
		"a minimum above the window": func(o *BreakerOptions) { o.Window, o.MinCalls = 5, 6 },
	}
	for name, change := range tests {
		o := full
		change(&o)
		if b, err := NewBreaker(o); err == nil || b != nil {
			t.Errorf("options with %s are accepted", name)
		}
	}
}

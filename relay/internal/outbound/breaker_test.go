package outbound

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

const half = 0.5

// newBreaker makes a breaker with a delay of 575 ms after its first opening: jitter of 15
// %.
func newBreaker(t *testing.T, o BreakerOptions) (*Breaker, *[]State) {
	t.Helper()
	o.Now, o.Rand = time.Now, func() float64 { return half }
	changes := new([]State)
	last := Closed
	o.Changed = func(from, to State) {
		if from != last {
			t.Errorf("changed from %s, which was %s", from, last)
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

const firstDelay = 575 * time.Millisecond

func TestBreakerOpens(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		calls func(b *Breaker)
		want  State
	}{
		"after five bad calls in a row": {func(b *Breaker) { repeat(b, 5, Bad) }, Open},
		"not after four":                {func(b *Breaker) { repeat(b, 4, Bad) }, Closed},
		"not when a good one comes between": {func(b *Breaker) {
			repeat(b, 4, Bad)
			repeat(b, 9, Good)
			repeat(b, 4, Bad)
		}, Closed},
		"when half of the last ten are bad, never five in a row": {func(b *Breaker) {
			for range 5 {
				call(b, Good)
				call(b, Bad)
			}
		}, Open},
		"not when nine calls are too few to tell": {func(b *Breaker) {
			for range 4 {
				call(b, Bad)
				call(b, Good)
			}
			call(b, Bad)
		}, Closed},
		"not by failures of long ago": {func(b *Breaker) {
			repeat(b, 4, Bad)
			call(b, Good)
			repeat(b, 4, Bad)
			call(b, Good)
			time.Sleep(31 * time.Second)
			call(b, Bad)
		}, Closed},
		"not by answers that say nothing against it": {func(b *Breaker) { repeat(b, 100, Reachable) }, Closed},
		"not by callers who leave":                   {func(b *Breaker) { repeat(b, 100, NoOutcome) }, Closed},
		"though callers leave in between": {func(b *Breaker) {
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

func TestOpenBreakerLetsOneProbeThrough(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, changes := newBreaker(t, BreakerOptions{})
		repeat(b, 5, Bad)
		if call(b, Good) {
			t.Error("a call passes an open breaker")
		}
		if got := b.Next(); got != firstDelay {
			t.Errorf("the probe is due in %s, want %s", got, firstDelay)
		}
		time.Sleep(firstDelay - time.Nanosecond)
		if call(b, Good) {
			t.Error("a call passes before the delay is over")
		}
		time.Sleep(time.Nanosecond)
		probe, ok := b.Try()
		if !ok || b.State() != HalfOpen {
			t.Fatalf("the probe passes: %v, state %s; want it to pass, half open", ok, b.State())
		}
		if call(b, Good) {
			t.Error("a second call passes while the probe is under way")
		}
		probe.Done(Good)
		if !call(b, Good) {
			t.Error("no call passes after a good probe")
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

func TestProbes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		outcome Outcome
		want    State
		wantIn  time.Duration
	}{
		"a good one closes it":                      {Good, Closed, 0},
		"one that was answered closes it":           {Reachable, Closed, 0},
		"a bad one opens it for twice as long":      {Bad, Open, 2 * firstDelay},
		"one that said nothing is repeated at once": {NoOutcome, Open, 0},
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

func TestAClosedBreakerCountsAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := newBreaker(t, BreakerOptions{})
		repeat(b, 5, Bad)
		time.Sleep(firstDelay)
		call(b, Good)
		repeat(b, 4, Bad)
		if got := b.State(); got != Closed {
			t.Errorf("after four bad calls since it was closed it is %s, want closed", got)
		}
		call(b, Bad)
		if got := b.State(); got != Open {
			t.Errorf("after five bad calls since it was closed it is %s, want open", got)
		}
	})
}

func TestDelayGrowsUpToABound(t *testing.T) {
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
			t.Errorf("failing again right after the probe, it is left alone for %s, want the longest delay", got)
		}
		time.Sleep(b.Next())
		call(b, Good)
		time.Sleep(time.Minute)
		repeat(b, 5, Bad)
		if got := b.Next(); got != firstDelay {
			t.Errorf("failing after a good minute, it is left alone for %s, want %s", got, firstDelay)
		}
	})
}

func TestForcedCalls(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		outcome Outcome
		want    State
	}{
		"a good one closes the breaker":          {Good, Closed},
		"a bad one leaves it open":               {Bad, Open},
		"one that was answered tells too little": {Reachable, Open},
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
					t.Error("a call from before it opened closes the breaker")
				}
				in := b.Next()
				b.Force().Done(test.outcome)
				if got := b.State(); got != test.want {
					t.Errorf("state is %s, want %s", got, test.want)
				}
				if b.State() == Open && b.Next() != in {
					t.Errorf("the probe is due in %s, want %s as before", b.Next(), in)
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
		bad  int
		d    time.Duration
		want time.Duration
	}{
		"a closed breaker opens for it":          {0, 3 * time.Second, 3 * time.Second},
		"an open one stays open for it":          {5, 3 * time.Second, 3 * time.Second},
		"not for longer than the bound":          {0, time.Hour, 10 * time.Second},
		"a shorter one changes nothing":          {5, time.Millisecond, firstDelay},
		"none leaves a closed breaker as it was": {0, 0, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, _ := newBreaker(t, BreakerOptions{})
				repeat(b, test.bad, Bad)
				b.Pause(test.d, 10*time.Second)
				if got := b.Next(); got != test.want || (b.State() == Closed) != (test.want == 0) {
					t.Errorf("%s for %s, want %s", b.State(), got, test.want)
				}
				time.Sleep(test.want)
				if !call(b, Good) || b.State() != Closed {
					t.Errorf("state is %s after the pause and a good call, want closed", b.State())
				}
			})
		})
	}
}

func TestNewBreakerRefuses(t *testing.T) {
	t.Parallel()
	full := BreakerOptions{Now: time.Now, Rand: func() float64 { return 0 }}
	tests := map[string]func(*BreakerOptions){
		"no clock":                    func(o *BreakerOptions) { o.Now = nil },
		"no random numbers":           func(o *BreakerOptions) { o.Rand = nil },
		"a negative threshold":        func(o *BreakerOptions) { o.Consecutive = -1 },
		"a bound below the delay":     func(o *BreakerOptions) { o.Delay, o.MaxDelay = 2, 1 },
		"a minimum beyond the window": func(o *BreakerOptions) { o.Window, o.MinCalls = 5, 6 },
	}
	for name, change := range tests {
		o := full
		change(&o)
		if b, err := NewBreaker(o); err == nil || b != nil {
			t.Errorf("%s is taken", name)
		}
	}
}

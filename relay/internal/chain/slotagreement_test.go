package chain

import (
	"slices"
	"testing"
	"time"
)

// claims drives a slotAgreement by a clock: in every step, endpoint i answers from the slot that
// its function gives for the chain's true one.
type claims struct {
	t     *testing.T
	f     *slotAgreement
	now   time.Time
	truth float64 // slots since the start
	rate  float64 // slots a second
}

func newClaims(t *testing.T, n int, rate float64) *claims {
	return &claims{t: t, f: newSlotAgreement(n, 10), now: time.Unix(1000, 0), truth: 1_000_000, rate: rate}
}

// pass lets time pass in steps, in each of which every endpoint answers, and
// counts the answers that were not possible.
func (c *claims) pass(d, step time.Duration, at ...func(truth float64) float64) (impossible []int) {
	impossible = make([]int, len(at))
	for end := c.now.Add(d); c.now.Before(end); {
		c.now = c.now.Add(step)
		c.truth += c.rate * step.Seconds()
		for i, slot := range at {
			if slot != nil && !c.f.Observe(i, uint64(slot(c.truth)), c.f.Best(c.now), c.now) {
				impossible[i]++
			}
		}
	}
	return impossible
}

func (c *claims) lag(i int) uint64 { lag, _ := c.f.Lag(i); return lag }

func honest(truth float64) float64 { return truth }

// agree is the reports of two honest endpoints.
var agree = []func(float64) float64{honest, honest}

func off(slots float64) func(float64) float64 {
	return func(truth float64) float64 { return truth + slots }
}

func TestTheChainHasPassedASlotThatIsFarBehindTheClock(t *testing.T) {
	t.Parallel()
	c := newClaims(t, 2, 2.5)
	if c.f.LongPassed(1, c.now) {
		t.Error("a slot is passed before anybody said where the chain is")
	}
	c.pass(20*time.Second, 400*time.Millisecond, agree...)
	for behind, want := range map[float64]bool{0: false, 8: false, 13: true} {
		if got := c.f.LongPassed(uint64(c.truth-behind), c.now); got != want {
			t.Errorf("the chain has passed a slot that is %g behind: %v, want %v", behind, got, want)
		}
	}
	at := c.now
	c.pass(20*time.Second, 400*time.Millisecond, agree...)
	if c.f.LongPassed(uint64(c.truth-50), at) {
		t.Error("the chain had passed the slot at which it stood then")
	}
}

func TestAnUncorroboratedLeadDoesNotCount(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		rate           float64
		step           time.Duration
		at             []func(float64) float64
		wantImpossible bool
	}{
		"one of two, 100 slots ahead":                    {rate: 2.5, step: 500 * time.Millisecond, at: []func(float64) float64{off(100), honest}, wantImpossible: true},
		"one of two, 20 slots ahead":                     {rate: 2.5, step: 500 * time.Millisecond, at: []func(float64) float64{off(20), honest}},
		"one of two that are asked every five seconds":   {rate: 2.5, step: 5 * time.Second, at: []func(float64) float64{off(100), honest}, wantImpossible: true},
		"one of two on a chain of 20 ms slots":           {rate: 50, step: 500 * time.Millisecond, at: []func(float64) float64{off(1000), honest}, wantImpossible: true},
		"one of two at a slot that no chain will reach":  {rate: 2.5, step: time.Second, at: []func(float64) float64{off(1 << 60), honest}, wantImpossible: true},
		"one of three, 100 slots ahead":                  {rate: 2.5, step: 500 * time.Millisecond, at: []func(float64) float64{off(100), honest, off(-1)}, wantImpossible: true},
		"one of three of which another is behind":        {rate: 2.5, step: 500 * time.Millisecond, at: []func(float64) float64{off(100), honest, off(-500)}, wantImpossible: true},
		"one of two that was never agreed with":          {},
		"one of two that creeps ahead a slot at a time":  {rate: 2.5, step: 400 * time.Millisecond, at: []func(float64) float64{creep(1), honest}, wantImpossible: true},
		"one of two that creeps ahead, asked more often": {rate: 2.5, step: 100 * time.Millisecond, at: []func(float64) float64{creep(.3), honest}, wantImpossible: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.at == nil {
				c := newClaims(t, 2, 2.5)
				c.pass(time.Minute, time.Second, off(100), honest)
				if best := float64(c.f.Best(c.now)); best > c.truth || c.lag(1) != 0 {
					t.Errorf("best is %.0f slots ahead of the chain, and the honest one %d behind", best-c.truth, c.lag(1))
				}
				return
			}
			c := newClaims(t, len(test.at), test.rate)
			all := slices.Repeat(agree[:1], len(test.at))
			if bad := c.pass(20*time.Second, test.step, all...); bad[0]+bad[1] > 0 {
				t.Errorf("%v answers are impossible while all agree", bad)
			}
			bad := c.pass(10*time.Minute, test.step, test.at...)
			if bad[1] > 0 || (bad[0] > 0) != test.wantImpossible {
				t.Errorf("%v answers are impossible, want some of the first: %v", bad, test.wantImpossible)
			}
			if best := float64(c.f.Best(c.now)); best > c.truth+10 || c.lag(1) > 10 {
				t.Errorf("best is %.0f slots ahead of the chain, and the honest one %d behind", best-c.truth, c.lag(1))
			}
		})
	}
}

// TestALeadDoesNotCountFromTheFirstAgreementOn, although measuring the chain's rate takes
// seconds.
func TestALeadDoesNotCountFromTheFirstAgreementOn(t *testing.T) {
	t.Parallel()
	for name, rate := range map[string]float64{"a chain of 400 ms slots": 2.5, "a chain of 20 ms slots": 50} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClaims(t, 2, rate)
			c.pass(20*time.Millisecond, 20*time.Millisecond, agree...)
			if bad := c.pass(100*time.Millisecond, 20*time.Millisecond, off(1000), honest); bad[0] != 5 || bad[1] != 0 {
				t.Errorf("%v answers are impossible, want all 5 of the first", bad)
			}
			if bad := c.pass(time.Second, 20*time.Millisecond, nil, honest); bad[1] > 0 {
				t.Errorf("%d answers of an honest one that is alone are impossible", bad[1])
			}
		})
	}
}

// TestOfTwoThatNeverAgreedTheLowerSlotIsBorneOut: a relay that starts while its two endpoints are
// far apart cannot know whether one of them lags or the other one lies.
func TestOfTwoThatNeverAgreedTheLowerSlotIsBorneOut(t *testing.T) {
	t.Parallel()
	c := newClaims(t, 2, 2.5)
	if bad := c.pass(time.Minute, time.Second, off(-100), off(100)); bad[0]+bad[1] > 0 {
		t.Errorf("%v answers are impossible, want none: either may be right", bad)
	}
	if low, high := uint64(c.truth)-100, uint64(c.truth)+100; !c.f.Corroborated(low, c.now) || c.f.Corroborated(high, c.now) {
		t.Error("not the lower slot alone is borne out")
	} else if !c.f.LongPassed(low, c.now) || c.f.LongPassed(high, c.now) {
		t.Error("not the lower slot alone may have been passed")
	}
	c.pass(2*time.Second, time.Second, off(-5), honest) // the lagging one has caught up, and the liar is honest
	if high := uint64(c.truth) + 100; !c.f.Corroborated(uint64(c.truth), c.now) || c.f.Corroborated(high, c.now) {
		t.Error("what two agree on is not borne out, or more than that is")
	}
	c.pass(29*time.Second, time.Second, off(500), nil)
	if c.f.Corroborated(uint64(c.truth)+500, c.now) {
		t.Error("what one tells is borne out as soon as the other one is silent")
	}
	c.pass(40*time.Second, time.Second, off(500), nil)
	if !c.f.Corroborated(uint64(c.truth)+500, c.now) {
		t.Error("what the only one tells that has answered for long is not borne out")
	}
}

// creep is ahead by ever more.
func creep(each float64) func(float64) float64 {
	lead := 0.0
	return func(truth float64) float64 { lead += each; return truth + lead }
}

func TestALaggardIsStillBehind(t *testing.T) {
	t.Parallel()
	stuck := func(float64) float64 { return 1_000_050 }
	tests := map[string]struct {
		rate float64
		step time.Duration
		at   []func(float64) float64 // the second is honest
	}{
		"one of two that stands still":            {rate: 2.5, step: 500 * time.Millisecond, at: []func(float64) float64{stuck, honest}},
		"one of two that stands still, 20 ms":     {rate: 50, step: 500 * time.Millisecond, at: []func(float64) float64{stuck, honest}},
		"one of two that is 500 slots behind":     {rate: 2.5, step: 5 * time.Second, at: []func(float64) float64{off(-500), honest}},
		"two of three that stand still":           {rate: 2.5, step: 500 * time.Millisecond, at: []func(float64) float64{stuck, honest, stuck}},
		"one of two that falls behind for itself": {rate: 2.5, step: 500 * time.Millisecond, at: []func(float64) float64{creep(-.5), honest}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClaims(t, len(test.at), test.rate)
			c.pass(20*time.Second, test.step, agree...)
			if bad := c.pass(5*time.Minute, test.step, test.at...); bad[1] > 0 {
				t.Errorf("%d answers of the one that is not behind are impossible", bad[1])
			}
			if c.lag(0) < 100 || c.lag(1) > 10 {
				t.Errorf("lags are %d and %d, want the first to be far behind", c.lag(0), c.lag(1))
			}
		})
	}
}

// TestALaggingClockRefusesNoHonestEndpoint: a liar stays as far behind the clock as a matching
// endpoint may be, and so slows the clock down for ever.
func TestALaggingClockRefusesNoHonestEndpoint(t *testing.T) {
	t.Parallel()
	for every := range 4 {
		c := newClaims(t, 2, 2.5)
		c.pass(20*time.Second, time.Second, agree...)
		holds := func(float64) float64 { return c.f.expected(c.now) - c.f.near + 0.5 }
		for minute := range 60 {
			c.rate = 2.5 * (1 + 0.08*float64(minute%3-1))
			for step := range 60 {
				at := []func(float64) float64{holds, nil}
				if step%(every+1) == 0 {
					at[1] = honest
				}
				if bad := c.pass(time.Second, time.Second, at...); bad[1] > 0 {
					t.Fatalf("asked every %d s, the honest one is refused after %d minutes, when the clock is %.0f slots behind", every+1, minute, c.truth-c.f.expected(c.now))
				}
			}
		}
	}
}

func TestAChainThatJumpsIsFollowed(t *testing.T) {
	t.Parallel()
	c := newClaims(t, 2, 2.5)
	c.pass(20*time.Second, time.Second, agree...)
	c.truth += 5000
	bad := c.pass(5*time.Second, time.Second, agree...)
	if bad[0] > 1 || bad[1] > 0 {
		t.Errorf("%v answers are impossible, want no more than the first before the second agrees", bad)
	}
	if best := float64(c.f.Best(c.now)); best < c.truth-1 {
		t.Errorf("best is %.0f behind the chain", c.truth-best)
	}
	// A lone endpoint is believed once none has been near the clock's slot for half a minute.
	c.truth += 5000
	c.pass(40*time.Second, time.Second, honest, nil)
	if best := float64(c.f.Best(c.now)); best < c.truth-1 {
		t.Errorf("best is %.0f behind the chain that only one endpoint shows", c.truth-best)
	}
}

func TestOneEndpointAloneIsHeldAgainstItself(t *testing.T) {
	t.Parallel()
	c := newClaims(t, 1, 2.5)
	c.pass(20*time.Second, time.Second, honest)
	wild := c.f.Observe(0, 1<<60, c.f.Best(c.now), c.now)
	if best := float64(c.f.Best(c.now)); wild || best > c.truth {
		t.Errorf("a slot that it tells once is possible: %v, best is %.0f", wild, best)
	}
	if bad := c.pass(10*time.Second, time.Second, honest); bad[0] > 0 || c.lag(0) > 0 {
		t.Errorf("%v answers after it are impossible, the lag is %d", bad, c.lag(0))
	}
	c.truth += 5000 // it goes on like that: there is no other endpoint to ask
	if bad := c.pass(10*time.Second, 500*time.Millisecond, honest); bad[0] == 0 || bad[0] > 5 {
		t.Errorf("%v answers are not possible, want those of some two seconds", bad)
	}
}

func TestProcessedSlotsAreCheckedAgainstTheClock(t *testing.T) {
	t.Parallel()
	c := newClaims(t, 2, 2.5)
	if !c.f.Possible(1<<60, c.now) {
		t.Error("a slot is not possible before any is known")
	}
	c.pass(20*time.Second, time.Second, agree...)
	if !c.f.Possible(uint64(c.truth)+40, c.now) || c.f.Possible(uint64(c.truth)+1000, c.now) {
		t.Error("a processed slot a few ahead is possible, and one 1000 ahead is not")
	}
}

func TestSlotAgreement(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	f := newSlotAgreement(2, 10)
	if f.Best(now) != 0 {
		t.Error("without an endpoint there is a slot")
	}
	if _, at := f.Lag(0); !at.IsZero() {
		t.Error("an endpoint that never answered has a time")
	}
	f.Observe(0, 100, f.Best(now), now)
	f.Observe(1, 95, f.Best(now), now)
	lag0, _ := f.Lag(0)
	lag1, at := f.Lag(1)
	if f.Best(now) != 100 || lag0 != 0 || lag1 != 5 || !at.Equal(now) || f.Slot(1) != 95 {
		t.Errorf("best is %d, lags %d and %d, want 100, 0 and 5", f.Best(now), lag0, lag1)
	}
	// An answer to a call that began before the best slot was known has no certain lag.
	f.Observe(1, 95, 0, now)
	if lag, _ := f.Lag(1); lag != 0 {
		t.Errorf("lag is %d, want 0", lag)
	}
	if f.Observe(0, 1<<60, f.Best(now), now) || f.Best(now) != 100 {
		t.Errorf("best is %d, want 100: nobody comes near what one has said since", f.Best(now))
	}
	if !f.Observe(0, 101, f.Best(now), now) || f.Best(now) != 101 {
		t.Errorf("best is %d, want 101: it has come back", f.Best(now))
	}
	// A slot that no endpoint is near for half a minute was wrong, or is of a dead fork.
	f.Observe(0, 1<<60, f.Best(now), now)
	now = now.Add(31 * time.Second)
	f.Observe(1, 180, 0, now)
	f.Observe(0, 178, f.Best(now), now)
	if lag, _ := f.Lag(0); f.Best(now) != 180 || lag != 2 {
		t.Errorf("best is %d and the lag %d, want 180 and 2", f.Best(now), lag)
	}
}

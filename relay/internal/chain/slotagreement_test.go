package chain

import (
	"slices"
	"testing"
	"time"
)

// simulation drives a slotAgreement by a virtual clock.
type simulation struct {
	t     *testing.T
	f     *slotAgreement
	now   time.Time
	truth float64 // the chain's slot
	rate  float64 // slots a second
}

func newSimulation(t *testing.T, n int, rate float64) *simulation {
	return &simulation{t: t, f: newSlotAgreement(n, 10), now: time.Unix(1000, 0), truth: 1_000_000, rate: rate}
}

// advance lets time pass in steps. In each step, endpoint i reports the slot that
// reported[i] returns for the chain's true slot; none if it is nil. It returns how many answers of
// each endpoint were impossible.
func (c *simulation) advance(d, step time.Duration, reported ...func(truth float64) float64) (impossible []int) {
	impossible = make([]int, len(reported))
	for end := c.now.Add(d); c.now.Before(end); {
		c.now = c.now.Add(step)
		c.truth += c.rate * step.Seconds()
		for i, slot := range reported {
			if slot != nil && !c.f.Observe(i, uint64(slot(c.truth)), c.f.Best(c.now), c.now) {
				impossible[i]++
			}
		}
	}
	return impossible
}

func (c *simulation) lag(i int) uint64 { lag, _ := c.f.Lag(i); return lag }

func honest(truth float64) float64 { return truth }

// bothHonest are the reports of two honest endpoints.
var bothHonest = []func(float64) float64{honest, honest}

func ahead(slots float64) func(float64) float64 {
	return func(truth float64) float64 { return truth + slots }
}

func behindBy(slots float64) func(float64) float64 { return ahead(-slots) }

func TestSlotIsOld(t *testing.T) {
	t.Parallel()
	c := newSimulation(t, 2, 2.5)
	if c.f.SlotIsOld(1, c.now) {
		t.Error("SlotIsOld is true before any endpoint reported a slot")
	}
	c.advance(20*time.Second, 400*time.Millisecond, bothHonest...)
	for behind, want := range map[float64]bool{0: false, 4: false, 7: true, 13: true} {
		if got := c.f.SlotIsOld(uint64(c.truth-behind), c.now); got != want {
			t.Errorf("SlotIsOld is %[2]v for a slot that is %[1]g behind, want %[3]v", behind, got, want)
		}
	}
	earlier := c.now
	c.advance(20*time.Second, 400*time.Millisecond, bothHonest...)
	if c.f.SlotIsOld(uint64(c.truth-50), earlier) {
		t.Error("SlotIsOld is true for the chain's slot at that time")
	}
}

func TestSlotAheadOfTheChainDoesNotCount(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		rate           float64
		step           time.Duration
		reported       []func(float64) float64
		wantImpossible bool
	}{
		"one of two, 100 slots ahead":                        {rate: 2.5, step: 500 * time.Millisecond, reported: []func(float64) float64{ahead(100), honest}, wantImpossible: true},
		"one of two, 20 slots ahead":                         {rate: 2.5, step: 500 * time.Millisecond, reported: []func(float64) float64{ahead(20), honest}},
		"one of two that are asked every five seconds":       {rate: 2.5, step: 5 * time.Second, reported: []func(float64) float64{ahead(100), honest}, wantImpossible: true},
		"one of two on a chain of 20 ms slots":               {rate: 50, step: 500 * time.Millisecond, reported: []func(float64) float64{ahead(1000), honest}, wantImpossible: true},
		"one of two at a slot that no chain reaches":         {rate: 2.5, step: time.Second, reported: []func(float64) float64{ahead(1 << 60), honest}, wantImpossible: true},
		"one of three, 100 slots ahead":                      {rate: 2.5, step: 500 * time.Millisecond, reported: []func(float64) float64{ahead(100), honest, behindBy(1)}, wantImpossible: true},
		"one of three, and another one is behind":            {rate: 2.5, step: 500 * time.Millisecond, reported: []func(float64) float64{ahead(100), honest, behindBy(500)}, wantImpossible: true},
		"one of two that never agreed":                       {},
		"one of two, a slot further ahead each time":         {rate: 2.5, step: 400 * time.Millisecond, reported: []func(float64) float64{increasinglyAhead(1), honest}, wantImpossible: true},
		"one of two, slowly further ahead, asked more often": {rate: 2.5, step: 100 * time.Millisecond, reported: []func(float64) float64{increasinglyAhead(.3), honest}, wantImpossible: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.reported == nil {
				c := newSimulation(t, 2, 2.5)
				c.advance(time.Minute, time.Second, ahead(100), honest)
				if best := float64(c.f.Best(c.now)); best > c.truth || c.lag(1) != 0 {
					t.Errorf("best slot is %.0f ahead of the chain, and the honest endpoint %d behind", best-c.truth, c.lag(1))
				}
				return
			}
			c := newSimulation(t, len(test.reported), test.rate)
			all := slices.Repeat(bothHonest[:1], len(test.reported))
			if bad := c.advance(20*time.Second, test.step, all...); bad[0]+bad[1] > 0 {
				t.Errorf("impossible answers by endpoint are %v while all agree, want none", bad)
			}
			bad := c.advance(10*time.Minute, test.step, test.reported...)
			if bad[1] > 0 || (bad[0] > 0) != test.wantImpossible {
				t.Errorf("impossible answers by endpoint are %v, want some of the first endpoint: %v", bad, test.wantImpossible)
			}
			if best := float64(c.f.Best(c.now)); best > c.truth+10 || c.lag(1) > 10 {
				t.Errorf("best slot is %.0f ahead of the chain, and the honest endpoint %d behind", best-c.truth, c.lag(1))
			}
		})
	}
}

// TestSlotAheadIsImpossibleAfterFirstAgreement: a slot ahead of the chain is impossible as soon as
// two endpoints agreed, before the chain's rate is measured.
func TestSlotAheadIsImpossibleAfterFirstAgreement(t *testing.T) {
	t.Parallel()
	for name, rate := range map[string]float64{"a chain of 400 ms slots": 2.5, "a chain of 20 ms slots": 50} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newSimulation(t, 2, rate)
			c.advance(20*time.Millisecond, 20*time.Millisecond, bothHonest...)
			if bad := c.advance(100*time.Millisecond, 20*time.Millisecond, ahead(1000), honest); bad[0] != 5 || bad[1] != 0 {
				t.Errorf("impossible answers by endpoint are %v, want all 5 of the first", bad)
			}
			if bad := c.advance(time.Second, 20*time.Millisecond, nil, honest); bad[1] > 0 {
				t.Errorf("%d answers of the honest endpoint alone are impossible, want none", bad[1])
			}
		})
	}
}

// TestLowerSlotIsCorroboratedBeforeAgreement: a relay that starts while its two endpoints are
// far apart cannot know whether one lags or the other lies.
func TestLowerSlotIsCorroboratedBeforeAgreement(t *testing.T) {
	t.Parallel()
	c := newSimulation(t, 2, 2.5)
	if bad := c.advance(time.Minute, time.Second, behindBy(100), ahead(100)); bad[0]+bad[1] > 0 {
		t.Errorf("impossible answers by endpoint are %v, want none: either may be right", bad)
	}
	if low, high := uint64(c.truth)-100, uint64(c.truth)+100; !c.f.Corroborated(low, c.now) || c.f.Corroborated(high, c.now) {
		t.Error("want Corroborated for the lower slot only")
	} else if !c.f.SlotIsOld(low, c.now) || c.f.SlotIsOld(high, c.now) {
		t.Error("want SlotIsOld for the lower slot only")
	}
	c.advance(2*time.Second, time.Second, behindBy(5), honest) // the lagging endpoint has caught up, and the liar is honest
	if high := uint64(c.truth) + 100; !c.f.Corroborated(uint64(c.truth), c.now) || c.f.Corroborated(high, c.now) {
		t.Error("want Corroborated up to the slot that both endpoints report")
	}
	c.advance(29*time.Second, time.Second, ahead(500), nil)
	if c.f.Corroborated(uint64(c.truth)+500, c.now) {
		t.Error("the slot of one endpoint is corroborated as soon as the other is silent")
	}
	c.advance(40*time.Second, time.Second, ahead(500), nil)
	if !c.f.Corroborated(uint64(c.truth)+500, c.now) {
		t.Error("the slot of the only endpoint that answered for a while is not corroborated")
	}
}

// increasinglyAhead reports slots that are further ahead by step each time.
func increasinglyAhead(step float64) func(float64) float64 {
	lead := 0.0
	return func(truth float64) float64 { lead += step; return truth + lead }
}

func TestLaggingEndpointIsBehind(t *testing.T) {
	t.Parallel()
	stuck := func(float64) float64 { return 1_000_050 }
	tests := map[string]struct {
		rate     float64
		step     time.Duration
		reported []func(float64) float64 // the second endpoint is honest
	}{
		"one of two that stands still":              {rate: 2.5, step: 500 * time.Millisecond, reported: []func(float64) float64{stuck, honest}},
		"one of two that stands still, 20 ms slots": {rate: 50, step: 500 * time.Millisecond, reported: []func(float64) float64{stuck, honest}},
		"one of two that is 500 slots behind":       {rate: 2.5, step: 5 * time.Second, reported: []func(float64) float64{behindBy(500), honest}},
		"two of three that stand still":             {rate: 2.5, step: 500 * time.Millisecond, reported: []func(float64) float64{stuck, honest, stuck}},
		"one of two that is slower than the chain":  {rate: 2.5, step: 500 * time.Millisecond, reported: []func(float64) float64{increasinglyAhead(-.5), honest}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newSimulation(t, len(test.reported), test.rate)
			c.advance(20*time.Second, test.step, bothHonest...)
			if bad := c.advance(5*time.Minute, test.step, test.reported...); bad[1] > 0 {
				t.Errorf("%d answers of the honest endpoint are impossible, want none", bad[1])
			}
			if c.lag(0) < 100 || c.lag(1) > 10 {
				t.Errorf("lags are %d and %d, want at least 100 and at most 10", c.lag(0), c.lag(1))
			}
		})
	}
}

// TestSlowedClockRefusesNoHonestEndpoint: a liar always reports the lowest slot that still
// matches the clock, and so slows the clock down.
func TestSlowedClockRefusesNoHonestEndpoint(t *testing.T) {
	t.Parallel()
	for skipped := range 4 {
		c := newSimulation(t, 2, 2.5)
		c.advance(20*time.Second, time.Second, bothHonest...)
		slowing := func(float64) float64 { return c.f.expected(c.now) - c.f.tolerance + 0.5 }
		for minute := range 60 {
			c.rate = 2.5 * (1 + 0.08*float64(minute%3-1))
			for step := range 60 {
				reported := []func(float64) float64{slowing, nil}
				if step%(skipped+1) == 0 {
					reported[1] = honest
				}
				if bad := c.advance(time.Second, time.Second, reported...); bad[1] > 0 {
					t.Fatalf("the honest endpoint, asked every %d s, is refused after %d minutes, when the clock is %.0f slots behind", skipped+1, minute, c.truth-c.f.expected(c.now))
				}
			}
		}
	}
}

func TestJumpOfTheChainIsFollowed(t *testing.T) {
	t.Parallel()
	c := newSimulation(t, 2, 2.5)
	c.advance(20*time.Second, time.Second, bothHonest...)
	c.truth += 5000
	bad := c.advance(5*time.Second, time.Second, bothHonest...)
	if bad[0] > 1 || bad[1] > 0 {
		t.Errorf("impossible answers by endpoint are %v, want at most the first one until the second endpoint agrees", bad)
	}
	if best := float64(c.f.Best(c.now)); best < c.truth-1 {
		t.Errorf("best slot is %.0f behind the chain, want at most 1", c.truth-best)
	}
	// A lone endpoint is believed once none has been near the clock's slot for half a minute.
	c.truth += 5000
	c.advance(40*time.Second, time.Second, honest, nil)
	if best := float64(c.f.Best(c.now)); best < c.truth-1 {
		t.Errorf("best slot is %.0f behind the chain, whose slot only one endpoint reports; want at most 1", c.truth-best)
	}
}

func TestSingleEndpointsSlotsAreChecked(t *testing.T) {
	t.Parallel()
	c := newSimulation(t, 1, 2.5)
	c.advance(20*time.Second, time.Second, honest)
	possible := c.f.Observe(0, 1<<60, c.f.Best(c.now), c.now)
	if best := float64(c.f.Best(c.now)); possible || best > c.truth {
		t.Errorf("an impossible slot is possible: %v, best slot is %.0f, want at most %.0f", possible, best, c.truth)
	}
	if bad := c.advance(10*time.Second, time.Second, honest); bad[0] > 0 || c.lag(0) > 0 {
		t.Errorf("later impossible answers are %v and the lag is %d, want none and 0", bad, c.lag(0))
	}
	c.truth += 5000 // the jump is believed after a while, because no other endpoint can be asked
	if bad := c.advance(10*time.Second, 500*time.Millisecond, honest); bad[0] == 0 || bad[0] > 5 {
		t.Errorf("impossible answers are %v, want those of about two seconds", bad)
	}
}

func TestProcessedSlotsAreCheckedAgainstTheClock(t *testing.T) {
	t.Parallel()
	c := newSimulation(t, 2, 2.5)
	if !c.f.Possible(1<<60, c.now) {
		t.Error("a slot is impossible before any slot is known")
	}
	c.advance(20*time.Second, time.Second, bothHonest...)
	if !c.f.Possible(uint64(c.truth)+40, c.now) || c.f.Possible(uint64(c.truth)+1000, c.now) {
		t.Error("want a processed slot possible 40 ahead of the chain, and impossible 1000 ahead")
	}
}

func TestLagAndBestSlotOfTwoEndpoints(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	f := newSlotAgreement(2, 10)
	if f.Best(now) != 0 {
		t.Error("there is a best slot before any answer")
	}
	if _, at := f.Lag(0); !at.IsZero() {
		t.Error("an endpoint that never answered has the time of an answer")
	}
	f.Observe(0, 100, f.Best(now), now)
	f.Observe(1, 95, f.Best(now), now)
	lag0, _ := f.Lag(0)
	lag1, at := f.Lag(1)
	if f.Best(now) != 100 || lag0 != 0 || lag1 != 5 || !at.Equal(now) || f.Slot(1) != 95 {
		t.Errorf("best slot is %d, lags are %d and %d, want 100, 0 and 5", f.Best(now), lag0, lag1)
	}
	// An answer to a call that began before the best slot was known has no certain lag.
	f.Observe(1, 95, 0, now)
	if lag, _ := f.Lag(1); lag != 0 {
		t.Errorf("lag is %d, want 0", lag)
	}
	if f.Observe(0, 1<<60, f.Best(now), now) || f.Best(now) != 100 {
		t.Errorf("best slot is %d, want 100: no other endpoint is near the newest report", f.Best(now))
	}
	if !f.Observe(0, 101, f.Best(now), now) || f.Best(now) != 101 {
		t.Errorf("best slot is %d, want 101: the endpoint reports a possible slot again", f.Best(now))
	}
	// A slot that no endpoint is near for half a minute was wrong, or of an abandoned fork.
	f.Observe(0, 1<<60, f.Best(now), now)
	now = now.Add(31 * time.Second)
	f.Observe(1, 180, 0, now)
	f.Observe(0, 178, f.Best(now), now)
	if lag, _ := f.Lag(0); f.Best(now) != 180 || lag != 2 {
		t.Errorf("best slot is %d and the lag %d, want 180 and 2", f.Best(now), lag)
	}
}

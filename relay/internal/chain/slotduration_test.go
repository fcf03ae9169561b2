package chain

import (
	"testing"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
)

// TestSlotDurationIsMeasured lets a chain change its slot time. An endpoint that reports slots far
// ahead does not change what is measured.
func TestSlotDurationIsMeasured(t *testing.T) {
	t.Parallel()
	c := newSimulation(t, 2, 2.5)
	if _, measured := c.f.slotDuration(); measured {
		t.Error("a slot's time is measured before any endpoint reported a slot")
	}
	checkDuration := func(want time.Duration) {
		t.Helper()
		got, measured := c.f.slotDuration()
		if !measured || got < want*9/10 || got > want*11/10 {
			t.Errorf("a slot takes %s, measured: %t; want about %s", got, measured, want)
		}
	}
	c.advance(20*time.Second, 400*time.Millisecond, bothHonest...)
	checkDuration(400 * time.Millisecond)
	c.rate = 5
	c.advance(60*time.Second, 400*time.Millisecond, bothHonest...)
	checkDuration(200 * time.Millisecond)
	c.advance(60*time.Second, 400*time.Millisecond, honest, ahead(1_000_000))
	checkDuration(200 * time.Millisecond)
}

// TestMigrationDoesNotMoveTheClock lets confirmed slots stand still for five minutes and then jump
// to where the chain is, as a migration of the consensus does.
func TestMigrationDoesNotMoveTheClock(t *testing.T) {
	t.Parallel()
	for name, every := range map[string]time.Duration{"many calls": 100 * time.Millisecond, "a call every half second": 500 * time.Millisecond, "probes only": 2500 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newSimulation(t, 2, 5)
			c.advance(20*time.Second, every, bothHonest...)
			c.rate = 0
			c.advance(5*time.Minute, every, bothHonest...)
			c.rate, c.truth = 5, c.truth+1500
			for after := time.Duration(0); after < 4*time.Minute; after += 2500 * time.Millisecond {
				c.advance(2500*time.Millisecond, every, bothHonest...)
				if took, _ := c.f.slotDuration(); took < 150*time.Millisecond || took > 250*time.Millisecond {
					t.Fatalf("%s after the jump a slot takes %s, want about 200 ms", after, took)
				}
				if after < 10*time.Second {
					continue
				}
				if c.f.SlotIsOld(uint64(c.truth), c.now) {
					t.Errorf("%s after the jump the chain's slot is old, want it current", after)
				}
				if limit := c.f.limit(c.now); limit > c.truth+200 {
					t.Errorf("%s after the jump slots up to %.0f ahead of the chain are possible, want at most 200", after, limit-c.truth)
				}
			}
		})
	}
}

func TestSlotDurationBeforeItIsMeasured(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		samples []time.Duration
		want    time.Duration
	}{
		"no samples":                                {nil, onchain.NominalSlot},
		"one endpoint's sample":                     {[]time.Duration{300 * time.Millisecond}, 300 * time.Millisecond},
		"the shorter of two samples":                {[]time.Duration{200 * time.Millisecond, 5 * time.Second}, 200 * time.Millisecond},
		"the median of three samples":               {[]time.Duration{time.Millisecond, 200 * time.Millisecond, 5 * time.Second}, 200 * time.Millisecond},
		"a sample shorter than any network's slots": {[]time.Duration{time.Millisecond}, shortestSample},
	} {
		e := &Endpoints{slots: newSlotAgreement(2, 10), slotSamples: test.samples}
		if got := e.SlotDuration(); got != test.want {
			t.Errorf("%s: a slot takes %s, want %s", name, got, test.want)
		}
	}
}

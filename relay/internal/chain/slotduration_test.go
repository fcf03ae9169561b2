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
	near := func(want time.Duration) {
		t.Helper()
		got, measured := c.f.slotDuration()
		if !measured || got < want*9/10 || got > want*11/10 {
			t.Errorf("a slot takes %s, measured: %t; want some %s", got, measured, want)
		}
	}
	c.advance(20*time.Second, 400*time.Millisecond, bothHonest...)
	near(400 * time.Millisecond)
	c.rate = 5
	c.advance(60*time.Second, 400*time.Millisecond, bothHonest...)
	near(200 * time.Millisecond)
	c.advance(60*time.Second, 400*time.Millisecond, honest, ahead(1_000_000))
	near(200 * time.Millisecond)
}

func TestSlotDurationBeforeItIsMeasured(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		samples []time.Duration
		want    time.Duration
	}{
		"no samples":                    {nil, onchain.NominalSlot},
		"one endpoint's sample":         {[]time.Duration{300 * time.Millisecond}, 300 * time.Millisecond},
		"of two the shorter":            {[]time.Duration{200 * time.Millisecond, 5 * time.Second}, 200 * time.Millisecond},
		"of three the median":           {[]time.Duration{time.Millisecond, 200 * time.Millisecond, 5 * time.Second}, 200 * time.Millisecond},
		"less than any network's slots": {[]time.Duration{time.Millisecond}, shortestSample},
	} {
		e := &Endpoints{slots: newSlotAgreement(2, 10), slotSamples: test.samples}
		if got := e.SlotDuration(); got != test.want {
			t.Errorf("%s: a slot takes %s, want %s", name, got, test.want)
		}
	}
}

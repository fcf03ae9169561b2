package judge

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func newBudget(t *testing.T, perSecond float64) *Budget {
	t.Helper()
	b, err := NewBudget(perSecond, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func taken(b *Budget, u Urgency) (n int) {
	for n < 1000 && b.Wait(context.Background(), u, 0) == nil {
		n++
	}
	return n
}

func TestBudgetKeepsARestForTheUrgent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(t, 9)
		// Of a burst of 9, upkeep leaves half, rebroadcasts a quarter, reads nothing.
		got := []int{taken(b, Upkeep), taken(b, Rebroadcast), taken(b, Read), taken(b, FirstSend)}
		if diff := cmp.Diff([]int{5, 2, 2, 0}, got); diff != "" {
			t.Errorf("taken by upkeep, rebroadcasts, reads and first sends (-want +got):\n%s", diff)
		}
		time.Sleep(time.Second)
		if got := taken(b, Read); got != 9 {
			t.Errorf("%d requests after a second, want 9", got)
		}
	})
}

func TestFirstSendsGoAhead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(t, 10)
		if got := taken(b, Read); got != 10 {
			t.Fatalf("%d requests, want 10", got)
		}
		start, done := time.Now(), make(chan time.Duration, 3)
		wait := func(u Urgency) {
			if err := b.Wait(t.Context(), u, time.Minute); err != nil {
				t.Error(err)
			}
			done <- time.Since(start)
		}
		go wait(Read)
		synctest.Wait()
		go wait(FirstSend)
		go wait(FirstSend)
		got := []time.Duration{<-done, <-done, <-done}
		want := []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond}
		for i, d := range got {
			if (d - want[i]).Abs() > 2*time.Millisecond {
				t.Errorf("waits are %v, want about %v: the read asked first and goes last", got, want)
				break
			}
		}
		if b.Has(Rebroadcast) || b.Wait(t.Context(), Rebroadcast, 0) == nil {
			t.Error("a rebroadcast finds a request when none is left")
		}
	})
}

func TestBudgetDoesNotWaitInVain(t *testing.T) {
	t.Parallel()
	for name, u := range map[string]Urgency{"a first send": FirstSend, "a read": Read, "upkeep": Upkeep} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBudget(t, 1)
				if err := b.Wait(t.Context(), u, 0); err != nil {
					t.Fatalf("the first request is refused: %v", err)
				}
				start := time.Now()
				limited, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
				defer cancel()
				for _, err := range []error{b.Wait(t.Context(), u, 900*time.Millisecond), b.Wait(limited, u, time.Minute)} {
					if !errors.Is(err, ErrBudget) {
						t.Errorf("error is %v, want ErrBudget", err)
					}
				}
				if took := time.Since(start); took != 0 {
					t.Errorf("it was clear after %s, want at once", took)
				}
				left, leave := context.WithCancel(t.Context())
				time.AfterFunc(100*time.Millisecond, leave)
				if err := b.Wait(left, u, time.Minute); !errors.Is(err, context.Canceled) {
					t.Errorf("error is %v for a caller who left", err)
				}
			})
		})
	}
}

func TestNoBudgetIsNoBound(t *testing.T) {
	t.Parallel()
	b := newBudget(t, 0)
	for _, u := range []Urgency{FirstSend, Read, Rebroadcast, Upkeep} {
		if got := taken(b, u); got != 1000 || !b.Has(u) {
			t.Errorf("%d requests of urgency %d, want no bound", got, u)
		}
	}
	for _, wrong := range []float64{-1, math.NaN(), math.Inf(1)} {
		if _, err := NewBudget(wrong, time.Now); err == nil {
			t.Errorf("%g requests a second are taken", wrong)
		}
	}
	if _, err := NewBudget(1, nil); err == nil {
		t.Error("a budget without a clock is taken")
	}
	if got := taken(newBudget(t, 0.5), Upkeep); got != 1 {
		t.Errorf("%d requests at one in two seconds, want 1", got)
	}
}

func TestRank(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	saw := func(m *Meter, n int, took time.Duration, failed bool) {
		for range n {
			m.Observe("m", took, failed, now)
		}
	}
	tests := map[string]struct {
		calls func(*Meter)
		later time.Duration
		want  int
	}{
		"what was never asked is the best":         {func(*Meter) {}, 0, 0},
		"up to 25 ms is as good as that":           {func(m *Meter) { saw(m, 9, 24*time.Millisecond, false) }, 0, 0},
		"each doubling is a rank":                  {func(m *Meter) { saw(m, 9, 130*time.Millisecond, false) }, 0, 3},
		"one failure costs much":                   {func(m *Meter) { saw(m, 1, time.Millisecond, true) }, 0, 5},
		"more failures cost more":                  {func(m *Meter) { saw(m, 9, time.Millisecond, true) }, 0, 7},
		"good calls make up for it":                {func(m *Meter) { saw(m, 1, 0, true); saw(m, 15, time.Millisecond, false) }, 0, 0},
		"so does time":                             {func(m *Meter) { saw(m, 1, 0, true) }, time.Minute, 0},
		"another method's calls say nothing of it": {func(m *Meter) { m.Observe("other", time.Minute, true, now) }, 0, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := NewMeter()
			test.calls(m)
			if got := m.Rank("m", now.Add(test.later)); got != test.want {
				t.Errorf("rank is %d, want %d", got, test.want)
			}
		})
	}
	m := NewMeter()
	if m.Slowest() != 0 {
		t.Error("a meter that has seen nothing tells a latency")
	}
	m.Observe("m", time.Second, false, now)
	m.Observe("m", 2*time.Second, false, now)
	m.Observe("n", time.Millisecond, false, now)
	if m.Slowest() != 1200*time.Millisecond {
		t.Errorf("the slowest takes %s, want 1.2 s", m.Slowest())
	}
}

func TestFront(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	f := NewSlotAgreement(2, 10)
	if f.Best(now) != 0 {
		t.Error("a front of nobody tells a slot")
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
	// An answer to a call that began before the best was known lacks nothing.
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
	// A slot that nobody is at for half a minute was wrong, or is of a dead fork.
	f.Observe(0, 1<<60, f.Best(now), now)
	now = now.Add(31 * time.Second)
	f.Observe(1, 180, 0, now)
	f.Observe(0, 178, f.Best(now), now)
	if lag, _ := f.Lag(0); f.Best(now) != 180 || lag != 2 {
		t.Errorf("best is %d and the lag %d, want 180 and 2", f.Best(now), lag)
	}
}

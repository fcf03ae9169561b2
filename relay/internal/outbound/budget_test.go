package outbound

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

func TestBudgetKeepsTokensForUrgentRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(t, 9)
		// Of a burst of 9, background reads leave half to others, rebroadcasts leave a quarter, and reads leave nothing.
		got := []int{taken(b, Background), taken(b, Rebroadcast), taken(b, Read), taken(b, FirstSend)}
		if diff := cmp.Diff([]int{5, 2, 2, 0}, got); diff != "" {
			t.Errorf("taken by background reads, rebroadcasts, reads and first sends (-want +got):\n%s", diff)
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
		if b.HasRoom(Rebroadcast) || b.Wait(t.Context(), Rebroadcast, 0) == nil {
			t.Error("a rebroadcast finds a request when none is left")
		}
	})
}

func TestBudgetDoesNotWaitInVain(t *testing.T) {
	t.Parallel()
	for name, u := range map[string]Urgency{"a first send": FirstSend, "a read": Read, "a background read": Background} {
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
	for _, u := range []Urgency{FirstSend, Read, Rebroadcast, Background} {
		if got := taken(b, u); got != 1000 || !b.HasRoom(u) {
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
	if got := taken(newBudget(t, 0.5), Background); got != 1 {
		t.Errorf("%d requests at one in two seconds, want 1", got)
	}
}

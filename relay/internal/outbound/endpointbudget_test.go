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

// takeAll takes requests until none is available at once, and returns their number, at most 1000.
func takeAll(b *Budget, u Urgency) (n int) {
	for n < 1000 && b.Wait(context.Background(), u, 0) == nil {
		n++
	}
	return n
}

func TestBudgetKeepsTokensForUrgentRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(t, 9)
		// Background reads leave half of the burst of 9, rebroadcasts a quarter, and reads nothing.
		got := []int{takeAll(b, Background), takeAll(b, Rebroadcast), takeAll(b, Read), takeAll(b, FirstSend)}
		if diff := cmp.Diff([]int{5, 2, 2, 0}, got); diff != "" {
			t.Errorf("requests taken by background reads, rebroadcasts, reads and first sends differ (-want +got):\n%s", diff)
		}
		time.Sleep(time.Second)
		if got := takeAll(b, Read); got != 9 {
			t.Errorf("%d requests are available after a second, want 9", got)
		}
	})
}

func TestFirstSendsGoBeforeReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(t, 10)
		if got := takeAll(b, Read); got != 10 {
			t.Fatalf("%d requests are available, want 10", got)
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
				t.Errorf("waits are %v, want about %v, and the first sends before the read", got, want)
				break
			}
		}
		if b.HasRoom(Rebroadcast) || b.Wait(t.Context(), Rebroadcast, 0) == nil {
			t.Error("a rebroadcast gets a request although none is available")
		}
	})
}

func TestBudgetRefusesAtOnceWhenTheWaitIsTooLong(t *testing.T) {
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
					t.Errorf("the refusals took %s, want no wait", took)
				}
				caller, stop := context.WithCancel(t.Context())
				time.AfterFunc(100*time.Millisecond, stop)
				if err := b.Wait(caller, u, time.Minute); !errors.Is(err, context.Canceled) {
					t.Errorf("error is %v for a cancelled caller, want its context's error", err)
				}
			})
		})
	}
}

func TestBudgetOfZeroIsUnlimited(t *testing.T) {
	t.Parallel()
	b := newBudget(t, 0)
	for _, u := range []Urgency{FirstSend, Read, Rebroadcast, Background} {
		if got := takeAll(b, u); got != 1000 || !b.HasRoom(u) {
			t.Errorf("%d requests of urgency %d are available, want no limit", got, u)
		}
	}
	for _, invalid := range []float64{-1, math.NaN(), math.Inf(1)} {
		if _, err := NewBudget(invalid, time.Now); err == nil {
			t.Errorf("a budget of %g requests a second is accepted", invalid)
		}
	}
	if _, err := NewBudget(1, nil); err == nil {
		t.Error("a budget without a clock is accepted")
	}
	if got := takeAll(newBudget(t, 0.5), Background); got != 1 {
		t.Errorf("%d requests are available at half a request a second, want 1", got)
	}
}

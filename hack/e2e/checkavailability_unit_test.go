package check

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// steady returns calls from one second to another, perSecond a second, each answered after
// 100 ms.
func steady(from, to, perSecond float64, status int, accepted bool) (calls []Call) {
	for at := from; at < to; at += 1 / perSecond {
		calls = append(calls, Call{Sent: after(at), At: after(at + 0.1), Status: status, Accepted: accepted})
	}
	return calls
}

func join(parts ...[]Call) (calls []Call) {
	for _, p := range parts {
		calls = append(calls, p...)
	}
	return calls
}

func TestServedCountsTheCallsBetweenTwoTimes(t *testing.T) {
	t.Parallel()
	calls := []Call{
		{Sent: after(9), At: after(12), Status: 202, Accepted: true}, // sent before the first time, accepted after it
		{Sent: after(15), At: after(16), Status: 200},
		{Sent: after(17), At: after(18), Status: 503},
		{Sent: after(18), At: after(18), Status: 429},
		{Sent: after(19), At: after(59), Status: 0}, // ended long after the second time
		{Sent: after(29), At: after(31), Status: 202, Accepted: true},
		{Sent: after(24), At: after(25), Status: 202, Accepted: true},
		{Sent: after(26), At: after(26), Status: 404},
		{Sent: after(40), At: after(41), Status: 0},
	}
	want := Service{Calls: 7, Accepted: 2, Refused: 2, Silent: 1, Longest: 13 * time.Second}
	if diff := cmp.Diff(want, Served(calls, after(10), after(30))); diff != "" {
		t.Errorf("service (-want +got):\n%s", diff)
	}
	if got := Served(nil, after(10), after(30)); got.Longest != 20*time.Second {
		t.Errorf("without calls the longest time is %s, want 20s", got.Longest)
	}
}

func TestWithinReportsOutages(t *testing.T) {
	t.Parallel()
	bounds := Bounds{MaxSilence: 15 * time.Second, MaxFailed: 0.1}
	for name, tc := range map[string]struct {
		calls []Call
		// want is a part of the error; empty for no error.
		want string
	}{
		"served throughout": {join(steady(0, 26, 2.5, 202, true), steady(0, 26, 10, 200, false)), ""},
		"the machine stalls, and no client sends anything": {
			join(steady(0, 8, 2.5, 202, true), steady(18, 26, 2.5, 202, true), steady(0, 8, 10, 200, false), steady(18, 26, 10, 200, false)), "",
		},
		"some failures at a pod's end": {
			join(steady(0, 26, 2.5, 202, true), steady(0, 26, 10, 200, false), steady(10, 12, 10, 0, false)), "",
		},
		"no service for 20 s of 26 s": {
			join(steady(0, 3, 2.5, 202, true), steady(3, 23, 10, 0, false), steady(23, 26, 2.5, 202, true)), "no submission was accepted for 20.",
		},
		"no service for 7 s, between two generations of pods": {
			join(steady(0, 10, 2.5, 202, true), steady(0, 10, 10, 200, false), steady(10, 17, 10, 503, false), steady(17, 26, 2.5, 202, true), steady(17, 26, 10, 200, false)),
			" calls were refused and 0 stayed",
		},
		"statuses alone are served": {steady(0, 26, 10, 200, false), "no submission was accepted for 26.0 s"},
		"no calls":                  {nil, "sent no request"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := Served(tc.calls, after(0), after(26)).Within(bounds)
			wantError(t, err, tc.want)
		})
	}
}

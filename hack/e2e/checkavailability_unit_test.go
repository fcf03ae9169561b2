package e2e

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// steady returns calls from one second to another, perSecond a second, each answered after
// 100 ms.
func steady(from, to, perSecond float64, status int, accepted bool) (calls []call) {
	for at := from; at < to; at += 1 / perSecond {
		calls = append(calls, call{Sent: afterNoon(at), At: afterNoon(at + 0.1), Status: status, Accepted: accepted})
	}
	return calls
}

func joinCalls(parts ...[]call) (calls []call) {
	for _, p := range parts {
		calls = append(calls, p...)
	}
	return calls
}

func TestServedCountsTheCallsBetweenTwoTimes(t *testing.T) {
	t.Parallel()
	calls := []call{
		{Sent: afterNoon(9), At: afterNoon(12), Status: 202, Accepted: true}, // sent before the first time, accepted after it
		{Sent: afterNoon(15), At: afterNoon(16), Status: 200},
		{Sent: afterNoon(17), At: afterNoon(18), Status: 503},
		{Sent: afterNoon(18), At: afterNoon(18), Status: 429},
		{Sent: afterNoon(19), At: afterNoon(59), Status: 0}, // ended long after the second time
		{Sent: afterNoon(29), At: afterNoon(31), Status: 202, Accepted: true},
		{Sent: afterNoon(24), At: afterNoon(25), Status: 202, Accepted: true},
		{Sent: afterNoon(26), At: afterNoon(26), Status: 404},
		{Sent: afterNoon(40), At: afterNoon(41), Status: 0},
	}
	want := availability{Calls: 7, Accepted: 2, Refused: 2, Silent: 1, Longest: 13 * time.Second}
	if diff := cmp.Diff(want, served(calls, afterNoon(10), afterNoon(30))); diff != "" {
		t.Errorf("service (-want +got):\n%s", diff)
	}
	if got := served(nil, afterNoon(10), afterNoon(30)); got.Longest != 20*time.Second {
		t.Errorf("without calls the longest time is %s, want 20s", got.Longest)
	}
}

func TestWithinReportsOutages(t *testing.T) {
	t.Parallel()
	bounds := serviceBounds{MaxSilence: 15 * time.Second, MaxFailed: 0.1}
	for name, tc := range map[string]struct {
		calls []call
		// want is a part of the error; empty for no error.
		want string
	}{
		"served throughout": {joinCalls(steady(0, 26, 2.5, 202, true), steady(0, 26, 10, 200, false)), ""},
		"the machine stalls, and no client sends anything": {
			joinCalls(steady(0, 8, 2.5, 202, true), steady(18, 26, 2.5, 202, true), steady(0, 8, 10, 200, false), steady(18, 26, 10, 200, false)), "",
		},
		"some failures at a pod's end": {
			joinCalls(steady(0, 26, 2.5, 202, true), steady(0, 26, 10, 200, false), steady(10, 12, 10, 0, false)), "",
		},
		"no service for 20 s of 26 s": {
			joinCalls(steady(0, 3, 2.5, 202, true), steady(3, 23, 10, 0, false), steady(23, 26, 2.5, 202, true)), "no submission was accepted for 20.",
		},
		"no service for 7 s, between two generations of pods": {
			joinCalls(steady(0, 10, 2.5, 202, true), steady(0, 10, 10, 200, false), steady(10, 17, 10, 503, false), steady(17, 26, 2.5, 202, true), steady(17, 26, 10, 200, false)),
			" calls were refused and 0 stayed",
		},
		"statuses alone are served": {steady(0, 26, 10, 200, false), "no submission was accepted for 26.0 s"},
		"no calls":                  {nil, "sent no request"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := served(tc.calls, afterNoon(0), afterNoon(26)).within(bounds)
			wantError(t, err, tc.want)
		})
	}
}

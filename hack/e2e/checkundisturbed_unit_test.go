package e2e

import "testing"

func TestAFleetIsUndisturbedWhenItsPodsAreTheSame(t *testing.T) {
	t.Parallel()
	before := []fleetPod{{"a", "1", 0}, {"b", "2", 1}, {"c", "3", 0}}
	for name, tc := range map[string]struct {
		after  []fleetPod
		shrunk int
		// want is a part of the error; empty for no error.
		want string
	}{
		"the same pods":                                {after: before},
		"one more":                                     {after: append([]fleetPod{{"d", "4", 0}}, before...)},
		"one less, by the autoscaler":                  {after: before[:2], shrunk: 1},
		"one less, not by the autoscaler":              {after: before[:2], want: "pods [c] are gone"},
		"two less, one by the autoscaler":              {after: before[:1], shrunk: 1, want: "pods [b c] are gone"},
		"a pod was replaced under its name":            {after: []fleetPod{{"a", "1", 0}, {"b", "9", 1}, {"c", "3", 0}}, want: "pods [b] are gone"},
		"a relay was restarted":                        {after: []fleetPod{{"a", "1", 0}, {"b", "2", 3}, {"c", "3", 0}}, want: "pod b was restarted 2 times"},
		"a relay was restarted while the fleet shrank": {after: []fleetPod{{"a", "1", 1}}, shrunk: 2, want: "pod a was restarted 1 times"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := undisturbed(before, tc.after, tc.shrunk)
			wantError(t, err, tc.want)
		})
	}
}

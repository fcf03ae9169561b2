package check

import "testing"

func TestAFleetIsUndisturbedWhenItsPodsAreTheSame(t *testing.T) {
	t.Parallel()
	before := []Pod{{"a", "1", 0}, {"b", "2", 1}, {"c", "3", 0}}
	for name, tc := range map[string]struct {
		after  []Pod
		shrunk int
		// want is a part of the fault; empty for none.
		want string
	}{
		"the same pods":                        {after: before},
		"one more":                             {after: append([]Pod{{"d", "4", 0}}, before...)},
		"one less, by the autoscaler":          {after: before[:2], shrunk: 1},
		"one less, by nobody":                  {after: before[:2], want: "pods [c] are gone"},
		"two less, of which it took one":       {after: before[:1], shrunk: 1, want: "pods [b c] are gone"},
		"a pod of that name is another one":    {after: []Pod{{"a", "1", 0}, {"b", "9", 1}, {"c", "3", 0}}, want: "pods [b] are gone"},
		"a relay was started again":            {after: []Pod{{"a", "1", 0}, {"b", "2", 3}, {"c", "3", 0}}, want: "pod b was restarted 2 times"},
		"started again while the fleet shrank": {after: []Pod{{"a", "1", 1}}, shrunk: 2, want: "pod a was restarted 1 times"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := Undisturbed(before, tc.after, tc.shrunk)
			wantError(t, err, tc.want)
		})
	}
}

package check

import (
	"testing"
)

func TestStepsGoForwardAndSkipNoLongOne(t *testing.T) {
	t.Parallel()
	course, long := []string{"Generate", "Fund", "Drain", "Sweep", "Done"}, []string{"Drain", "Sweep", "Done"}
	for name, tc := range map[string]struct {
		seen []string
		// want is a part of the fault; empty for none.
		want string
	}{
		"all of it":                         {course, ""},
		"a short step was over at once":     {[]string{"Fund", "Drain", "Sweep", "Done"}, ""},
		"swept without having been drained": {[]string{"Generate", "Fund", "Sweep", "Done"}, "the step Drain was skipped"},
		"drained after the sweep":           {[]string{"Sweep", "Drain", "Done"}, "Drain came after Sweep"},
		"begun again":                       {[]string{"Generate", "Drain", "Generate", "Sweep", "Done"}, "Generate came after Drain"},
		"a step that is none":               {[]string{"Drain", "Sweep", "Burn", "Done"}, "Burn is no step of Generate, Fund"},
		"nothing":                           {nil, "the step Done was skipped"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := Steps(tc.seen, course, long)
			wantError(t, err, tc.want)
		})
	}
}

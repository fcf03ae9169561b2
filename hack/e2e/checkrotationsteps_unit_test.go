package e2e

import (
	"testing"
)

func TestStepsAreInOrderAndNoLongStepIsSkipped(t *testing.T) {
	t.Parallel()
	known, required := []string{"Generate", "Fund", "Drain", "Sweep", "Done"}, []string{"Drain", "Sweep", "Done"}
	for name, tc := range map[string]struct {
		observed []string
		// want is a part of the error; empty for no error.
		want string
	}{
		"every step":                        {known, ""},
		"a short step was not observed":     {[]string{"Fund", "Drain", "Sweep", "Done"}, ""},
		"swept without having been drained": {[]string{"Generate", "Fund", "Sweep", "Done"}, "the step Drain was skipped"},
		"drained after the sweep":           {[]string{"Sweep", "Drain", "Done"}, "Drain came after Sweep"},
		"the first step came again":         {[]string{"Generate", "Drain", "Generate", "Sweep", "Done"}, "Generate came after Drain"},
		"an unknown step":                   {[]string{"Drain", "Sweep", "Burn", "Done"}, "unknown step Burn: expected one of Generate, Fund"},
		"no step":                           {nil, "the step Done was skipped"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := checkSteps(tc.observed, known, required)
			wantError(t, err, tc.want)
		})
	}
}

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// checkSteps checks observed steps: they have to be in the order of the known steps, without
// other steps, and include the required steps, which take too long to be missed.
func checkSteps(observed, known, required []string) error {
	var errs []error
	last := -1
	for _, step := range observed {
		at := slices.Index(known, step)
		switch {
		case at < 0:
			errs = append(errs, fmt.Errorf("unknown step %s: expected one of %s", step, strings.Join(known, ", ")))
		case at <= last:
			errs = append(errs, fmt.Errorf("%s came after %s", step, known[last]))
		}
		last = max(last, at)
	}
	for _, step := range required {
		if !slices.Contains(observed, step) {
			errs = append(errs, fmt.Errorf("the step %s was skipped", step))
		}
	}
	return errors.Join(errs...)
}

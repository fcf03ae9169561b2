package check

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Steps checks observed steps: they have to be in the order of course, without unknown
// steps, and include the required steps, which take too long to be missed.
func Steps(observed, course, required []string) error {
	var errs []error
	last := -1
	for _, step := range observed {
		at := slices.Index(course, step)
		switch {
		case at < 0:
			errs = append(errs, fmt.Errorf("unknown step %s: expected one of %s", step, strings.Join(course, ", ")))
		case at <= last:
			errs = append(errs, fmt.Errorf("%s came after %s", step, course[last]))
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

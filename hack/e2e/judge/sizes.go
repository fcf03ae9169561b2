package judge

import (
	"errors"
	"fmt"
	"time"
)

// Size is how many pods a fleet was to have from a time on.
type Size struct {
	At   time.Time
	Pods int32
	// Blind says that changes before this one may not have been seen.
	Blind bool
}

// Pace is how a fleet may shrink.
type Pace struct {
	// Calm is how long after the last growth the first step comes, Apart how long
	// after a step the next one.
	Calm, Apart time.Duration
	// Slack is by how much both may be missed: the times are of two clocks, to the second.
	Slack time.Duration
}

// Shrinking holds that each step down was of one pod, came when the fleet had not
// grown for long enough, and long enough after the one before. It gives the steps
// down. Growing is never a fault here: what grows is shrunk by the same rules.
func Shrinking(sizes []Size, pace Pace) (steps []Size, err error) {
	var errs []error
	var grew, shrank time.Time
	for i := 1; i < len(sizes); i++ {
		was, is := sizes[i-1], sizes[i]
		switch {
		case is.Pods > was.Pods:
			grew = is.At
			continue
		case is.Pods == was.Pods:
			continue
		}
		steps = append(steps, is)
		what := fmt.Sprintf("the fleet shrank from %d pods to %d at %s", was.Pods, is.Pods, is.At.UTC().Format(time.TimeOnly))
		if is.Pods < was.Pods-1 && !is.Blind {
			errs = append(errs, fmt.Errorf("%s: expected one pod at a time", what))
		}
		if calm := is.At.Sub(grew); !grew.IsZero() && calm < pace.Calm-pace.Slack {
			errs = append(errs, fmt.Errorf("%s, %.0f s after it had grown: expected a calm of %.0f s before", what, calm.Seconds(), pace.Calm.Seconds()))
		}
		if apart := is.At.Sub(shrank); !shrank.IsZero() && apart < pace.Apart-pace.Slack {
			errs = append(errs, fmt.Errorf("%s, %.0f s after the step before: expected %.0f s between two", what, apart.Seconds(), pace.Apart.Seconds()))
		}
		shrank = is.At
	}
	return steps, errors.Join(errs...)
}

// Largest is the most pods that a fleet was to have.
func Largest(sizes []Size) (most int32) {
	for _, s := range sizes {
		most = max(most, s.Pods)
	}
	return most
}

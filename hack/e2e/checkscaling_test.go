package e2e

import (
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
)

// fleetSize is the desired number of pods of a fleet from a time on.
type fleetSize struct {
	At   time.Time
	Pods int32
}

// appendSize adds a Deployment's size when it differs from the last one. Its time is
// that of the last write of the scale subresource, by the API server's clock; now is
// used when something other than an autoscaler changed it.
func appendSize(sizes []fleetSize, d *appsv1.Deployment, now time.Time) []fleetSize {
	last := fleetSize{Pods: -1}
	if len(sizes) > 0 {
		last = sizes[len(sizes)-1]
	}
	if d.Spec.Replicas == nil || *d.Spec.Replicas == last.Pods {
		return sizes
	}
	var at time.Time
	for _, entry := range d.ManagedFields {
		if entry.Subresource == "scale" && entry.Time != nil && entry.Time.After(at) {
			at = entry.Time.Time
		}
	}
	if !at.After(last.At) {
		at = now
	}
	return append(sizes, fleetSize{At: at, Pods: *d.Spec.Replicas})
}

// shrinkPace limits how fast a fleet may shrink.
type shrinkPace struct {
	// Stable is the shortest time from the last growth to the first step. Interval is
	// the shortest time between two steps.
	Stable, Interval time.Duration
	// Slack is the tolerance of both: the times are from two clocks, in whole seconds.
	Slack time.Duration
}

// checkShrinking checks that each step down removed one pod, came long enough after the fleet
// last grew, and long enough after the previous step. It returns the steps down. Growing
// is never a fault here: a fleet that grows shrinks by the same rules.
func checkShrinking(sizes []fleetSize, pace shrinkPace) (steps []fleetSize, err error) {
	var errs []error
	var grew, shrank time.Time
	for i := 1; i < len(sizes); i++ {
		was, is := sizes[i-1], sizes[i]
		if is.Pods >= was.Pods {
			if is.Pods > was.Pods {
				grew = is.At
			}
			continue
		}
		steps = append(steps, is)
		what := fmt.Sprintf("the fleet shrank from %d pods to %d at %s", was.Pods, is.Pods, is.At.UTC().Format(time.TimeOnly))
		if is.Pods < was.Pods-1 {
			errs = append(errs, fmt.Errorf("%s: expected one pod at a time", what))
		}
		if sinceGrowth := is.At.Sub(grew); !grew.IsZero() && sinceGrowth < pace.Stable-pace.Slack {
			errs = append(errs, fmt.Errorf("%s, %.0f s after it had grown: expected %.0f s or more", what, sinceGrowth.Seconds(), pace.Stable.Seconds()))
		}
		if apart := is.At.Sub(shrank); !shrank.IsZero() && apart < pace.Interval-pace.Slack {
			errs = append(errs, fmt.Errorf("%s, %.0f s after the previous step: expected %.0f s or more", what, apart.Seconds(), pace.Interval.Seconds()))
		}
		shrank = is.At
	}
	return steps, errors.Join(errs...)
}

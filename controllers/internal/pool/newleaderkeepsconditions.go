package pool

import "k8s.io/apimachinery/pkg/api/meta"

// lastVerdictOr returns the condition that the status has for this generation of the spec,
// or fallback if there is none. A new leader uses the last condition until its own first
// check, seconds later, so that the RelayPool does not become unready meanwhile.
func lastVerdictOr(f *Facts, kind string, fallback verdict) verdict {
	last := meta.FindStatusCondition(f.Pool.Status.Conditions, kind)
	if last == nil || last.ObservedGeneration != f.Pool.Generation {
		return fallback
	}
	return verdict{last.Status, last.Reason, last.Message}
}

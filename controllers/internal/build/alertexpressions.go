package build

import (
	"fmt"
	"strings"

	"github.com/relaypool/relaypool/relay/contract"
)

// lastHourCount returns an expression for how often a rare event was counted in the last hour.
// The first event creates its series with the value 1. increase() does not count that event,
// so each new series counts as one event.
func lastHourCount(m contract.Metric, matcher string) string {
	selector := m.Name + "{," + matcher + "}"
	return "(sum(increase(" + selector + "[1h])) or vector(0)) + (count(" + selector + " > 0 unless " + selector + " offset 1h) or vector(0))"
}

// An alert on the share of failures fires only above these counts of failures. A large share
// of few requests may be chance: in a fleet that is hardly used, a single failure would page
// somebody. minRetriedFailures is for failures that clients retry by themselves, such as 503.
const (
	minFailures        = 3
	minRetriedFailures = 10
)

// shareAbove returns an expression about the counts of two metrics within the window. It is true
// if the count of bad exceeds minCount, and also exceeds the given share of the count of all. bad
// and all are metrics with placeholders, and by has the labels by which bad is grouped. If the
// alert's duration is as long as the window, the alert does not fire for a short burst, which
// would be over when somebody looks.
func shareAbove(bad, share, all, window string, minCount int, by ...string) string {
	sum, join := "sum", ">"
	if len(by) > 0 {
		sum, join = "sum by ("+strings.Join(by, ", ")+") ", "> on () group_left ()"
	}
	return fmt.Sprintf("%s(increase(%s[%s])) %s clamp_min(%s * sum(increase(%s[%s])), %d)", sum, bad, window, join, share, all, window, minCount)
}

package chainwatch

import (
	"time"

	"github.com/relaypool/relaypool/relay/poolcheck"
)

// countFailure records a check without an answer. From the second failure in a row on, the chain is
// unavailable. Without an earlier reading, the first failure counts at once.
func (p *pool) countFailure(cause string, now time.Time) {
	p.failures++
	if p.failures == 1 {
		p.failedAt = now
	}
	if p.reading.UnavailableSince.IsZero() && (p.failures > 1 || p.reading.At.IsZero()) {
		p.reading.UnavailableSince, p.reading.Cause = p.failedAt, cause
	}
}

// awaitsConfirmation reports whether the report is the first that is worse than the reading, and
// remembers that for the next check. A change for the worse counts only when a second check confirms
// it, because one endpoint may fail for a moment.
func (p *pool) awaitsConfirmation(report *poolcheck.Report) bool {
	before, _, _ := p.reading.Report.Summary()
	after, _, _ := report.Summary()
	p.unconfirmed = before == poolcheck.OK && after != poolcheck.OK && !p.unconfirmed
	return p.unconfirmed
}

package txmgr

import (
	"errors"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
)

// sendOutage records since when no endpoint has accepted a transaction. A submit-only endpoint
// may be gone, or its quota may be used up, while other endpoints can still be read. Signed
// attempts are then rebroadcast in vain, and more processes would not help, so the queue is paused.
type sendOutage struct {
	// minDuration is how long a series of failed sends lasts before it counts as an outage.
	minDuration time.Duration
	mu          sync.Mutex
	since, last time.Time
	failures    int
}

// observe records the result of one send.
func (d *sendOutage) observe(now time.Time, err error) {
	unavailable := (*onchain.Unavailable)(nil)
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case !errors.Is(err, onchain.ErrUnavailable): // an endpoint accepted or refused the transaction
		d.failures = 0
	case errors.As(err, &unavailable) && unavailable.Kind == onchain.KindBudget:
		// The relay itself withheld the send, to keep the budget for other calls.
	default:
		if d.outdated(now) {
			d.failures = 0
		}
		if d.failures++; d.failures == 1 {
			d.since = now
		}
		d.last = now
	}
}

// reset ends the series of failed sends, because a transaction landed. An endpoint has accepted
// that transaction, even if its send returned an error.
func (d *sendOutage) reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failures = 0
}

// ongoing reports whether there is an outage: sends have failed for long enough, and until lately.
func (d *sendOutage) ongoing(now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failures >= triesBeforeHold && d.last.Sub(d.since) >= d.minDuration && !d.outdated(now)
}

// outdated reports whether the last failure is so long ago that it says nothing about the present.
func (d *sendOutage) outdated(now time.Time) bool { return now.Sub(d.last) >= 2*d.minDuration }

var errNoSubmitEndpoint = errors.New("no submit endpoint accepts transactions")

// submitOutage returns an error while no submit endpoint accepts transactions, as far as
// this process knows.
func (m *Manager) submitOutage() error {
	if m.outage.ongoing(m.Now()) {
		return errNoSubmitEndpoint
	}
	return nil
}

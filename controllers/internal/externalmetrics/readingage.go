package externalmetrics

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/relaypool/relaypool/controllers/internal/pool"
	"github.com/relaypool/relaypool/relay/contract"
)

// maxAge is the greatest age at which a reading is still served.
const maxAge = 30 * time.Second

// read returns the backlog of a RelayPool, if its last reading is not too old.
func (p *Provider) read(key types.NamespacedName) (pool.Backlog, outcome, error) {
	reading, ok := p.Readings.Reading(key)
	if !ok {
		return pool.Backlog{}, outcomeStale, unavailable(key, "its pods have not been asked yet")
	}
	age := p.Now().Sub(reading.At)
	var statusError *pool.StatusError
	switch {
	case reading.Ready == 0:
		return pool.Backlog{}, outcomeNotReady, unavailable(key, "none of its pods is ready to be asked")
	case !reading.At.IsZero() && age <= maxAge:
		return reading.Backlog, outcomeServed, nil
	case errors.As(reading.Err, &statusError) && statusError.Status == http.StatusServiceUnavailable:
		return pool.Backlog{}, outcomeStale, unavailable(key, "its pods answer that their database is away (status 503), and "+lastReadText(reading.At))
	case reading.Err != nil:
		return pool.Backlog{}, outcomeStale, unavailable(key, fmt.Sprintf("its pods do not answer on port %d (%s), and %s", contract.OperationsPort, publicError(reading.Err), lastReadText(reading.At)))
	default:
		return pool.Backlog{}, outcomeStale, unavailable(key, lastReadText(reading.At))
	}
}

// lastReadText says whether the backlog was ever read, without the exact age. The text becomes
// part of a condition's message, and a condition is written whenever its message changes.
func lastReadText(at time.Time) string {
	if at.IsZero() {
		return "it has never been read"
	}
	return fmt.Sprintf("the last reading is older than %s", maxAge)
}

package router

import (
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/internal/outbound"
)

// failureMaxAge is how long after the last requested call an open breaker counts as a failing
// router. Only swaps make calls, and without calls nobody notices that the router works again.
const failureMaxAge = 2 * time.Minute

func (c *Client) failing() bool {
	return c.breaker.State() != outbound.Closed && c.now().Sub(time.Unix(0, c.calledAt.Load())) < failureMaxAge
}

// lastFault is the kind of the last failed call's error.
type lastFault struct {
	mu   sync.Mutex
	kind string
}

func (l *lastFault) set(kind string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kind = kind
}

func (l *lastFault) get() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kind
}

package router

import (
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/internal/outbound"
)

// failureMaxAge is for how long after the last call an open breaker counts as a failing
// router. Only calls for swaps probe the router: without them, it may work again
// unnoticed.
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

package httpapi

import (
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/internal/commitments"
)

// positionAge is how long a position is used again. A rewind is seen that much later.
const positionAge = 100 * time.Millisecond

// knownPosition is the newest position that this process has read. It is enough for an answer that
// has all the leaves that the request names, and for a client that has this answer and no other: what
// other relays have published meanwhile would not change the first, and the second keeps what it has.
// Any other request asks the database: the client may know newer leaves from another relay.
type knownPosition struct {
	mu       sync.Mutex
	position commitments.Position
	readAt   time.Time
}

// get returns the zero position, which has no leaves, when the known one is too old.
func (k *knownPosition) get(now time.Time) commitments.Position {
	k.mu.Lock()
	defer k.mu.Unlock()
	if age := now.Sub(k.readAt); age < 0 || age > positionAge {
		return commitments.Position{}
	}
	return k.position
}

// set is called after a read, with a time before it.
func (k *knownPosition) set(p commitments.Position, before time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !before.Before(k.readAt) {
		k.position, k.readAt = p, before
	}
}

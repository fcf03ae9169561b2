package httpapi

import (
	"sync"

	"github.com/relaypool/relaypool/relay/refusal"
)

const (
	// readersMax bounds the answers of GET /commitments that are under way, and
	// readersPerAddress those to one client address. Each keeps a chunk in memory
	// and a socket's buffer until it is read.
	readersMax        = 128
	readersPerAddress = 8
)

// readers counts the lists that are being read.
type readers struct {
	mu        sync.Mutex
	all       int
	byAddress map[string]int
}

// enter reserves capacity for a list, which leave releases.
func (r *readers) enter(address string) (leave func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.byAddress[address] >= readersPerAddress:
		return nil, refusal.New(refusal.RateLimited,
			"%d lists are being read from your address: expected at most so many at once; read those to their end, or close them", readersPerAddress)
	case r.all >= readersMax:
		return nil, refusal.New(refusal.RateLimited,
			"%d lists are being read from this relay, as many as it serves at once: send the request again after Retry-After", readersMax)
	}
	r.all++
	r.byAddress[address]++
	return func() { r.leave(address) }, nil
}

func (r *readers) leave(address string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all--
	if r.byAddress[address]--; r.byAddress[address] == 0 {
		delete(r.byAddress, address)
	}
}

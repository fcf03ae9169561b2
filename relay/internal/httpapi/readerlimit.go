package httpapi

import (
	"sync"

	"github.com/relaypool/relaypool/relay/refusal"
)

const (
	// maxReaders is how many answers of GET /commitments may be under way, and readersPerAddress
	// is how many of them may go to one client address. Each answer keeps a chunk and a socket's
	// buffer in memory until the client has read them.
	maxReaders        = 128
	readersPerAddress = 8
)

// readers counts the answers of GET /commitments that are under way.
type readers struct {
	mu        sync.Mutex
	all       int
	byAddress map[string]int
}

// acquire reserves capacity for an answer. Calling release frees it.
func (r *readers) acquire(address string) (release func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.byAddress[address] >= readersPerAddress:
		return nil, refusal.New(refusal.RateLimited,
			"%d lists are being read from your address: that is the limit; read those to their end, or close them", readersPerAddress)
	case r.all >= maxReaders:
		return nil, refusal.New(refusal.RateLimited,
			"%d lists are being read from this relay, as many as it serves at once: send the request again after Retry-After", maxReaders)
	}
	r.all++
	r.byAddress[address]++
	return func() { r.release(address) }, nil
}

func (r *readers) release(address string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all--
	if r.byAddress[address]--; r.byAddress[address] == 0 {
		delete(r.byAddress, address)
	}
}

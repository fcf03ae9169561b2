package shieldpool

import (
	"sync"

	"github.com/gagliardetto/solana-go"
)

// nullifierCacheSize bounds each of the cache's two halves. It exceeds the nullifiers of the
// submissions that a process accepts within a landing's time.
const nullifierCacheSize = 4096

// nullifierCache has the addresses of recent nullifiers. A submission needs them in checks,
// simulation and signing, and to derive one takes several square roots.
type nullifierCache struct {
	mu sync.Mutex
	// recent receives new entries. When it is full it becomes older, whose entries are dropped.
	recent, older map[[32]byte]nullifierAddress
}

type nullifierAddress struct {
	address solana.PublicKey
	bump    uint8
}

// get returns the address of nullifier n, which derive computes if it is not known.
func (c *nullifierCache) get(n [32]byte, derive func() (solana.PublicKey, uint8, error)) (solana.PublicKey, uint8, error) {
	if a, ok := c.lookup(n); ok {
		return a.address, a.bump, nil
	}
	address, bump, err := derive()
	if err == nil {
		c.add(n, nullifierAddress{address, bump})
	}
	return address, bump, err
}

func (c *nullifierCache) lookup(n [32]byte) (nullifierAddress, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, ok := c.recent[n]
	if !ok {
		a, ok = c.older[n]
	}
	return a, ok
}

func (c *nullifierCache) add(n [32]byte, a nullifierAddress) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.recent == nil || len(c.recent) >= nullifierCacheSize {
		c.recent, c.older = make(map[[32]byte]nullifierAddress), c.recent
	}
	c.recent[n] = a
}

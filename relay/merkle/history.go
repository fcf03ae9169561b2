package merkle

import (
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
)

// History is the ring of the last roots that the pool program accepts. A root takes its place with
// every appended leaf. It is not safe for concurrent use.
type History struct {
	ring   []fr.Element
	pushed uint64
	newest map[fr.Element]uint64 // the last push of each root that is in the ring
}

// NewHistory returns an empty ring for length roots. A length below one is an error.
func NewHistory(length int) (*History, error) {
	if length < 1 {
		return nil, fmt.Errorf("root history: length must be at least 1, received %d", length)
	}
	return &History{ring: make([]fr.Element, length), newest: make(map[fr.Element]uint64, length)}, nil
}

// Push makes root the newest of the ring; the oldest leaves a full one. Zero takes its slot without
// becoming valid, as the unused slots of the chain's account do.
func (h *History) Push(root fr.Element) {
	length := uint64(len(h.ring))
	slot := &h.ring[h.pushed%length]
	if last, ok := h.newest[*slot]; ok && last+length == h.pushed {
		delete(h.newest, *slot)
	}
	*slot = root
	if !root.IsZero() {
		h.newest[root] = h.pushed
	}
	h.pushed++
}

// Contains says whether root is in the ring. The zero root never is.
func (h *History) Contains(root fr.Element) bool {
	_, ok := h.newest[root]
	return ok
}

// Headroom is the number of further pushes that root survives: the ring's length less one for the
// newest, 0 for the one that the next push drives out, −1 for a root that is not in the ring.
func (h *History) Headroom(root fr.Element) int {
	last, ok := h.newest[root]
	if !ok {
		return -1
	}
	age := int(h.pushed - 1 - last) //nolint:gosec // the age of a root in the ring is below its length
	return len(h.ring) - 1 - age
}

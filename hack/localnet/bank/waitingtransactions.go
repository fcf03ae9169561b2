package bank

import (
	"crypto/sha256"
	"slices"
	"sort"
)

type waiting struct {
	tx *Transaction
	// price is in micro-lamports a unit.
	price uint64
	// cost is the most that the transaction can cost, in units.
	cost uint64
}

// waitingList is the waiting transactions in order of descending price. Among equal
// prices the oldest transaction comes first.
type waitingList struct {
	list   []waiting
	hashes map[[sha256.Size]byte]struct{}
}

func (l *waitingList) has(tx *Transaction) bool {
	_, ok := l.hashes[tx.hash]
	return ok
}

func (l *waitingList) put(w waiting) {
	at := sort.Search(len(l.list), func(i int) bool { return l.list[i].price < w.price })
	l.list = slices.Insert(l.list, at, w)
	if l.hashes == nil {
		l.hashes = make(map[[sha256.Size]byte]struct{})
	}
	l.hashes[w.tx.hash] = struct{}{}
}

func (l *waitingList) takeAll() []waiting {
	list := l.list
	l.list, l.hashes = nil, nil
	return list
}

// Waiting is the number of transactions that wait for room in a block.
func (b *Bank) Waiting() int {
	b.leaderMu.Lock()
	defer b.leaderMu.Unlock()
	return len(b.waiting.list)
}

// landWaiting lands the waiting transactions that fit in the new open block, and
// drops the transactions that can no longer land. The caller holds leaderMu.
func (b *Bank) landWaiting() {
	for _, w := range b.waiting.takeAll() {
		if b.used.fits(b.opts.Limits, w.tx.Message, w.cost) {
			_, _ = b.land(w.tx) // the sender has already been answered
			continue
		}
		b.mu.RLock()
		expired := b.check(w.tx, b.chain.newest())
		b.mu.RUnlock()
		if expired == nil {
			b.waiting.put(w)
		}
	}
}

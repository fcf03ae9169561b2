package admission

import (
	"sync"
	"time"
)

// busyRoots are the roots for which the pool was busy a moment ago. While many clients try again, each
// of them would otherwise count the queued submissions, which leaves the database no time for landings.
type busyRoots struct {
	mu sync.Mutex
	// ahead is how many submissions were ahead, by the root's seq, while the tree had nextIndex leaves.
	ahead     map[uint64]int
	nextIndex uint64
	since     time.Time
}

// find returns how many submissions are ahead if the root was refused while the tree was the same, or newer.
func (b *busyRoots) find(w rootWindow, now time.Time) (ahead int, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.hold(w, now) {
		return 0, false
	}
	ahead, ok = b.ahead[w.seq]
	return ahead, ok
}

func (b *busyRoots) add(w rootWindow, ahead int, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.hold(w, now) {
		b.ahead, b.nextIndex, b.since = make(map[uint64]int), w.tree.NextIndex, now
	}
	b.ahead[w.seq] = ahead
}

// hold reports whether what was counted still holds. Submissions that land change the tree. Few end
// otherwise, so these may wait for treeMaxAge.
func (b *busyRoots) hold(w rootWindow, now time.Time) bool {
	return b.nextIndex >= w.tree.NextIndex && now.Sub(b.since) < treeMaxAge
}

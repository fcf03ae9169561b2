package pool

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// versions are, by RelayPool, the one that our last write of a status replaced. A
// cache that still shows it is behind: a pass would go by it, do what it may, and
// then find that its status cannot be written, so that a step of a rotation might
// be taken and never told. After a while it is more likely that the API server's
// data were put back to that version, and passes go on.
type versions struct{ by sync.Map }

// replacement is a version, and when it was replaced.
type replacement struct {
	version string
	at      time.Time
}

// replacedFor is how long a cache may be behind before its version is believed.
const replacedFor = time.Minute

func (v *versions) set(key types.NamespacedName, version string, now time.Time) {
	v.by.Store(key, replacement{version, now})
}

func (v *versions) forget(key types.NamespacedName) { v.by.Delete(key) }

func (v *versions) has(key types.NamespacedName, version string, now time.Time) bool {
	known, _ := v.by.Load(key)
	last, ok := known.(replacement)
	return ok && last.version == version && now.Sub(last.at) < replacedFor
}

package pool

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// replacedVersions maps a RelayPool to the resource version that the last write of its status
// replaced. A cache that still returns this version is stale. A pass on this version might
// take a step of a rotation and then fail to write the status, so that the step would never
// be reported. If the cache returns the version for a long time, the API server was probably
// restored to it, and passes continue.
type replacedVersions struct{ byPool sync.Map }

// replacement is a resource version and the time when it was replaced.
type replacement struct {
	version string
	at      time.Time
}

// replacedMaxAge is the time after which a replaced version that the cache still returns is
// trusted again.
const replacedMaxAge = time.Minute

func (v *replacedVersions) set(key types.NamespacedName, version string, now time.Time) {
	v.byPool.Store(key, replacement{version, now})
}

func (v *replacedVersions) forget(key types.NamespacedName) { v.byPool.Delete(key) }

func (v *replacedVersions) isReplaced(key types.NamespacedName, version string, now time.Time) bool {
	stored, _ := v.byPool.Load(key)
	last, ok := stored.(replacement)
	return ok && last.version == version && now.Sub(last.at) < replacedMaxAge
}

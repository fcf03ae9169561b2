package apply

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// poolState is what the Applier remembers of one RelayPool's objects from earlier passes. With
// it, the Applier saves API calls, and distinguishes drift from a change of the spec. After a
// start of the operator, the poolState is empty, and objects are compared field by field.
type poolState struct {
	mutex   sync.Mutex // locked during a pass
	owner   types.UID
	objects map[Ref]*entry
	// emptyKinds are the optional kinds without an object of the RelayPool.
	emptyKinds map[schema.GroupVersionKind]bool
}

// entry is what is remembered of one object.
type entry struct {
	// digest is the digest of the wanted content when the object was last up to date. uid and
	// resourceVersion belong to the object at that time.
	digest          digest
	uid             types.UID
	resourceVersion string
	// checkedAt is when the object was last compared with the wanted content.
	checkedAt time.Time

	// refusedDigest is the digest of the wanted content that the API server refused, and
	// refusedAt is the time of the refusal.
	refusedDigest digest
	refusedAt     time.Time
	refusal       Refusal

	repairLimiter *rate.Limiter
}

type digest [sha256.Size]byte

// digestOf returns the digest of an object's content. Equal contents have equal digests,
// because json.Marshal sorts the keys.
func digestOf(wanted map[string]any) (digest, error) {
	raw, err := json.Marshal(wanted)
	if err != nil {
		return digest{}, fmt.Errorf("write as JSON: %w", err)
	}
	return sha256.Sum256(raw), nil
}

func (s *poolState) entry(ref Ref) *entry {
	e := s.objects[ref]
	if e == nil {
		e = &entry{repairLimiter: newRepairLimiter()}
		s.objects[ref] = e
	}
	return e
}

// wantedUnchanged reports whether the wanted content is the same as when the object was last up
// to date.
func (e *entry) wantedUnchanged(wanted digest) bool { return e.uid != "" && e.digest == wanted }

// remember records that the object is up to date: it has the wanted content at this resource
// version.
func (e *entry) remember(wanted digest, uid types.UID, resourceVersion string) {
	e.digest, e.uid, e.resourceVersion = wanted, uid, resourceVersion
	e.refusedDigest = digest{}
}

// unchanged reports whether the wanted content and the object are the same as when the object was
// last up to date. If the cache shows a state from before our last write, the object counts as
// the same.
func (e *entry) unchanged(wanted digest, uid types.UID, resourceVersion string) bool {
	if !e.wantedUnchanged(wanted) || e.uid != uid {
		return false
	}
	return e.resourceVersion == resourceVersion || e.isAhead(uid, resourceVersion)
}

// isAhead reports whether our last write is newer than the given state of the object.
func (e *entry) isAhead(uid types.UID, resourceVersion string) bool {
	if e.uid == "" || e.uid != uid {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(resourceVersion, e.resourceVersion)
	return err == nil && order < 0
}

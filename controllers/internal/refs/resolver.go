package refs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/tenancy"
)

const (
	// parallel is how many objects of one RelayPool are read at once.
	parallel = 4
	// readTimeout bounds the reading of all objects of one RelayPool, because the
	// reading occupies a worker of the reconciler.
	readTimeout = 10 * time.Second
)

// Options make a Resolver.
type Options struct {
	// Reader reads from the API server directly, because a cache would list and watch
	// Secrets. Required.
	Reader client.Reader
	// Now is the clock. Required.
	Now func() time.Time
	// Random returns numbers from 0 up to 1, for the jitter. Required.
	Random func() float64
	// Interval is the time between two readings of a RelayPool's objects. 0 means
	// DefaultInterval.
	Interval time.Duration
	// Policy decides which objects RelayPools may use.
	Policy tenancy.Policy
}

// Resolver reads the objects that RelayPools name, and keeps the results until the next reading
// is due. It is safe for concurrent use.
type Resolver struct {
	Options
	mu    sync.Mutex
	pools map[types.NamespacedName]*results
}

// results are what the Resolver keeps for one RelayPool until the next reading.
type results struct {
	uid        types.UID
	generation int64
	facts      Facts
	found      map[namedValue]finding
}

// finding is the last known state of one named value.
type finding struct {
	// at is the time at which the object was read; zero if it was never read.
	at      time.Time
	object  Object // the UID is empty while the object does not exist
	problem *Problem
	address string
	content []byte
}

// NewResolver makes a Resolver. It returns an error if a required option is missing or Interval
// is negative.
func NewResolver(o Options) (*Resolver, error) {
	if o.Reader == nil || o.Now == nil || o.Random == nil {
		return nil, errors.New("make resolver of references: Reader, Now and Random are required")
	}
	if o.Interval < 0 {
		return nil, fmt.Errorf("make resolver of references: Interval is %s, want 0 or more", o.Interval)
	}
	if o.Interval == 0 {
		o.Interval = DefaultInterval
	}
	return &Resolver{Options: o, pools: map[types.NamespacedName]*results{}}, nil
}

// Resolve returns the facts of a RelayPool. If the spec has changed or the interval is over,
// Resolve reads the objects. If not, it returns the last results. An object that cannot be read is
// listed in Facts.Unread, and is not an error. Resolve returns an error only if ctx has ended.
func (r *Resolver) Resolve(ctx context.Context, pool *v1alpha1.RelayPool) (Facts, error) {
	last := r.lastResults(pool)
	if last.generation == pool.Generation && r.Now().Before(last.facts.Next) {
		return last.facts, nil
	}
	began := r.Now()
	all := namedValues(&pool.Spec, r.Policy.RequireLabel)
	found, unread := r.read(ctx, client.ObjectKeyFromObject(pool), all, last.found, began)
	if err := ctx.Err(); err != nil {
		return Facts{}, fmt.Errorf("read the Secrets and ConfigMaps of the RelayPool: %w", err)
	}
	facts := factsOf(all, pool.Spec.FeePayers.Signers, found, unread)
	facts.ReadAt = began
	facts.Next = began.Add(r.interval(facts))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pools[client.ObjectKeyFromObject(pool)] = &results{pool.UID, pool.Generation, facts, found}
	return facts, nil
}

// lastResults returns the results of this RelayPool, but not the results of an earlier RelayPool
// of the same name. If there are none, it returns results with a generation that no RelayPool has.
func (r *Resolver) lastResults(pool *v1alpha1.RelayPool) results {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := r.pools[client.ObjectKeyFromObject(pool)]; last != nil && last.uid == pool.UID {
		return *last
	}
	return results{generation: -1}
}

// Forget drops the results of a deleted RelayPool.
func (r *Resolver) Forget(pool types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pools, pool)
}

// read gets each object once, a few at a time. If an object could not be read, its
// named values keep their last finding.
func (r *Resolver) read(ctx context.Context, pool types.NamespacedName, all []namedValue, last map[namedValue]finding, now time.Time) (map[namedValue]finding, []Unread) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var (
		mu       sync.Mutex
		group    sync.WaitGroup
		found    = make(map[namedValue]finding, len(all))
		unread   []Unread
		capacity = make(chan struct{}, parallel)
	)
	for object, wanted := range byObject(all) {
		group.Go(func() {
			capacity <- struct{}{}
			defer func() { <-capacity }()
			got, err := r.get(ctx, pool.Namespace, object)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				unread = append(unread, keepLast(object, wanted, last, found, err))
				return
			}
			for _, n := range wanted {
				found[n] = evaluate(n, got, r.Policy, pool, now)
			}
			discard(object.kind, got.values)
		})
	}
	group.Wait()
	return found, unread
}

func byObject(all []namedValue) map[object][]namedValue {
	grouped := map[object][]namedValue{}
	for _, n := range all {
		grouped[n.object] = append(grouped[n.object], n)
	}
	return grouped
}

// content is what was read of an object. If the object does not exist, the UID of object is
// empty.
type content struct {
	values map[string][]byte
	labels map[string]string
	object Object
}

// get reads one object. It returns no error if the object does not exist.
func (r *Resolver) get(ctx context.Context, namespace string, o object) (content, error) {
	key := client.ObjectKey{Namespace: namespace, Name: o.name}
	got := content{object: Object{Kind: o.kind, Name: o.name}}
	if o.kind == Secret {
		var s corev1.Secret
		if err := r.Reader.Get(ctx, key, &s); err != nil {
			return got, client.IgnoreNotFound(err)
		}
		got.object.UID, got.object.ResourceVersion = s.UID, s.ResourceVersion
		got.values, got.labels = s.Data, s.Labels
		return got, nil
	}
	var c corev1.ConfigMap
	if err := r.Reader.Get(ctx, key, &c); err != nil {
		return got, client.IgnoreNotFound(err)
	}
	got.object.UID, got.object.ResourceVersion = c.UID, c.ResourceVersion
	got.labels, got.values = c.Labels, make(map[string][]byte, len(c.Data)+len(c.BinaryData))
	for k, v := range c.Data {
		got.values[k] = []byte(v)
	}
	for k, v := range c.BinaryData {
		got.values[k] = v
	}
	return got, nil
}

// discard overwrites a Secret's values as soon as they have been checked. It cannot
// overwrite the copies in the client's buffers.
func discard(kind Kind, values map[string][]byte) {
	if kind == Secret {
		for _, v := range values {
			clear(v)
		}
	}
}

// Value reads one value of a Secret that a RelayPool names, without the white space around
// it. The caller must use the value at once and not keep it. Errors name the Secret and the
// key.
func (r *Resolver) Value(ctx context.Context, pool types.NamespacedName, ref v1alpha1.SecretKeyReference) (string, error) {
	return r.value(ctx, pool, namedValue{object: object{Secret, ref.Name}, key: ref.Key, format: nonEmpty})
}

func (r *Resolver) value(ctx context.Context, pool types.NamespacedName, n namedValue) (string, error) {
	got, err := r.get(ctx, pool.Namespace, n.object)
	if err != nil {
		return "", fmt.Errorf("read %s %s: %w", n.kind, n.name, err)
	}
	defer discard(n.kind, got.values)
	if p := evaluate(n, got, r.Policy, pool, time.Time{}).problem; p != nil {
		return "", errors.New(p.Message)
	}
	return trimSpace(got.values[n.key]), nil
}

package keys

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/refs"
)

const (
	// DefaultInterval is the time between two readings of a RelayPool's keys when
	// nothing was written in between.
	DefaultInterval = 5 * time.Minute
	// WatchedRevisions is how many revisions below the newest are read, so that the
	// balances of their retired keys are monitored.
	WatchedRevisions = 5
	// maxKeys bounds the keys of one revision, as the CRD does.
	maxKeys = 32
	// maxRevision bounds the search for revisions above the spec's. maxMissingRevisions
	// bounds the search for revisions below the spec's, which has to end within
	// readTimeout.
	maxRevision         = 1000
	maxMissingRevisions = 200
	// problemFactor divides the interval while a Secret is not the key that it should be, or a copy
	// is not acknowledged, because somebody may be about to correct it, and during a rotation, in
	// which a lost key is lost money.
	problemFactor = 5
	jitter        = 0.1
	readTimeout   = 20 * time.Second
)

// ObserverOptions are the options of an Observer.
type ObserverOptions struct {
	// Reader reads from the API server directly, because a cache would list and watch
	// Secrets. Required.
	Reader client.Reader
	// Now is the clock. Required.
	Now func() time.Time
	// Random returns numbers from 0 up to 1, for the jitter. Required.
	Random func() float64
	// Interval between readings. 0 is DefaultInterval.
	Interval time.Duration
}

// Observer reads generated keys by their names, and remembers their public
// halves until the next reading is due. It is safe for concurrent use.
type Observer struct {
	ObserverOptions
	mu    sync.Mutex
	pools map[types.NamespacedName]lastReading
}

// lastReading is the last reading of one RelayPool's keys.
type lastReading struct {
	uid        types.UID
	generation int64
	facts      Facts
}

// NewObserver makes an Observer. It returns an error if an option is missing or invalid.
func NewObserver(o ObserverOptions) (*Observer, error) {
	if o.Reader == nil || o.Now == nil || o.Random == nil {
		return nil, errors.New("make observer of keys: Reader, Now and Random are required")
	}
	if o.Interval < 0 {
		return nil, fmt.Errorf("make observer of keys: Interval is %s, want 0 or more", o.Interval)
	}
	if o.Interval == 0 {
		o.Interval = DefaultInterval
	}
	return &Observer{ObserverOptions: o, pools: map[types.NamespacedName]lastReading{}}, nil
}

// Observe returns the existing generated keys of a RelayPool. It reads them when the spec has
// changed, something was written (Invalidate) or the interval is over. After an error the
// caller must decide nothing: a Secret that cannot be read does not count as missing.
func (o *Observer) Observe(ctx context.Context, pool *v1alpha1.RelayPool) (Facts, error) {
	name := client.ObjectKeyFromObject(pool)
	o.mu.Lock()
	last, known := o.pools[name]
	o.mu.Unlock()
	known = known && last.uid == pool.UID
	if known && last.generation == pool.Generation && o.Now().Before(last.facts.Next) {
		return last.facts, nil
	}
	began := o.Now()
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	s := search{o: o, pool: pool, exists: map[string]bool{}}
	if err := s.run(ctx, known, last.facts); err != nil {
		return Facts{}, fmt.Errorf("read fee payers' keys: %w", err)
	}
	facts := s.facts()
	facts.ReadAt = began
	interval := o.Interval
	if len(facts.Problems) > 0 || facts.rotating() || facts.waitsForBackup(pool) {
		interval /= problemFactor
	}
	facts.Next = began.Add(time.Duration(float64(interval) * (1 - jitter + 2*jitter*o.Random())))
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pools[name] = lastReading{pool.UID, pool.Generation, facts}
	return facts, nil
}

// Invalidate makes the next Observe read again. That reading still starts with the known keys,
// unless the RelayPool was recreated.
func (o *Observer) Invalidate(pool types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if last, ok := o.pools[pool]; ok {
		last.facts.Next = time.Time{}
		o.pools[pool] = last
	}
}

// Forget drops the reading of a deleted RelayPool.
func (o *Observer) Forget(pool types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.pools, pool)
}

// search reads Secrets by their names, each name once.
type search struct {
	o        *Observer
	pool     *v1alpha1.RelayPool
	exists   map[string]bool // whether a Secret that was read exists, by its name
	keys     []Key
	problems []refs.Problem
}

func (s *search) run(ctx context.Context, known bool, last Facts) error {
	// Known keys are read first, because the search below might not find them.
	for _, secret := range s.knownNames(last) {
		r, i, _ := numbersOf(s.pool.Name, secret)
		if _, err := s.readSecret(ctx, r, i); err != nil {
			return err
		}
	}
	if wantedCount(s.pool) == 0 {
		return nil
	}
	top, err := s.findNewest(ctx, known)
	if err != nil || top < 0 {
		return err
	}
	for r := top; r >= max(0, top-WatchedRevisions); r-- {
		if err := s.readRevision(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// knownNames returns the names of the keys' Secrets in the last reading and in the status.
func (s *search) knownNames(last Facts) []string {
	var names []string
	for _, k := range last.Keys {
		names = append(names, k.Secret)
	}
	for _, p := range s.pool.Status.FeePayers {
		if _, _, ok := numbersOf(s.pool.Name, p.SecretName); ok {
			names = append(names, p.SecretName)
		}
	}
	return names
}

// readRevision reads the keys of one revision: as many as the spec wants, and then
// further ones until one is missing.
func (s *search) readRevision(ctx context.Context, r int32) error {
	for i := range int32(maxKeys) {
		exists, err := s.readSecret(ctx, r, i)
		if err != nil {
			return err
		}
		if !exists && i >= wantedCount(s.pool) {
			return nil
		}
	}
	return nil
}

// readSecret reads one Secret, unless it was read before, and reports whether it exists.
func (s *search) readSecret(ctx context.Context, revision, index int32) (bool, error) {
	name := SecretName(s.pool.Name, revision, index)
	if exists, ok := s.exists[name]; ok {
		return exists, nil
	}
	var secret corev1.Secret
	err := s.o.Reader.Get(ctx, client.ObjectKey{Namespace: s.pool.Namespace, Name: name}, &secret)
	if apierrors.IsNotFound(err) {
		s.exists[name] = false
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read Secret %s: %w", name, err)
	}
	s.exists[name] = true
	key, fault := keyOf(s.pool.Name, &secret, revision, index)
	// Clear the values that can be cleared. The client's buffers keep copies that cannot.
	for _, value := range secret.Data {
		clear(value)
	}
	if fault != "" {
		s.problems = append(s.problems, foreignSecret(name, fault))
		return true, nil
	}
	s.keys = append(s.keys, key)
	return true, nil
}

// rotating reports whether keys are on their way in or out.
func (f *Facts) rotating() bool {
	return slices.ContainsFunc(f.Keys, func(k Key) bool {
		return k.State == v1alpha1.PayerIncoming || k.State == v1alpha1.PayerDraining
	})
}

func (s *search) facts() Facts {
	slices.SortFunc(s.keys, func(a, b Key) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Index, b.Index))
	})
	// An address can appear twice only if somebody copied a key.
	secretByAddress := map[string]string{}
	s.keys = slices.DeleteFunc(s.keys, func(k Key) bool {
		firstSecret, duplicate := secretByAddress[k.Address]
		if !duplicate {
			secretByAddress[k.Address] = k.Secret
			return false
		}
		s.problems = append(s.problems, foreignSecret(k.Secret, "it holds the same key as Secret "+firstSecret))
		return true
	})
	slices.SortFunc(s.problems, func(a, b refs.Problem) int { return cmp.Compare(a.Name, b.Name) })
	return Facts{Keys: s.keys, Problems: s.problems}
}

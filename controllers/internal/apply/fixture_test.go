package apply_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/discovery"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/apply"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
)

const poolName = "demo"

// world is an Applier on a real API server, with its own namespace, a cache
// configured as the operator's, and a clock that the test moves.
type world struct {
	t       *testing.T
	config  *rest.Config
	scheme  *runtime.Scheme
	live    client.Client // reads the API server, for the test
	cached  client.Client // reads the cache, as the operator does
	applier *apply.Applier
	owner   *v1alpha1.RelayPool
	clock   *clock
	calls   *calls
}

type clock struct {
	mutex sync.Mutex
	now   time.Time
}

func (c *clock) Now() time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.now = c.now.Add(d)
}

// calls records the calls that an Applier makes to the API server.
type calls struct {
	mutex  sync.Mutex
	writes []string
	reads  []string
}

func (c *calls) write(format string, args ...any) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.writes = append(c.writes, fmt.Sprintf(format, args...))
}

func (c *calls) read(format string, args ...any) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.reads = append(c.reads, fmt.Sprintf(format, args...))
}

// reset returns the recorded calls, and clears them.
func (c *calls) reset() (writes, reads []string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	writes, reads = c.writes, c.reads
	c.writes, c.reads = nil, nil
	return writes, reads
}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme} {
		must(t, add(scheme))
	}
	return scheme
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOn(t, apiservertest.Config(t), apiservertest.Namespace(t))
}

func newWorldOn(t *testing.T, config *rest.Config, namespace string) *world {
	t.Helper()
	w := &world{
		t: t, config: config, scheme: newScheme(t), calls: &calls{},
		clock: &clock{now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)},
	}
	live, err := client.New(w.config, client.Options{Scheme: w.scheme})
	must(t, err)
	w.live = live
	w.owner = &v1alpha1.RelayPool{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: poolName, UID: uuid.NewUUID(),
	}}
	w.cached = w.newCachedClient()
	w.restart()
	return w
}

// newCachedClient returns a client like that of the operator's manager: it reads
// owned kinds from a cache that selects them by label.
func (w *world) newCachedClient() client.Client {
	w.t.Helper()
	requirement, err := labels.NewRequirement(build.LabelPool, selection.Exists, nil)
	must(w.t, err)
	byObject := map[client.Object]cache.ByObject{}
	for _, o := range apply.OwnedTypes() {
		byObject[o] = cache.ByObject{Label: labels.NewSelector().Add(*requirement), Transform: apply.CacheTransform}
	}
	c, err := cache.New(w.config, cache.Options{
		Scheme: w.scheme, ByObject: byObject,
		DefaultNamespaces: map[string]cache.Config{w.owner.Namespace: {}},
	})
	must(w.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Start(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("cache: %v", err)
		}
	})
	for _, o := range apply.OwnedTypes() {
		_, err := c.GetInformer(ctx, o, cache.BlockUntilSynced(false))
		must(w.t, err)
	}
	if !c.WaitForCacheSync(w.t.Context()) {
		w.t.Fatal("the cache did not synchronise")
	}
	cached, err := client.NewWithWatch(w.config, client.Options{Scheme: w.scheme, Cache: &client.CacheOptions{Reader: c}})
	must(w.t, err)
	return interceptor.NewClient(cached, interceptor.Funcs{
		Apply: func(ctx context.Context, inner client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if n, ok := o.(interface{ GetName() string }); ok {
				w.calls.write("apply %s", n.GetName())
			} else {
				w.calls.write("apply %T", o)
			}
			return inner.Apply(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, inner client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			w.calls.write("delete %s", o.GetName())
			return inner.Delete(ctx, o, opts...)
		},
	})
}

// restart makes a new Applier, which has no memory.
func (w *world) restart() {
	w.t.Helper()
	direct, err := client.NewWithWatch(w.config, client.Options{Scheme: w.scheme})
	must(w.t, err)
	reader := interceptor.NewClient(direct, interceptor.Funcs{
		Get: func(ctx context.Context, inner client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			w.calls.read("get %T %s", o, key.Name)
			return inner.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, inner client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			w.calls.read("list %T", l)
			return inner.List(ctx, l, opts...)
		},
	})
	disco, err := discovery.NewDiscoveryClientForConfig(w.config)
	must(w.t, err)
	capabilities, err := apply.NewCapabilities(disco, w.clock.Now, 0)
	must(w.t, err)
	w.applier, err = apply.New(apply.Options{Client: w.cached, Live: reader, Capabilities: capabilities, Now: w.clock.Now})
	must(w.t, err)
}

// apply runs a pass and fails the test on an error.
func (w *world) apply(objects []build.Object, opts ...apply.Option) apply.Result {
	w.t.Helper()
	result, err := w.applier.Apply(w.t.Context(), w.owner, objects, opts...)
	must(w.t, err)
	return result
}

// applyUntilUnchanged waits until the cache has every write, and runs passes until one changes
// nothing. It fails the test after 30 s.
func (w *world) applyUntilUnchanged(objects []build.Object, opts ...apply.Option) {
	w.t.Helper()
	w.waitForCache(objects)
	eventually(w.t, func() error {
		result, err := w.applier.Apply(w.t.Context(), w.owner, objects, opts...)
		if err != nil {
			return err
		}
		if result.Changed() {
			return fmt.Errorf("still changing: %+v", result)
		}
		return nil
	})
	w.calls.reset()
}

// waitForCache waits until the cache has the newest state of the objects.
func (w *world) waitForCache(objects []build.Object) {
	w.t.Helper()
	eventually(w.t, func() error {
		for _, o := range objects {
			if isOptional(o) {
				continue
			}
			live, err := w.typed(o)
			if err != nil {
				return err
			}
			cached := live.DeepCopyObject().(client.Object)
			if err := w.cached.Get(w.t.Context(), client.ObjectKeyFromObject(live), cached); err != nil {
				return err
			}
			if cached.GetResourceVersion() != live.GetResourceVersion() {
				return fmt.Errorf("cache of %s is at %s, the server at %s", o.Kind.Kind, cached.GetResourceVersion(), live.GetResourceVersion())
			}
		}
		return nil
	})
}

func (w *world) typed(o build.Object) (client.Object, error) {
	object, err := w.scheme.New(o.Kind)
	if err != nil {
		return nil, err
	}
	typed := object.(client.Object)
	err = w.live.Get(w.t.Context(), client.ObjectKey{Namespace: w.owner.Namespace, Name: o.Name}, typed)
	return typed, err
}

// get reads an object from the API server.
func (w *world) get(o build.Object) *unstructured.Unstructured {
	w.t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(o.Kind)
	must(w.t, w.live.Get(w.t.Context(), client.ObjectKey{Namespace: w.owner.Namespace, Name: o.Name}, u))
	return u
}

// versions returns the resource version of each object.
func (w *world) versions(objects []build.Object) map[string]string {
	w.t.Helper()
	out := map[string]string{}
	for _, o := range objects {
		out[o.Kind.Kind+" "+o.Name] = w.get(o).GetResourceVersion()
	}
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually polls until try returns nil, for at most 30 s.
func eventually(t *testing.T, try func() error) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %v", err)
		}
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func names(refs []apply.Ref) string {
	out := make([]string, 0, len(refs))
	for _, r := range refs {
		out = append(out, r.String())
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func errorf(format string, args ...any) error { return fmt.Errorf(format, args...) }

func isOptional(o build.Object) bool { return slices.Contains(build.OptionalKinds(), o.Kind) }

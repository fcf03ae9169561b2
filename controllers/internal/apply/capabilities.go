package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/relaypool/relaypool/controllers/internal/build"
)

// Discovery asks the API server which resources a group and version have. client-go's discovery
// client implements it.
type Discovery interface {
	ServerResourcesForGroupVersionWithContext(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)
}

// Capabilities reports which optional kinds the cluster has. It asks again once per
// interval, so that it notices CRDs that appear or vanish later. It is safe for
// concurrent use.
type Capabilities struct {
	discovery Discovery
	now       func() time.Time
	interval  time.Duration

	mutex     sync.Mutex
	checkedAt time.Time
	kinds     map[schema.GroupVersionKind]bool
}

// NewCapabilities makes Capabilities that ask again after interval, or after
// DefaultCapabilityInterval if interval is 0.
func NewCapabilities(discovery Discovery, now func() time.Time, interval time.Duration) (*Capabilities, error) {
	if discovery == nil || now == nil {
		return nil, errors.New("apply: capabilities need a discovery client and a clock")
	}
	if interval == 0 {
		interval = DefaultCapabilityInterval
	}
	return &Capabilities{discovery: discovery, now: now, interval: interval}, nil
}

// Has reports whether the cluster has an optional kind. If the API server does not answer, Has
// uses the last answer. If there is no last answer, it returns the error.
func (c *Capabilities) Has(ctx context.Context, kind schema.GroupVersionKind) (bool, error) {
	kinds, err := c.Kinds(ctx)
	if err != nil {
		return false, err
	}
	return kinds[kind], nil
}

// Kinds returns each optional kind and whether the cluster has it.
func (c *Capabilities) Kinds(ctx context.Context) (map[schema.GroupVersionKind]bool, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.kinds != nil && c.now().Sub(c.checkedAt) < c.interval {
		return c.kinds, nil
	}
	kinds, err := c.discover(ctx)
	if err != nil {
		if c.kinds == nil {
			return nil, err
		}
		// An existing kind is probably still there; ask again after the interval.
		c.checkedAt = c.now()
		return c.kinds, nil
	}
	c.kinds, c.checkedAt = kinds, c.now()
	return kinds, nil
}

// ForBuild returns what Kinds returns, in the form that package build needs.
func (c *Capabilities) ForBuild(ctx context.Context) (build.Capabilities, error) {
	kinds, err := c.Kinds(ctx)
	return build.Capabilities{
		PodMonitor:     kinds[build.KindPodMonitor],
		PrometheusRule: kinds[build.KindPrometheusRule],
		ScaledObject:   kinds[build.KindScaledObject],
		HTTPRoute:      kinds[build.KindHTTPRoute],
	}, err
}

// Invalidate makes the next call of Kinds ask the API server.
func (c *Capabilities) Invalidate() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.checkedAt = time.Time{}
}

func (c *Capabilities) discover(ctx context.Context) (map[schema.GroupVersionKind]bool, error) {
	lists := map[schema.GroupVersion]*metav1.APIResourceList{}
	kinds := map[schema.GroupVersionKind]bool{}
	for _, kind := range build.OptionalKinds() {
		gv := kind.GroupVersion()
		list, asked := lists[gv]
		if !asked {
			var err error
			list, err = c.discovery.ServerResourcesForGroupVersionWithContext(ctx, gv.String())
			if err != nil && !apierrors.IsNotFound(err) {
				return nil, fmt.Errorf("discover %s: %w", gv, err)
			}
			lists[gv] = list
		}
		kinds[kind] = serves(list, kind.Kind)
	}
	return kinds, nil
}

func serves(list *metav1.APIResourceList, kind string) bool {
	if list == nil {
		return false
	}
	for i := range list.APIResources {
		if list.APIResources[i].Kind == kind {
			return true
		}
	}
	return false
}

func isOptionalKind(kind schema.GroupVersionKind) bool {
	return slices.Contains(build.OptionalKinds(), kind)
}

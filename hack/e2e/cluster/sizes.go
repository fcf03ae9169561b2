package cluster

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/relaypool/relaypool/hack/e2e/judge"
)

// Sizes records each change of how many pods a Deployment is to have.
type Sizes struct {
	c               *Cluster
	namespace, name string
	now             func() time.Time

	following sync.WaitGroup
	mu        sync.Mutex
	seen      []judge.Size
	err       error
	// version is where the watch goes on; empty when it has to begin anew, and what
	// comes first then may hide changes.
	version string
}

// FollowSizes begins to record, until ctx ends; the Deployment need not be there.
func (c *Cluster) FollowSizes(ctx context.Context, namespace, name string, now func() time.Time) *Sizes {
	s := &Sizes{c: c, namespace: namespace, name: name, now: now}
	s.following.Go(func() {
		tick := time.NewTicker(Poll)
		defer tick.Stop()
		for ctx.Err() == nil {
			err := s.once(ctx)
			s.mu.Lock()
			s.err = err
			s.mu.Unlock()
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	})
	return s
}

// once watches until the watch breaks, from where the last one did.
func (s *Sizes) once(ctx context.Context) error {
	deployments := s.c.Kube.AppsV1().Deployments(s.namespace)
	options := metav1.ListOptions{FieldSelector: "metadata.name=" + s.name, AllowWatchBookmarks: true}
	if s.version == "" {
		list, err := deployments.List(ctx, options)
		if err != nil {
			return err
		}
		for i := range list.Items {
			s.take(&list.Items[i], true)
		}
		s.version = list.ResourceVersion
	}
	options.ResourceVersion = s.version
	watching, err := deployments.Watch(ctx, options)
	if err != nil {
		s.lost(err)
		return err
	}
	defer watching.Stop()
	for event := range watching.ResultChan() {
		switch d, is := event.Object.(*appsv1.Deployment); {
		case event.Type == watch.Error:
			err := apierrors.FromObject(event.Object)
			s.lost(err)
			return err
		case !is:
			return errors.New("the watch gave something else than a Deployment")
		default:
			s.version = d.ResourceVersion
			if event.Type != watch.Bookmark {
				s.take(d, false)
			}
		}
	}
	return nil
}

// lost begins anew when the API server has forgotten where the watch was.
func (s *Sizes) lost(err error) {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		s.version = ""
	}
}

// take records the Deployment's size when it is another one. blind says that
// changes may have passed unseen.
func (s *Sizes) take(d *appsv1.Deployment, blind bool) {
	if d.Spec.Replicas == nil {
		return // the API server fills it in
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	last := judge.Size{Pods: -1}
	if len(s.seen) > 0 {
		last = s.seen[len(s.seen)-1]
	}
	if *d.Spec.Replicas == last.Pods {
		return
	}
	at := scaled(d)
	if !at.After(last.At) {
		at = s.now() // somebody else than an autoscaler changed it
	}
	s.seen = append(s.seen, judge.Size{At: at, Pods: *d.Spec.Replicas, Blind: blind})
}

// scaled is when the scale subresource was last written, by the API server's
// clock, which a late watch does not change; zero for never.
func scaled(d *appsv1.Deployment) (at time.Time) {
	for _, entry := range d.ManagedFields {
		if entry.Subresource == "scale" && entry.Time != nil && entry.Time.After(at) {
			at = entry.Time.Time
		}
	}
	return at
}

// Seen are the sizes so far, the oldest first.
func (s *Sizes) Seen() []judge.Size {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// Err is what stands against the watch now; nil while it goes on.
func (s *Sizes) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Close waits for the watch. End its context first.
func (s *Sizes) Close() { s.following.Wait() }

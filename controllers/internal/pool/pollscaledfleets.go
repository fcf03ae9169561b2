package pool

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
)

const (
	// listInterval is the time between refreshes of the list of watched fleets.
	listInterval = 2 * time.Second
	// watchedInterval is the time between polls of a watched fleet. A fleet is watched if
	// ScaledByMetric is true for its RelayPool. A watched fleet is polled more often, because its
	// autoscaler accepts only a reading from the last 30 s. maxWatchedPause is the maximum of the
	// time while no pod answers.
	watchedInterval = 10 * time.Second
	maxWatchedPause = time.Minute
)

// pollInterval returns the time between polls of the fleet, and its maximum while no pod answers.
func (s *fleetBacklog) pollInterval() (interval, maximum time.Duration) {
	if s.watched {
		return watchedInterval, maxWatchedPause
	}
	return backlogInterval, maxBacklogPause
}

// pollFleets refreshes the list of watched fleets, and polls them.
func (p *Poller) pollFleets(ctx context.Context) {
	tick := time.NewTicker(listInterval)
	defer tick.Stop()
	for {
		// An error means that the cache is not synchronised. Then the list stays as it is, no
		// fleet is polled, and the readings become too old to be served.
		_ = p.refreshAndPoll(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (p *Poller) refreshAndPoll(ctx context.Context) error {
	var pools v1alpha1.RelayPoolList
	if err := p.fleets.List(ctx, &pools, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list RelayPools: %w", err)
	}
	var pods corev1.PodList
	if err := p.fleets.List(ctx, &pods, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	ready := map[types.NamespacedName][]string{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Labels[build.LabelComponent] != build.ComponentRelay {
			continue
		}
		if ip, ok := readyIP(pod); ok {
			key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[build.LabelPool]}
			ready[key] = append(ready[key], ip)
		}
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.fleetsKnown = true
	listed := map[types.NamespacedName]bool{}
	for i := range pools.Items {
		key := client.ObjectKeyFromObject(&pools.Items[i])
		listed[key] = true
		if !ScaledByMetric(&pools.Items[i]) {
			if state := p.pools[key]; state != nil {
				state.watched = false
			}
			continue
		}
		p.watch(key, ready[key])
	}
	for key := range p.pools {
		if !listed[key] {
			delete(p.pools, key)
		}
	}
	return nil
}

func (p *Poller) watch(key types.NamespacedName, ips []string) {
	slices.Sort(ips)
	state := p.state(key)
	if !state.watched || state.ready == 0 && len(ips) > 0 {
		// A fleet that is newly watched, or had no ready pod before, is polled at once.
		state.nextPoll, state.failures = time.Time{}, 0
	}
	state.watched, state.ready = true, len(ips)
	p.enqueue(key, state, ips)
}

// ScaledByMetric reports whether a HorizontalPodAutoscaler made by the operator scales
// the fleet by the external metrics API.
func ScaledByMetric(pool *v1alpha1.RelayPool) bool {
	a := pool.Spec.Autoscaling
	return a != nil && a.Provider != v1alpha1.ProviderKEDA && pool.DeletionTimestamp == nil
}

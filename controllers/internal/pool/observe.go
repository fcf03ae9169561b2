package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/apply"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/keys"
)

// observe reads everything that Decide needs. A part that cannot be read is unknown, and
// its error is in Facts.Unread. observe itself fails only when ctx has ended.
func (r *Reconciler) observe(ctx context.Context, pool *v1alpha1.RelayPool) (*Facts, error) {
	key := client.ObjectKeyFromObject(pool)
	f := &Facts{Now: r.Now(), Pool: pool, Unread: map[Part]error{}}
	note := func(p Part, err error) {
		if err != nil {
			f.Unread[p] = err
		}
	}
	var err error
	f.References, err = r.References.Resolve(ctx, pool)
	note(PartReferences, err)
	r.logUnread(ctx, f)
	f.Keys, err = r.KeyObserver.Observe(ctx, pool)
	note(PartKeys, err)
	f.Capabilities, err = r.Capabilities.Build(ctx)
	note(PartCapabilities, err)
	note(PartFleet, r.observeFleet(ctx, f))
	note(PartAutoscaler, r.observeAutoscaler(ctx, f))
	f.KeysKnown = !f.isUnread(PartKeys) && !f.isUnread(PartFleet)
	f.Target = targetOf(pool, &f.References, r.keyParser.parse, r.References.Value)
	f.Chain, f.ChainRead = r.Watcher.Reading(key)
	// The watcher gets this spec's query only after Decide. Its last reading may be of a
	// pool that an earlier spec, or an earlier RelayPool of the same name, declared. Such a
	// reading must not open the gate for this RelayPool.
	f.Chain = f.Chain.Of(f.Target.Query.Target)
	f.ChainRead = f.ChainRead && (!f.Chain.At.IsZero() || !f.Chain.Since.IsZero())
	f.Backlog = r.Backlogs.Backlog(key, readyIPs(f.Fleet.Pods))
	f.Backlog.Old = f.Now.Sub(f.Backlog.At) > maxBacklogAge
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("observe: %w", err)
	}
	return f, nil
}

// err joins the errors of the parts that could not be read.
func (f *Facts) err() error {
	var all []error
	for _, p := range []Part{PartReferences, PartKeys, PartFleet, PartAutoscaler, PartCapabilities} {
		all = append(all, f.Unread[p])
	}
	return errors.Join(all...)
}

// logUnread logs why references could not be read in this pass. The status says only that
// they could not be read.
func (r *Reconciler) logUnread(ctx context.Context, f *Facts) {
	if f.References.ReadAt.Before(f.Now) {
		return // an earlier pass tried to read them, and logged the errors
	}
	for _, u := range f.References.Unread {
		log.FromContext(ctx).Error(u.Err, "Could not read a Secret or ConfigMap of the RelayPool", "kind", string(u.Kind), "object", u.Name)
	}
}

func (r *Reconciler) observeFleet(ctx context.Context, f *Facts) error {
	pool := f.Pool
	deployment := new(appsv1.Deployment)
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(pool), deployment)
	if apierrors.IsNotFound(err) {
		// The cache has only labelled Deployments, so it lacks a Deployment that lost its
		// label. If that Deployment counted as missing, its size would be set as for a new
		// fleet.
		err = r.Live.Get(ctx, client.ObjectKeyFromObject(pool), deployment)
	}
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("read Deployment: %w", err)
	case apply.Owns(pool, deployment):
		f.Fleet.Deployment = deployment
	}
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, client.InNamespace(pool.Namespace), client.MatchingLabels{build.LabelPool: pool.Name}); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	fleet := labels.SelectorFromSet(build.Selector(pool.Name))
	var others []corev1.Pod
	for i := range pods.Items {
		if fleet.Matches(labels.Set(pods.Items[i].Labels)) {
			f.Fleet.Pods = append(f.Fleet.Pods, pods.Items[i])
		} else {
			others = append(others, pods.Items[i])
		}
	}
	return r.observeJobs(ctx, f, others)
}

func (r *Reconciler) observeJobs(ctx context.Context, f *Facts, pods []corev1.Pod) error {
	var jobs batchv1.JobList
	if err := r.Client.List(ctx, &jobs, client.InNamespace(f.Pool.Namespace), client.MatchingLabels{build.LabelPool: f.Pool.Name}); err != nil {
		return fmt.Errorf("list Jobs: %w", err)
	}
	for i := range jobs.Items {
		f.Jobs = append(f.Jobs, keys.JobOf(f.Pool, &jobs.Items[i], lastLogLine(&jobs.Items[i], pods)))
	}
	return nil
}

// readyIPs returns the addresses of ready pods, in a fixed order.
func readyIPs(pods []corev1.Pod) []string {
	var out []string
	for i := range pods {
		if ip, ok := readyIP(&pods[i]); ok {
			out = append(out, ip)
		}
	}
	slices.Sort(out)
	return out
}

// readyIP returns the address of a pod, and whether the pod is ready.
func readyIP(pod *corev1.Pod) (string, bool) {
	return pod.Status.PodIP, pod.DeletionTimestamp == nil && pod.Status.PodIP != "" && podReady(pod)
}

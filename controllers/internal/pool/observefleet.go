package pool

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/controllers/internal/apply"
	"github.com/relaypool/relaypool/controllers/internal/build"
)

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
	var otherPods []corev1.Pod
	for i := range pods.Items {
		if fleet.Matches(labels.Set(pods.Items[i].Labels)) {
			f.Fleet.Pods = append(f.Fleet.Pods, pods.Items[i])
		} else {
			otherPods = append(otherPods, pods.Items[i])
		}
	}
	return r.observeJobs(ctx, f, otherPods)
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

package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// operatorContainer is the name of the operator's container in its pods.
	// operatorReplicas is the number of pods with external metrics.
	operatorContainer = "operator"
	operatorReplicas  = 2
	// refsInterval is how often Secrets are read, less than the default of 1m to save time.
	refsInterval = "15s"
)

// operatorLabels select the operator's pods.
func operatorLabels() map[string]string {
	return map[string]string{"app.kubernetes.io/instance": releaseName, "app.kubernetes.io/name": "relaypool-operator"}
}

// install runs the documentation's first command.
func (s *suite) install(t *testing.T) {
	ok(t, s.makeNamespace(operatorNamespace, "restricted"))
	s.chart = filepath.Join(s.from, "charts/relaypool")
	s.values = map[string]any{
		"operator":        map[string]any{"image": chartImage(cmp.Or(s.images.earlierOperator, s.images.operator)), "refsInterval": refsInterval},
		"relay":           map[string]any{"image": chartImage(cmp.Or(s.images.earlierRelay, s.images.relay))},
		"externalMetrics": map[string]any{"enabled": true},
		// Fleets' namespaces come and go while the release stays.
		"clusterWide": true,
	}
	s.installed = time.Now()
	s.deploy(t, "install")
	s.figure("helm install to a ready operator", "%.1f s", time.Since(s.installed).Seconds())
	pods := s.awaitReady(t, operatorNamespace, operatorLabels(), operatorReplicas)
	s.log(t, "%d operators are ready, under the restricted pod security standard", len(pods))
	s.log(t, "%s leads", s.leader(t).pod.Name)
	s.await(t, "the external metrics API is available", 2*time.Minute, s.metricsServed)
	s.log(t, "the external metrics API is served")
}

// leadingOperator is the operator that holds the Lease.
type leadingOperator struct {
	pod *corev1.Pod
	// identity is the Lease's holder. since is the time at which it acquired the Lease, by its
	// node's clock.
	identity string
	since    time.Time
}

// leader waits until a living operator holds the Lease. Leases of the excluded identities do
// not count.
func (s *suite) leader(t *testing.T, excluded ...string) (leader leadingOperator) {
	t.Helper()
	s.await(t, "an operator leads", 2*time.Minute, func(ctx context.Context) error {
		lease := &coordinationv1.Lease{}
		if err := s.kube.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: "relaypool-operator"}, lease); err != nil {
			return err
		}
		holder, since := lease.Spec.HolderIdentity, lease.Spec.AcquireTime
		if holder == nil || *holder == "" || since == nil {
			return errors.New("nobody holds the Lease")
		}
		if slices.Contains(excluded, *holder) {
			return errors.New("the previous leader still holds the Lease")
		}
		pods, err := s.listPods(ctx, operatorNamespace, operatorLabels())
		// The identity is the pod's name and a random part.
		i := slices.IndexFunc(pods, func(pod corev1.Pod) bool { return strings.HasPrefix(*holder, pod.Name) })
		if err != nil || i < 0 {
			return errors.Join(err, errors.New("the Lease's holder is not a living pod"))
		}
		leader = leadingOperator{pod: &pods[i], identity: *holder, since: since.Time}
		return nil
	})
	return leader
}

// metricsServed returns an error until the aggregated API of external metrics is available.
func (s *suite) metricsServed(ctx context.Context) error {
	service := &unstructured.Unstructured{}
	service.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"})
	if err := s.kube.Get(ctx, client.ObjectKey{Name: "v1beta1.external.metrics.k8s.io"}, service); err != nil {
		return err
	}
	conditions, _, err := unstructured.NestedSlice(service.Object, "status", "conditions")
	for _, c := range conditions {
		if c, is := c.(map[string]any); is && c["type"] == "Available" && c["status"] == "True" {
			return nil
		}
	}
	return errors.Join(err, fmt.Errorf("the conditions of the API are %v", conditions))
}

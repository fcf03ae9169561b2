package suite

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/hack/e2e/cluster"
	"github.com/relaypool/relaypool/hack/e2e/report"
)

const (
	// operatorContainer is the operator's in its pods, operatorReplicas how many
	// there are with external metrics.
	operatorContainer = "operator"
	operatorReplicas  = 2
	// leaseName is of the Lease by which operators take turns.
	leaseName = "relaypool-operator"
	// definition is the resource's own.
	definition = "relaypools.relaypool.dev"
	// refsInterval has Secrets read more often than once a minute, to save time.
	refsInterval = "15s"
)

// operatorLabels select the operator's pods.
func operatorLabels() map[string]string {
	return map[string]string{"app.kubernetes.io/instance": Release, "app.kubernetes.io/name": "relaypool-operator"}
}

// imageValues are the chart's for an image.
func imageValues(reference string) map[string]any {
	registry, name, _ := strings.Cut(reference, "/")
	repository, tag, _ := strings.Cut(name, ":")
	return map[string]any{"registry": registry, "repository": repository, "tag": tag}
}

// install does what the documentation's first command does.
func (s *suite) install(ctx context.Context, r *report.Scenario) error {
	if err := s.Cluster.MakeNamespace(ctx, OperatorNamespace, "restricted"); err != nil {
		return err
	}
	s.values = map[string]any{
		"operator":        map[string]any{"image": imageValues(s.Images.Operator), "refsInterval": refsInterval},
		"relay":           map[string]any{"image": imageValues(s.Images.Relay)},
		"externalMetrics": map[string]any{"enabled": true},
		// Fleets' namespaces come and go while the release stays.
		"clusterWide": true,
	}
	s.installed = s.Now()
	notes, err := s.Helm.Install(ctx, s.values)
	if err != nil {
		return err
	}
	took := s.Now().Sub(s.installed)
	r.Saw("helm install has ended, with notes of %d lines", strings.Count(notes, "\n"))
	pods, err := s.Cluster.AwaitReady(ctx, OperatorNamespace, operatorLabels(), operatorReplicas)
	if err != nil {
		return err
	}
	r.Saw("%d operators are ready, under the restricted pod security standard", len(pods))
	leader, err := s.leader(ctx)
	if err != nil {
		return err
	}
	r.Saw("%s leads", leader.pod.Name)
	if err := s.metricsServed(ctx); err != nil {
		return err
	}
	r.Saw("the external metrics API is served")
	r.Sum("operator ready in %.1f s, %d replicas", took.Seconds(), len(pods))
	s.Report.Figure("helm install to a ready operator", "%.1f s", took.Seconds())
	return nil
}

// leading is the operator that leads.
type leading struct {
	pod *corev1.Pod
	// identity is the Lease's holder; since is when it took the Lease, by its node's clock.
	identity string
	since    time.Time
}

// leader waits until a living operator holds the Lease, another one than those
// that are named by their identities.
func (s *suite) leader(ctx context.Context, not ...string) (leader leading, err error) {
	err = cluster.Await(ctx, "an operator leads", cluster.Minutes(2), func(ctx context.Context) (string, error) {
		lease := &coordinationv1.Lease{}
		if err := s.Cluster.Client.Get(ctx, client.ObjectKey{Namespace: OperatorNamespace, Name: leaseName}, lease); err != nil {
			return "", err
		}
		holder, since := lease.Spec.HolderIdentity, lease.Spec.AcquireTime
		if holder == nil || *holder == "" || since == nil {
			return "nobody holds the Lease", nil
		}
		if slices.Contains(not, *holder) {
			return "the Lease is still that of the one before", nil
		}
		pods, err := s.Cluster.Pods(ctx, OperatorNamespace, operatorLabels())
		if err != nil {
			return "", err
		}
		for i := range pods {
			// The identity is the pod's name and something random.
			if strings.HasPrefix(*holder, pods[i].Name) {
				leader = leading{pod: &pods[i], identity: *holder, since: since.Time}
				return "", nil
			}
		}
		return "the Lease's holder is no living pod", nil
	})
	return leader, err
}

var apiServices = schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}

// metricsServed waits until the aggregated API of external metrics is available.
func (s *suite) metricsServed(ctx context.Context) error {
	return cluster.Await(ctx, "the external metrics API is available", cluster.Minutes(2), func(ctx context.Context) (string, error) {
		service := &unstructured.Unstructured{}
		service.SetGroupVersionKind(apiServices)
		if err := s.Cluster.Client.Get(ctx, client.ObjectKey{Name: "v1beta1.external.metrics.k8s.io"}, service); err != nil {
			return "", err
		}
		conditions, _, err := unstructured.NestedSlice(service.Object, "status", "conditions")
		for _, c := range conditions {
			if c, ok := c.(map[string]any); ok && c["type"] == "Available" {
				if c["status"] == "True" {
					return "", nil
				}
				return fmt.Sprint(c["reason"], ": ", c["message"]), nil
			}
		}
		return "it has no condition Available", err
	})
}

// clear takes away everything of this suite, so that the cluster is as it was
// found, but for a definition that somebody else's RelayPools need.
func (s *suite) clear(ctx context.Context) error {
	// Before anything is touched: an operator under this name may be at work for somebody.
	for _, name := range []string{namespace, nodeNamespace, OperatorNamespace} {
		if _, err := s.Cluster.Own(ctx, name); err != nil {
			return err
		}
	}
	if err := s.deletePools(ctx); err != nil {
		return err
	}
	for _, name := range []string{namespace, nodeNamespace} {
		if err := s.Cluster.DeleteNamespace(ctx, name); err != nil {
			return err
		}
	}
	if err := s.Helm.Clear(ctx); err != nil {
		return err
	}
	if err := s.Cluster.DeleteNamespace(ctx, OperatorNamespace); err != nil {
		return err
	}
	return s.deleteDefinition(ctx)
}

// deletePools deletes the RelayPools of this suite while their operator lives,
// who has something to do then.
func (s *suite) deletePools(ctx context.Context) error {
	pools := &v1alpha1.RelayPoolList{}
	err := s.Cluster.Client.List(ctx, pools, client.InNamespace(namespace))
	switch {
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		return nil // there is no such resource
	case err != nil:
		return fmt.Errorf("list RelayPools: %w", err)
	}
	operators, err := s.Cluster.Pods(ctx, OperatorNamespace, operatorLabels())
	if err != nil {
		return err
	}
	for i := range pools.Items {
		pool := &pools.Items[i]
		if len(operators) == 0 && len(pool.Finalizers) > 0 {
			// Nobody is left who would take it away.
			bare := pool.DeepCopy()
			bare.Finalizers = nil
			if err := client.IgnoreNotFound(s.Cluster.Client.Patch(ctx, bare, client.MergeFrom(pool))); err != nil {
				return fmt.Errorf("release RelayPool %s: %w", pool.Name, err)
			}
		}
		if err := client.IgnoreNotFound(s.Cluster.Client.Delete(ctx, pool)); err != nil {
			return fmt.Errorf("delete RelayPool %s: %w", pool.Name, err)
		}
	}
	return cluster.Await(ctx, "the RelayPools are gone", cluster.Minutes(2), func(ctx context.Context) (string, error) {
		if err := s.Cluster.Client.List(ctx, pools, client.InNamespace(namespace)); err != nil {
			return "", err
		}
		if n := len(pools.Items); n > 0 {
			return fmt.Sprintf("%d are there", n), nil
		}
		return "", nil
	})
}

func (s *suite) deleteDefinition(ctx context.Context) error {
	all := &v1alpha1.RelayPoolList{}
	err := s.Cluster.Client.List(ctx, all)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list RelayPools: %w", err)
	}
	if len(all.Items) > 0 {
		s.Report.Say("leaving the definition %s: somebody has %d RelayPools", definition, len(all.Items))
		return nil
	}
	crd := s.definition()
	if err := client.IgnoreNotFound(s.Cluster.Client.Delete(ctx, crd)); err != nil {
		return fmt.Errorf("delete the definition %s: %w", definition, err)
	}
	return cluster.Await(ctx, "the definition is gone", cluster.Minutes(1), func(ctx context.Context) (string, error) {
		err := s.Cluster.Client.Get(ctx, client.ObjectKey{Name: definition}, crd)
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		return "it is there", err
	})
}

func (*suite) definition() *unstructured.Unstructured {
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	crd.SetName(definition)
	return crd
}

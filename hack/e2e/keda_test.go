package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// kedaNamespace is the namespace in KEDA's own manifests, which are in its module.
const kedaNamespace = "keda"

// keda lets KEDA size a fleet. KEDA serves the API of external metrics, of which a cluster has one, in
// place of the operator.
func (s *suite) keda(t *testing.T) {
	s.values["externalMetrics"] = map[string]any{"enabled": false}
	s.deploy(t, "upgrade")
	s.startKEDA(t)
	f := s.newFleet("keda")
	s.makeDatabase(t, f.name)
	pool := s.relayPool(f.name, maxReplicas, limitedSubmissions)
	pool.Spec.Autoscaling.Provider, pool.Spec.Concurrency = v1alpha1.ProviderKEDA, limitedConcurrency
	// KEDA's pods ask the fleet's operations port for the backlog.
	pool.Spec.NetworkPolicy.OperationsFrom[0].NamespaceSelector = &metav1.LabelSelector{}
	pool.Spec.NetworkPolicy.OperationsFrom[0].PodSelector = nil
	ok(t, s.kube.Create(s.ctx, pool))
	f.fund(t, moreFunds)
	f.awaitCondition(t, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	f.awaitCondition(t, v1alpha1.ConditionAutoscalingActive, metav1.ConditionTrue, "")
	clients := s.newTraffic(t, f.name, peakRate, 0, s.seed+4)
	defer clients.abandon()
	s.await(t, "KEDA has grown the fleet", 5*time.Minute, func(ctx context.Context) error {
		d, err := f.deployment(ctx)
		if err == nil && d.Status.ReadyReplicas < 2 {
			return fmt.Errorf("%d pods are wanted, %d ready; %s", *d.Spec.Replicas, d.Status.ReadyReplicas, clients)
		}
		return err
	})
	s.log(t, "KEDA has grown the fleet; %s", clients)
	clients.finish(5 * time.Minute)
	f.accountFor(t, clients.Journal().Records())
	s.deleteObject(t, pool, 2*time.Minute)
	s.deleteKEDA(t)
}

// startKEDA installs KEDA. If the cluster has one, the suite may not touch it, and fails.
func (s *suite) startKEDA(t *testing.T) {
	t.Helper()
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(definition().GroupVersionKind())
	if err := s.kube.Get(s.ctx, client.ObjectKey{Name: "scaledobjects.keda.sh"}, crd); !apierrors.IsNotFound(err) {
		t.Fatalf("the cluster has KEDA already, or cannot tell (error %v): test another cluster, or run others than keda by -only", err)
	}
	for _, object := range s.kedaObjects(t) {
		if object.GetKind() == "Namespace" {
			object.SetLabels(map[string]string{owned: "true"})
		}
		ok(t, s.kube.Apply(s.ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("relaypool-e2e"), client.ForceOwnership))
	}
	for _, app := range []string{"keda-operator", "keda-metrics-apiserver"} {
		s.awaitReady(t, kedaNamespace, map[string]string{"app": app}, 1)
	}
	s.await(t, "KEDA serves the external metrics API", 2*time.Minute, s.metricsServed)
	s.log(t, "KEDA serves the external metrics API")
}

// deleteKEDA deletes KEDA if this suite installed it.
func (s *suite) deleteKEDA(t *testing.T) {
	t.Helper()
	if s.ownNamespace(t, kedaNamespace) == nil {
		return
	}
	// KEDA finalises its ScaledObjects, which go with their RelayPools.
	left := &unstructured.UnstructuredList{}
	left.SetGroupVersionKind(schema.GroupVersionKind{Group: "keda.sh", Version: "v1alpha1", Kind: "ScaledObjectList"})
	s.await(t, "no ScaledObject is left", 2*time.Minute, func(ctx context.Context) error {
		err := s.kube.List(ctx, left, client.InNamespace(namespace))
		if err == nil && len(left.Items) > 0 {
			return fmt.Errorf("%d are left", len(left.Items))
		}
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) { // an interrupted deletion
			return nil
		}
		return err
	})
	for _, object := range s.kedaObjects(t) {
		if object.GetKind() != "Namespace" {
			ok(t, client.IgnoreNotFound(s.kube.Delete(s.ctx, object)))
		}
	}
	s.deleteNamespace(t, kedaNamespace)
}

// kedaObjects are the manifests in KEDA's module, without its webhooks and with this suite's images.
func (s *suite) kedaObjects(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	manifests, err := exec.CommandContext(s.ctx, "go", "tool", "-modfile=hack/tools/keda/go.mod", "kustomize", "build",
		s.inModule(t, "keda", "github.com/kedacore/keda/v2", "config/minimal")).Output()
	ok(t, err)
	return decode(t, []byte(strings.NewReplacer(
		"ghcr.io/kedacore/keda:main", s.images.keda, "ghcr.io/kedacore/keda-metrics-apiserver:main", s.images.kedaAdapter,
		"imagePullPolicy: Always", "imagePullPolicy: IfNotPresent",
	).Replace(string(manifests))))
}

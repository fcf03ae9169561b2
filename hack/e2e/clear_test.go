package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// clear deletes everything of this suite, so that the cluster is as before, except for a
// definition that other RelayPools need.
func (s *suite) clear(t *testing.T) {
	t.Helper()
	// This check comes first: another user's operator may run under this name.
	for _, name := range []string{namespace, secondNamespace, nodeNamespace, operatorNamespace, kedaNamespace} {
		s.ownNamespace(t, name)
	}
	s.deletePools(t, secondNamespace, secondNamespace)
	s.deletePools(t, namespace, operatorNamespace)
	s.deleteKEDA(t)
	s.deleteNamespace(t, namespace)
	s.deleteNamespace(t, nodeNamespace)
	s.deleteForeign(t)
	s.runHelm(t, "uninstall", "--ignore-not-found")
	s.runHelmIn(t, secondNamespace, "uninstall", "--ignore-not-found")
	s.deleteNamespace(t, operatorNamespace)
	s.deleteNamespace(t, secondNamespace)
	others := s.listPools(t)
	if len(others) > 0 {
		t.Logf("kept the resource's definition: other namespaces have %d RelayPools", len(others))
		return
	}
	s.deleteObject(t, definition(), time.Minute)
}

// deleteForeign deletes what other projects' manifests made for the whole cluster.
func (s *suite) deleteForeign(t *testing.T) {
	t.Helper()
	crd := definition()
	crd.SetName("")
	for _, kind := range []client.Object{&rbacv1.ClusterRoleBinding{}, &rbacv1.ClusterRole{}, &networkingv1.IngressClass{}, crd} {
		ok(t, s.kube.DeleteAllOf(s.ctx, kind, client.HasLabels{owned}))
	}
}

// listPools returns the RelayPools of a cluster, which may not have the resource.
func (s *suite) listPools(t *testing.T, options ...client.ListOption) []v1alpha1.RelayPool {
	t.Helper()
	pools := &v1alpha1.RelayPoolList{}
	if err := s.kube.List(s.ctx, pools, options...); !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		ok(t, err)
	}
	return pools.Items
}

// deletePools deletes the RelayPools of a namespace while their operator runs, because it
// finalises them.
func (s *suite) deletePools(t *testing.T, in, operator string) {
	t.Helper()
	operators, err := s.listPods(s.ctx, operator, map[string]string{"app.kubernetes.io/name": "relaypool-operator"})
	ok(t, err)
	pools := s.listPools(t, client.InNamespace(in))
	for i := range pools {
		pool := &pools[i]
		if len(operators) == 0 {
			bare := pool.DeepCopy()
			bare.Finalizers = nil
			ok(t, client.IgnoreNotFound(s.kube.Patch(s.ctx, bare, client.MergeFrom(pool))))
		}
		ok(t, client.IgnoreNotFound(s.kube.Delete(s.ctx, pool)))
	}
	if len(pools) == 0 {
		return
	}
	s.await(t, "the RelayPools are gone", 2*time.Minute, func(ctx context.Context) error {
		left := &v1alpha1.RelayPoolList{}
		err := s.kube.List(ctx, left, client.InNamespace(in))
		if err == nil && len(left.Items) > 0 {
			return fmt.Errorf("%d still exist", len(left.Items))
		}
		return err
	})
}

// definition returns an object with the name of the resource's definition.
func definition() *unstructured.Unstructured {
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	crd.SetName("relaypools.relaypool.dev")
	return crd
}

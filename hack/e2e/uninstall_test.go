package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// minWithoutOperator is the number of spends that have to complete without an operator.
const minWithoutOperator = 3

// uninstall uninstalls the operator and installs it again.
func (s *suite) uninstall(t *testing.T) {
	keys := s.keySecrets(t)
	pods := s.fleet.awaitPods(t, "serves", nil)
	s.runHelm(t, "uninstall")
	s.log(t, "the chart is uninstalled")
	s.checkRemains(t, keys, pods)
	s.log(t, "definition, RelayPool, %d keys and %d pods are as they were", len(keys), len(pods))
	clients := s.newTraffic(t, fleetName, calmRate, 0, s.seed+2)
	defer clients.abandon()
	s.await(t, "the fleet serves without an operator", 2*time.Minute, func(context.Context) error {
		if n := clients.progress().Completed; n < minWithoutOperator {
			return fmt.Errorf("%d spends are completed", n)
		}
		return nil
	})
	s.log(t, "the fleet serves without an operator")
	clients.finish(2 * time.Minute)
	began := time.Now()
	s.deploy(t, "install")
	s.awaitRepair(t)
	s.fleet.awaitCondition(t, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	s.log(t, "the fleet is managed again %.1f s after helm install began", time.Since(began).Seconds())
	s.checkRemains(t, keys, pods)
	s.log(t, "%d keys, the RelayPool and its definition stayed, and no pod was replaced", len(keys))
}

// keySecrets returns the Secrets of the fleet's payers, retired payers included.
func (s *suite) keySecrets(t *testing.T) (keys []corev1.Secret) {
	t.Helper()
	_, names := s.fleet.payers(t)
	for _, name := range names {
		secret := corev1.Secret{}
		ok(t, s.kube.Get(s.ctx, client.ObjectKey{Namespace: namespace, Name: name}, &secret))
		keys = append(keys, secret)
	}
	return keys
}

// checkRemains checks that the uninstallation deleted only the chart's objects.
func (s *suite) checkRemains(t *testing.T, keys []corev1.Secret, pods []corev1.Pod) {
	t.Helper()
	crd := definition()
	ok(t, s.kube.Get(s.ctx, client.ObjectKeyFromObject(crd), crd))
	_, err := s.fleet.get(s.ctx)
	ok(t, err)
	for i := range keys {
		was, is := &keys[i], &corev1.Secret{}
		ok(t, s.kube.Get(s.ctx, client.ObjectKeyFromObject(was), is))
		if was.UID != is.UID || !cmp.Equal(was.Data, is.Data) {
			t.Fatalf("the Secret %s was changed or replaced", was.Name)
		}
	}
	for i := range pods {
		is := &corev1.Pod{}
		ok(t, s.kube.Get(s.ctx, client.ObjectKeyFromObject(&pods[i]), is))
		if is.DeletionTimestamp != nil || is.UID != pods[i].UID {
			t.Fatalf("pod %s was deleted or replaced", pods[i].Name)
		}
	}
}

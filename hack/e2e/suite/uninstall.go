package suite

import (
	"bytes"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/hack/e2e/cluster"
	"github.com/relaypool/relaypool/hack/e2e/report"
)

// afterwards is how many spends have to complete without an operator.
const afterwards = 3

// uninstall takes the operator away and brings it back.
func (s *suite) uninstall(ctx context.Context, r *report.Scenario) error {
	keys, err := s.keys(ctx)
	if err != nil {
		return err
	}
	pods, err := s.fleet.settled(ctx, "serves", anyPod)
	if err != nil {
		return err
	}
	if _, err := s.Helm.Uninstall(ctx); err != nil {
		return err
	}
	r.Saw("the chart is uninstalled")
	if err := s.remains(ctx, keys, pods); err != nil {
		return err
	}
	r.Saw("definition, RelayPool, %d keys and %d pods are as they were", len(keys), len(pods))
	crowd, err := s.begin(ctx, crowd{fleet: fleetName, rate: calmRate, seed: s.Seed + 2})
	if err != nil {
		return err
	}
	defer crowd.abandon()
	if err := cluster.Await(ctx, "the fleet serves without an operator", cluster.Minutes(2), func(context.Context) (string, error) {
		if n := crowd.load.Journal().Progress().Completed; n < afterwards {
			return fmt.Sprintf("%d spends are completed", n), nil
		}
		return "", nil
	}); err != nil {
		return err
	}
	r.Saw("the fleet serves without an operator")
	crowd.finish(cluster.Minutes(2))
	began := s.Now()
	if _, err := s.Helm.Install(ctx, s.values); err != nil {
		return err
	}
	if err := s.meddle(ctx, r); err != nil {
		return err
	}
	if _, err := s.fleet.condition(ctx, v1alpha1.ConditionReady, metav1.ConditionTrue, ""); err != nil {
		return err
	}
	took := s.Now().Sub(began)
	if err := s.remains(ctx, keys, pods); err != nil {
		return fmt.Errorf("after the new installation: %w", err)
	}
	r.Sum("%d keys, the RelayPool and its definition stayed, %d pod served on; taken up again %.1f s after helm install began, and no pod was replaced", len(keys), len(pods), took.Seconds())
	return nil
}

// keys are the Secrets of the fleet's payers, retired ones included, by name.
func (s *suite) keys(ctx context.Context) (map[string]corev1.Secret, error) {
	_, names, err := s.fleet.payers(ctx)
	if err != nil {
		return nil, err
	}
	out := make(map[string]corev1.Secret, len(names))
	for _, name := range names {
		secret := corev1.Secret{}
		if err := s.Cluster.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &secret); err != nil {
			return nil, fmt.Errorf("read key %s: %w", name, err)
		}
		out[name] = secret
	}
	return out, nil
}

// remains holds that nothing was taken along.
func (s *suite) remains(ctx context.Context, keys map[string]corev1.Secret, pods []corev1.Pod) error {
	if err := s.Cluster.Client.Get(ctx, client.ObjectKey{Name: definition}, s.definition()); err != nil {
		return fmt.Errorf("the definition has to stay: %w", err)
	}
	if _, err := s.fleet.get(ctx); err != nil {
		return fmt.Errorf("the RelayPool has to stay: %w", err)
	}
	for name := range keys {
		was, is := keys[name], corev1.Secret{}
		if err := s.Cluster.Client.Get(ctx, client.ObjectKeyFromObject(&was), &is); err != nil {
			return fmt.Errorf("a key has to stay: %w", err)
		}
		for part, value := range was.Data {
			if is.UID != was.UID || !bytes.Equal(is.Data[part], value) {
				return fmt.Errorf("key %s is another one than before", name)
			}
		}
	}
	for i := range pods {
		is := &corev1.Pod{}
		err := s.Cluster.Client.Get(ctx, client.ObjectKeyFromObject(&pods[i]), is)
		if apierrors.IsNotFound(err) || err == nil && is.DeletionTimestamp != nil {
			return fmt.Errorf("pod %s was taken away", pods[i].Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/contract"
)

// relayContainer is the name of the relay's container in a fleet's pods.
const relayContainer = "relay"

// fleet is a RelayPool as its user works with it.
type fleet struct {
	*suite
	name, namespace, database string
}

// newFleet is a RelayPool in the fleets' namespace, with a database of its name.
func (s *suite) newFleet(name string) *fleet { return &fleet{s, name, namespace, name} }

func (f *fleet) key() client.ObjectKey {
	return client.ObjectKey{Namespace: f.namespace, Name: f.name}
}

func (f *fleet) get(ctx context.Context) (*v1alpha1.RelayPool, error) {
	pool := &v1alpha1.RelayPool{}
	return pool, f.kube.Get(ctx, f.key(), pool)
}

// change edits the spec, and retries after a conflict.
func (f *fleet) change(t *testing.T, edit func(*v1alpha1.RelayPoolSpec)) {
	t.Helper()
	ok(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		pool, err := f.get(f.ctx)
		if err != nil {
			return err
		}
		edit(&pool.Spec)
		return f.kube.Update(f.ctx, pool)
	}))
}

// awaitCondition waits until a condition has a status and, unless empty, a reason, for the
// current spec, and returns its message.
func (f *fleet) awaitCondition(t *testing.T, kind string, status metav1.ConditionStatus, reason string) (message string) {
	t.Helper()
	f.await(t, fmt.Sprintf("RelayPool %s is %s=%s %s", f.name, kind, status, reason), 5*time.Minute, func(ctx context.Context) error {
		pool, err := f.get(ctx)
		if err != nil {
			return err
		}
		found := meta.FindStatusCondition(pool.Status.Conditions, kind)
		switch {
		case found == nil:
			return errors.New("it has no such condition")
		case found.ObservedGeneration != pool.Generation:
			return errors.New("the operator has not observed the spec")
		case found.Status != status || reason != "" && found.Reason != reason:
			return fmt.Errorf("it is %s %s: %s", found.Status, found.Reason, found.Message)
		}
		message = found.Message
		return nil
	})
	return message
}

// pods lists the fleet's pods by the labels of its documentation.
func (f *fleet) pods(ctx context.Context) ([]corev1.Pod, error) {
	return f.listPods(ctx, f.namespace, map[string]string{"app.kubernetes.io/instance": f.name, "app.kubernetes.io/component": "relay"})
}

func (f *fleet) deployment(ctx context.Context) (*appsv1.Deployment, error) {
	d := &appsv1.Deployment{}
	return d, f.kube.Get(ctx, f.key(), d)
}

// awaitPods waits until there are as many pods as the Deployment wants, and each is of the
// newest template, passes a check, unless that is nil, and is ready.
func (f *fleet) awaitPods(t *testing.T, what string, check func(*corev1.Pod) error) (pods []corev1.Pod) {
	t.Helper()
	f.await(t, "every pod of "+f.name+" "+what, 8*time.Minute, func(ctx context.Context) error {
		d, err := f.deployment(ctx)
		if err != nil {
			return err
		}
		if d.Status.ObservedGeneration != d.Generation {
			return errors.New("the Deployment's change was not observed")
		}
		if pods, err = f.pods(ctx); err != nil {
			return err
		}
		ready := 0
		for i := range pods {
			if check != nil {
				if err := check(&pods[i]); err != nil {
					return fmt.Errorf("%s %w", pods[i].Name, err)
				}
			}
			if isReady(&pods[i]) {
				ready++
			}
		}
		if wanted := int(*d.Spec.Replicas); len(pods) != wanted || ready != wanted {
			return fmt.Errorf("%d pods, %d ready, %d wanted", len(pods), ready, wanted)
		}
		return nil
	})
	return pods
}

// payers returns all keys of the fleet, or the keys in a state, and the names of their Secrets.
func (f *fleet) payers(t *testing.T, states ...v1alpha1.FeePayerState) (keys []solana.PublicKey, secrets []string) {
	t.Helper()
	pool, err := f.get(f.ctx)
	ok(t, err)
	for _, p := range pool.Status.FeePayers {
		if len(states) == 0 || states[0] == p.State {
			key, err := solana.PublicKeyFromBase58(p.Address)
			ok(t, err)
			keys, secrets = append(keys, key), append(secrets, p.SecretName)
		}
	}
	return keys, secrets
}

// operationsURL is the URL of a pod's operations port.
func operationsURL(pod *corev1.Pod) string { return "http://" + operationsAddress(pod) }

func operationsAddress(pod *corev1.Pod) string {
	return net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(contract.OperationsPort))
}

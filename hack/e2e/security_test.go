package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/hack/e2e/gate"
)

const (
	// sealed is the name of a pod that admits no connections, and of its policy.
	sealed = "sealed"
	// enforcedWithin is the time limit for a cluster to enforce a policy. Clusters that
	// enforce policies need a second or two; a slower cluster counts as one that does not enforce them.
	enforcedWithin = 20 * time.Second
)

// security shows that the pod security standard is enforced, and that the network policies
// exist; the cluster decides whether they are enforced.
func (s *suite) security(t *testing.T) {
	for in, policy := range map[string]string{operatorNamespace: "", namespace: fleetName} {
		root := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "root", Namespace: in},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "root", Image: s.images.gate, SecurityContext: &corev1.SecurityContext{RunAsUser: new(int64(0))},
			}}},
		}
		ok(t, denied("a pod as root in "+in, s.kube.Create(s.ctx, root, client.DryRunAll), func(err error) bool {
			return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "violates PodSecurity")
		}))
		policies := &networkingv1.NetworkPolicyList{}
		ok(t, s.kube.List(s.ctx, policies, client.InNamespace(in)))
		found := false
		for i := range policies.Items {
			found = found || policy == "" || policies.Items[i].Name == policy
		}
		if !found {
			t.Fatalf("%s has no network policy of the operator or of the fleet", in)
		}
	}
	s.log(t, "a pod as root is refused in both namespaces, and both have network policies")
	operations := operationsAddress(&s.fleet.awaitPods(t, "serves", nil)[0])
	enforced := s.enforcesPolicies(t)
	s.awaitDial(t, clientsApp, operations)
	if !enforced {
		s.log(t, "this cluster does not enforce network policies: they were not tested")
		return
	}
	blocked, err := refused(s.ctx, enforcedWithin, s.dialFrom("chain", operations))
	ok(t, err)
	if !blocked {
		t.Fatal("the cluster enforces network policies, but the fleet's policy lets an unnamed pod reach the operations port")
	}
	s.log(t, "the network policy lets only the named pods reach the operations port")
}

// enforcesPolicies finds out whether the cluster enforces network policies: it isolates a pod
// that could be reached before.
func (s *suite) enforcesPolicies(t *testing.T) bool {
	t.Helper()
	pod, policy := restrictedPod(sealed, s.images.gate, "serve"), sealedPolicy()
	ok(t, s.kube.Create(s.ctx, pod))
	address := net.JoinHostPort(s.awaitReady(t, namespace, pod.Labels, 1)[0].Status.PodIP, strconv.Itoa(gate.Port))
	s.awaitDial(t, clientsApp, address)
	ok(t, s.kube.Create(s.ctx, policy))
	enforced, err := refused(s.ctx, enforcedWithin, s.dialFrom(clientsApp, address))
	ok(t, err)
	ok(t, errors.Join(s.kube.Delete(s.ctx, policy), s.kube.Delete(s.ctx, pod)))
	return enforced
}

// dialFrom connects from a pod of the stage that has a gate.
func (s *suite) dialFrom(pod, address string) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second) // longer than the gate's own limit, so that the gate reports the outcome
		defer cancel()
		conn, err := s.proxy.gate(pod).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	}
}

func (s *suite) awaitDial(t *testing.T, pod, address string) {
	t.Helper()
	s.await(t, "the pod "+pod+" reaches "+address, time.Minute, s.dialFrom(pod, address))
}

// refused tries until a connection is refused or dropped on its way. It returns false if the
// last connection was still made, and an error if the last one could not be tried.
func refused(ctx context.Context, within time.Duration, try func(context.Context) error) (bool, error) {
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var last error
	err := wait.PollUntilContextCancel(limited, pollInterval, true, func(context.Context) (bool, error) {
		last = try(ctx) // not limited: the timeout's error would replace the cause
		return errors.Is(last, errUnreachable), nil
	})
	if err == nil || ctx.Err() != nil {
		return err == nil, ctx.Err()
	}
	return false, last
}

// sealedPolicy admits no connection to the sealed pod.
func sealedPolicy() *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: sealed, Namespace: namespace},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": sealed}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		},
	}
}

// denied checks that something was refused, for the expected reason.
func denied(what string, err error, expected func(error) bool) error {
	switch {
	case err == nil:
		return fmt.Errorf("%s was accepted, expected a refusal", what)
	case !expected(err):
		return fmt.Errorf("%s failed, but not with the expected refusal: %w", what, err)
	}
	return nil
}

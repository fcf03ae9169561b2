package suite

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/relaypool/relaypool/hack/e2e/cluster"
	"github.com/relaypool/relaypool/hack/e2e/gate"
	"github.com/relaypool/relaypool/hack/e2e/stage"
)

const (
	// sealed is a pod that admits nobody, and its policy.
	sealed = "sealed"
	// enforcedWithin is what a cluster gets to enforce a policy, which takes those
	// that do a second or two. One that is slower counts as one that does not.
	enforcedWithin = 20 * time.Second
	// dialWithin is longer than the gate tries, so that it says itself what came of it.
	dialWithin = 30 * time.Second
)

// dialFrom connects from a pod of the stage that has a gate.
func (s *suite) dialFrom(pod, address string) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, dialWithin)
		defer cancel()
		conn, err := s.Cluster.Gate(namespace, pod).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	}
}

// enforces finds out whether the cluster enforces network policies, by one that
// admits nobody to a pod which could be reached before.
func (s *suite) enforces(ctx context.Context) (enforced bool, err error) {
	pod, policy := sealedPod(s.Images.Gate), sealedPolicy()
	if err := s.Cluster.Client.Create(ctx, pod); err != nil {
		return false, fmt.Errorf("make pod %s: %w", sealed, err)
	}
	pods, err := s.Cluster.AwaitReady(ctx, namespace, pod.Labels, 1)
	if err != nil {
		return false, err
	}
	try := s.dialFrom(stage.ClientsApp, net.JoinHostPort(pods[0].Status.PodIP, strconv.Itoa(gate.Port)))
	if err := admitted(ctx, "a pod without a policy is reached", try); err != nil {
		return false, err
	}
	if err := s.Cluster.Client.Create(ctx, policy); err != nil {
		return false, fmt.Errorf("make network policy %s: %w", sealed, err)
	}
	if enforced, err = refused(ctx, enforcedWithin, try); err != nil {
		return false, fmt.Errorf("find out whether the cluster enforces network policies: %w", err)
	}
	if err := errors.Join(s.Cluster.Client.Delete(ctx, policy), s.Cluster.Client.Delete(ctx, pod)); err != nil {
		return false, fmt.Errorf("delete pod and policy %s: %w", sealed, err)
	}
	return enforced, nil
}

// keptOff holds that a fleet's operations port is open to the pod that its policy
// names and, where policies are enforced, closed to another one.
func (s *suite) keptOff(ctx context.Context, operations string, enforced bool) error {
	if err := admitted(ctx, "the operations port is open to a pod that the network policy names", s.dialFrom(stage.ClientsApp, operations)); err != nil {
		return err
	}
	if !enforced {
		return nil
	}
	kept, err := refused(ctx, enforcedWithin, s.dialFrom("chain", operations))
	if err != nil {
		return fmt.Errorf("dial the operations port from a pod that the network policy does not name: %w", err)
	}
	if !kept {
		return errors.New("the cluster enforces network policies, and that of the fleet lets a pod in to the operations port that it does not name")
	}
	return nil
}

// admitted waits until a connection is made.
func admitted(ctx context.Context, what string, try func(context.Context) error) error {
	return cluster.Await(ctx, what, cluster.Minutes(1), func(ctx context.Context) (string, error) { return "", try(ctx) })
}

// refused tries until a connection is refused or dropped on its way, and gives
// false when one was made to the last. That it could not be tried is an error.
func refused(ctx context.Context, within time.Duration, try func(context.Context) error) (bool, error) {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(cluster.Poll)
	defer tick.Stop()
	for {
		err := try(ctx)
		if errors.Is(err, gate.ErrUnreachable) {
			return true, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-deadline.C:
			return false, err
		case <-tick.C:
		}
	}
}

// sealedPod is one that serves a gate.
func sealedPod(image string) *corev1.Pod {
	yes, no, user, grace := true, false, int64(65532), int64(1)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: sealed, Namespace: namespace, Labels: map[string]string{"app": sealed}},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: &no, TerminationGracePeriodSeconds: &grace,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: &yes, RunAsUser: &user, RunAsGroup: &user, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "gate", Image: image, ImagePullPolicy: corev1.PullIfNotPresent, Args: []string{"serve"},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
}

// sealedPolicy admits nobody to it.
func sealedPolicy() *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: sealed, Namespace: namespace},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": sealed}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		},
	}
}

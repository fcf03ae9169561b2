package pool_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/manager"
	"github.com/relaypool/relaypool/controllers/internal/pool/pooltest"
	"github.com/relaypool/relaypool/hack/apiserver"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
)

func TestMain(m *testing.M) {
	manager.Redirect(slog.New(slog.DiscardHandler)) // discards the logs of libraries
	os.Exit(apiservertest.Run(m, apiserver.Options{Controllers: pooltest.Controllers()}))
}

// stand makes a namespace with an operator and a kubelet of its own.
func stand(t *testing.T, kubelet pooltest.KubeletOptions) (*pooltest.Stand, *pooltest.Kubelet) {
	t.Helper()
	s := pooltest.NewStand(t, apiservertest.Config(t))
	k := pooltest.StartKubelet(t, s.Config, s.Namespace, kubelet)
	pooltest.StartOperator(t, s.Config, pooltest.OperatorOptions{Namespaces: []string{s.Namespace}})
	return s, k
}

// The chain does not have the pool at first, and the fleet is held at 0 pods. After the
// pool is initialised and the key is funded, the fleet serves.
func TestAFleetFromItsCreationToReady(t *testing.T) {
	t.Parallel()
	s, _ := stand(t, pooltest.KubeletOptions{})
	s.Create(t, s.Pool("demo"))
	s.Await(t, "demo", v1alpha1.ConditionAccepted, "True/Valid")
	s.Await(t, "demo", v1alpha1.ConditionSecretsResolved, "True/Resolved")
	missing := s.Await(t, "demo", v1alpha1.ConditionPoolInitialised, "False/AccountMissing")
	if !strings.Contains(missing.Message, "expected") {
		t.Errorf("message %q: want it to say what was expected", missing.Message)
	}
	s.Await(t, "demo", v1alpha1.ConditionAvailable, "False/Held")
	var deployment appsv1.Deployment
	s.Get(t, "demo", &deployment)
	if ptr.Deref(deployment.Spec.Replicas, -1) != 0 {
		t.Fatalf("held fleet has %d replicas: want 0", ptr.Deref(deployment.Spec.Replicas, -1))
	}
	underfunded := s.Await(t, "demo", v1alpha1.ConditionFeePayersFunded, "False/Underfunded")
	if address := s.Status(t, "demo").FeePayers[0].Address; !strings.Contains(underfunded.Message, address) || !strings.Contains(underfunded.Message, "1 SOL") {
		t.Errorf("message %q: want the address %s and 1 SOL", underfunded.Message, address)
	}
	s.AwaitEvent(t, "demo", v1alpha1.EventKeyGenerated)

	if err := s.Chain.Initialize(); err != nil {
		t.Fatal(err)
	}
	s.Await(t, "demo", v1alpha1.ConditionPoolInitialised, "True/Initialised")
	s.AwaitEvent(t, "demo", v1alpha1.EventPoolInitialised)
	s.Await(t, "demo", v1alpha1.ConditionAvailable, "True/Available")
	if status := s.Status(t, "demo"); status.ReadyReplicas != 2 || status.InitialisedAt == nil {
		t.Errorf("%d pods are ready, initialised at %v: want 2, and a time", status.ReadyReplicas, status.InitialisedAt)
	}
	s.Fund(t, "demo", 2_000_000_000)
	s.Await(t, "demo", v1alpha1.ConditionFeePayersFunded, "True/Funded")
	s.Await(t, "demo", v1alpha1.ConditionReady, "True/Ready")
}

// ready makes a fleet with one funded key, and waits until the fleet is ready.
func ready(t *testing.T, s *pooltest.Stand, name string, change ...func(*v1alpha1.RelayPool)) {
	t.Helper()
	if err := s.Chain.Initialize(); err != nil {
		t.Fatal(err)
	}
	s.Create(t, s.Pool(name, change...))
	s.Fund(t, name, 2_000_000_000)
	s.Await(t, name, v1alpha1.ConditionReady, "True/Ready")
}

func TestAvailableHasThePodsOwnReason(t *testing.T) {
	t.Parallel()
	s, k := stand(t, pooltest.KubeletOptions{Fleet: func(pod *corev1.Pod) corev1.PodStatus {
		return pooltest.Crashing(pod, pooltest.Exit{ExitCode: 2, Message: "relay: --genesis-hash: expected 32 bytes in base58"})
	}})
	if err := s.Chain.Initialize(); err != nil {
		t.Fatal(err)
	}
	s.Create(t, s.Pool("demo"))
	got := s.Await(t, "demo", v1alpha1.ConditionAvailable, "False/PodsNotReady")
	pooltest.Eventually(t, "the message has the relay's termination message", func() error {
		if got = s.Await(t, "demo", v1alpha1.ConditionAvailable, "False/PodsNotReady"); !strings.Contains(got.Message, "exit code 2: relay: --genesis-hash") {
			return fmt.Errorf("message %q", got.Message)
		}
		return nil
	})
	k.Set(pooltest.KubeletOptions{})
	s.Await(t, "demo", v1alpha1.ConditionAvailable, "True/Available")
}

func TestScalingAndPause(t *testing.T) {
	t.Parallel()
	s, _ := stand(t, pooltest.KubeletOptions{})
	ready(t, s, "demo")
	awaitReplicas := func(want int32) {
		t.Helper()
		pooltest.Eventually(t, fmt.Sprintf("%d replicas", want), func() error {
			var d appsv1.Deployment
			s.Get(t, "demo", &d)
			if got := ptr.Deref(d.Spec.Replicas, -1); got != want {
				return fmt.Errorf("the Deployment has %d", got)
			}
			return nil
		})
	}
	set := func(change func(*v1alpha1.RelayPool)) {
		t.Helper()
		pooltest.Change(t, s, "demo", &v1alpha1.RelayPool{}, change)
	}
	set(func(p *v1alpha1.RelayPool) { p.Spec.Replicas = ptr.To[int32](3) })
	awaitReplicas(3)
	set(func(p *v1alpha1.RelayPool) {
		p.Spec.Replicas = nil
		p.Spec.Autoscaling = &v1alpha1.Autoscaling{Provider: v1alpha1.ProviderHPA, MinReplicas: 1, MaxReplicas: 9}
	})
	s.AwaitEvent(t, "demo", v1alpha1.EventScalingHandedOver)
	s.Await(t, "demo", v1alpha1.ConditionAutoscalingActive, "Unknown/Pending")
	awaitReplicas(3)
	// The operator keeps the number of replicas that the autoscaler sets.
	pooltest.Change(t, s, "demo", &appsv1.Deployment{}, func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](5) })
	set(func(p *v1alpha1.RelayPool) { p.Spec.Template.Labels = map[string]string{"team": "pools"} })
	pooltest.Eventually(t, "the label is on the template", func() error {
		var d appsv1.Deployment
		s.Get(t, "demo", &d)
		if d.Spec.Template.Labels["team"] != "pools" {
			return errors.New("the label is missing")
		}
		if got := ptr.Deref(d.Spec.Replicas, -1); got != 5 {
			t.Fatalf("the autoscaler's 5 replicas became %d", got)
		}
		return nil
	})
	set(func(p *v1alpha1.RelayPool) { p.Spec.Autoscaling = nil })
	s.AwaitAbsent(t, "demo", v1alpha1.ConditionAutoscalingActive)
	s.Await(t, "demo", v1alpha1.ConditionReady, "True/Ready")
	awaitReplicas(5)

	set(func(p *v1alpha1.RelayPool) { p.Spec.Paused = true })
	s.Await(t, "demo", v1alpha1.ConditionReady, "True/Paused")
	set(func(p *v1alpha1.RelayPool) { p.Spec.Replicas = ptr.To[int32](1) })
	s.Await(t, "demo", v1alpha1.ConditionAccepted, "True/Valid")
	awaitReplicas(5)
	set(func(p *v1alpha1.RelayPool) { p.Spec.Paused = false })
	awaitReplicas(1)
	set(func(p *v1alpha1.RelayPool) { p.Spec.Replicas = ptr.To[int32](0) })
	s.Await(t, "demo", v1alpha1.ConditionAvailable, "False/ScaledToZero")
}

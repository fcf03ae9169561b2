package pool_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/pool"
	"github.com/relaypool/relaypool/controllers/internal/pool/pooltest"
	"github.com/relaypool/relaypool/hack/apiserver"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
	"github.com/relaypool/relaypool/hack/localnet/fault"
)

func TestDriftIsRepairedAndReported(t *testing.T) {
	t.Parallel()
	s, _ := stand(t, pooltest.KubeletOptions{})
	ready(t, s, "demo")
	pooltest.Change(t, s, "demo", &appsv1.Deployment{}, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "somebody/else:1" })
	if err := s.Client.Delete(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "demo"}}); err != nil {
		t.Fatal(err)
	}
	pooltest.Eventually(t, "the image and the Service are restored", func() error {
		var d appsv1.Deployment
		s.Get(t, "demo", &d)
		if image := d.Spec.Template.Spec.Containers[0].Image; image != pooltest.Image {
			return fmt.Errorf("image is %s", image)
		}
		return s.Client.Get(t.Context(), client.ObjectKey{Namespace: s.Namespace, Name: "demo"}, &corev1.Service{})
	})
	if note := s.AwaitEvent(t, "demo", v1alpha1.EventDriftRepaired); !strings.Contains(note, "demo") {
		t.Errorf("note %q: want it to name the object", note)
	}
}

func TestForeignObjectsAreNotChanged(t *testing.T) {
	t.Parallel()
	s, _ := stand(t, pooltest.KubeletOptions{})
	if err := s.Chain.Initialize(); err != nil {
		t.Fatal(err)
	}
	foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "demo"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	s.Create(t, foreign)
	s.Create(t, s.Pool("demo"))
	stalled := s.Await(t, "demo", v1alpha1.ConditionStalled, "True/ForeignObject")
	if !strings.Contains(stalled.Message, "Service demo") {
		t.Errorf("message %q: want Service demo", stalled.Message)
	}
	s.AwaitEvent(t, "demo", v1alpha1.EventForeignObject)
	s.Await(t, "demo", v1alpha1.ConditionAvailable, "True/Available")
	var now corev1.Service
	s.Get(t, "demo", &now)
	if now.ResourceVersion != foreign.ResourceVersion {
		t.Error("a foreign Service was changed")
	}
	if err := s.Client.Delete(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	s.Fund(t, "demo", 2_000_000_000)
	s.Await(t, "demo", v1alpha1.ConditionReady, "True/Ready")
	s.Get(t, "demo", &now)
	if len(now.OwnerReferences) != 1 || now.OwnerReferences[0].Kind != v1alpha1.Kind {
		t.Error("the Service does not belong to the RelayPool after the foreign one was deleted")
	}
}

func TestUnwantedObjectsArePruned(t *testing.T) {
	t.Parallel()
	s, _ := stand(t, pooltest.KubeletOptions{})
	anywhere := []v1alpha1.Destination{{CIDR: "0.0.0.0/0", Port: 443}}
	if err := s.Chain.Initialize(); err != nil {
		t.Fatal(err)
	}
	s.Create(t, s.Pool("demo", func(p *v1alpha1.RelayPool) {
		p.Spec.NetworkPolicy = &v1alpha1.NetworkPolicy{Database: anywhere, RPC: anywhere}
		p.Spec.Autoscaling = &v1alpha1.Autoscaling{Provider: v1alpha1.ProviderHPA, MinReplicas: 2, MaxReplicas: 4}
	}))
	s.Await(t, "demo", v1alpha1.ConditionAvailable, "True/Available")
	for _, object := range []client.Object{&networkingv1.NetworkPolicy{}, &autoscalingv2.HorizontalPodAutoscaler{}} {
		s.Get(t, "demo", object)
	}
	pooltest.Change(t, s, "demo", &v1alpha1.RelayPool{}, func(p *v1alpha1.RelayPool) { p.Spec.NetworkPolicy, p.Spec.Autoscaling = nil, nil })
	pooltest.Eventually(t, "both are deleted", func() error {
		for _, object := range []client.Object{&networkingv1.NetworkPolicy{}, &autoscalingv2.HorizontalPodAutoscaler{}} {
			if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: s.Namespace, Name: "demo"}, object); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%T still exists, or cannot be read: %w", object, errors.Join(err))
			}
		}
		return nil
	})
	s.AwaitEvent(t, "demo", v1alpha1.EventPruned)
}

func TestARefusedObjectIsNamed(t *testing.T) {
	t.Parallel()
	s, _ := stand(t, pooltest.KubeletOptions{})
	s.Create(t, s.Pool("demo", func(p *v1alpha1.RelayPool) { p.Spec.Template.PriorityClassName = "Not A Name" }))
	refused := s.Await(t, "demo", v1alpha1.ConditionStalled, "True/Refused")
	if !strings.Contains(refused.Message, "Deployment demo") {
		t.Errorf("message %q: want Deployment demo", refused.Message)
	}
	s.Await(t, "demo", v1alpha1.ConditionAvailable, "False/NotDeployed")
}

func TestSecretIsCreatedLateAndDeleted(t *testing.T) {
	t.Parallel()
	s, _ := stand(t, pooltest.KubeletOptions{})
	if err := s.Chain.Initialize(); err != nil {
		t.Fatal(err)
	}
	const canary = "canary-of-a-password"
	s.Create(t, s.Pool("demo", func(p *v1alpha1.RelayPool) {
		p.Spec.Database.URLSecretRef = v1alpha1.SecretKeyReference{Name: "late", Key: "url"}
	}))
	missing := s.Await(t, "demo", v1alpha1.ConditionSecretsResolved, "False/SecretNotFound")
	if !strings.Contains(missing.Message, "late") {
		t.Errorf("message %q: want the Secret's name", missing.Message)
	}
	s.Await(t, "demo", v1alpha1.ConditionAvailable, "False/NotDeployed")
	s.Create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "late"}, StringData: map[string]string{"url": "mysql://u:" + canary + "@h/d"}})
	malformed := s.Await(t, "demo", v1alpha1.ConditionSecretsResolved, "False/SecretMalformed")
	if strings.Contains(malformed.Message, canary) {
		t.Error("the message has the Secret's value")
	}
	pooltest.Change(t, s, "late", &corev1.Secret{}, func(secret *corev1.Secret) {
		secret.Data["url"] = []byte("postgres://u:" + canary + "@127.0.0.1/d")
	})
	s.Fund(t, "demo", 2_000_000_000)
	s.Await(t, "demo", v1alpha1.ConditionReady, "True/Ready")
	var before, after appsv1.Deployment
	s.Get(t, "demo", &before)
	if err := s.Client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "late"}}); err != nil {
		t.Fatal(err)
	}
	s.Await(t, "demo", v1alpha1.ConditionReady, "False/SecretNotFound")
	s.Await(t, "demo", v1alpha1.ConditionAvailable, "True/Available")
	s.Get(t, "demo", &after)
	if before.Generation != after.Generation {
		t.Error("the deletion of a Secret changed the fleet")
	}
}

func TestStatusWhileTheChainIsUnavailable(t *testing.T) {
	t.Parallel()
	s, _ := stand(t, pooltest.KubeletOptions{})
	ready(t, s, "demo")
	if err := s.Chain.Endpoint("default").SetFaults([]fault.Rule{{Status: 503}}); err != nil {
		t.Fatal(err)
	}
	s.Await(t, "demo", v1alpha1.ConditionPoolInitialised, "Unknown/ChainUnavailable")
	s.Await(t, "demo", v1alpha1.ConditionReady, "Unknown/ChainUnavailable")
	s.Await(t, "demo", v1alpha1.ConditionAvailable, "True/Available")
	s.Await(t, "demo", v1alpha1.ConditionFeePayersFunded, "True/Funded")
	if err := s.Chain.Endpoint("default").SetFaults(nil); err != nil {
		t.Fatal(err)
	}
	s.Await(t, "demo", v1alpha1.ConditionReady, "True/Ready")
}

func TestDeletion(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		lamports  uint64
		wantEvent bool
	}{
		"funded keys are named":    {2_000_000_000, true},
		"empty keys are not named": {0, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := stand(t, pooltest.KubeletOptions{})
			two := func(p *v1alpha1.RelayPool) { p.Spec.FeePayers.Generate.Count = 2 }
			s.Create(t, s.Pool("demo", two))
			s.Await(t, "demo", v1alpha1.ConditionFeePayersFunded, "False/Underfunded")
			payers := s.Status(t, "demo").FeePayers
			awaitPayerEvents(t, s, v1alpha1.EventKeyGenerated, payers)
			if tc.lamports > 0 {
				s.Fund(t, "demo", tc.lamports)
				s.Await(t, "demo", v1alpha1.ConditionFeePayersFunded, "True/Funded")
			}
			// The RelayPool is deleted although the chain does not answer.
			if err := s.Chain.Endpoint("default").SetFaults([]fault.Rule{{Hang: true}}); err != nil {
				t.Fatal(err)
			}
			if err := s.Client.Delete(t.Context(), s.Pool("demo")); err != nil {
				t.Fatal(err)
			}
			pooltest.Eventually(t, "the RelayPool and its Deployment are deleted", func() error {
				for _, object := range []client.Object{&v1alpha1.RelayPool{}, &appsv1.Deployment{}} {
					if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: s.Namespace, Name: "demo"}, object); !apierrors.IsNotFound(err) {
						return fmt.Errorf("%T still exists, or cannot be read: %w", object, errors.Join(err))
					}
				}
				return nil
			})
			var secret corev1.Secret
			s.Get(t, payers[0].SecretName, &secret)
			s.Get(t, payers[1].SecretName, &secret)
			if tc.wantEvent {
				awaitPayerEvents(t, s, v1alpha1.EventFundedKeyLeft, payers)
			}
			if err := s.Chain.Endpoint("default").SetFaults(nil); err != nil {
				t.Fatal(err)
			}
			// The event KeyAdopted needs a RelayPool that is younger than the key, and
			// creation times have whole seconds.
			pooltest.Eventually(t, "a second has passed since the key was made", func() error {
				if time.Since(secret.CreationTimestamp.Time) < time.Second {
					return errors.New("not yet")
				}
				return nil
			})
			s.Create(t, s.Pool("demo", two))
			awaitPayerEvents(t, s, v1alpha1.EventKeyAdopted, payers)
			if left := notes(t, s, v1alpha1.EventFundedKeyLeft); !tc.wantEvent && len(left) > 0 {
				t.Errorf("events named empty keys: %v", left)
			}
		})
	}
}

// awaitPayerEvents waits until each payer has an event with its address.
func awaitPayerEvents(t *testing.T, s *pooltest.Stand, reason string, payers []v1alpha1.FeePayerStatus) {
	t.Helper()
	pooltest.Eventually(t, "an event "+reason+" for each payer", func() error {
		messages := notes(t, s, reason)
		for _, p := range payers {
			if !strings.Contains(messages[p.SecretName], p.Address) {
				return fmt.Errorf("notes are %v: want one about Secret %s with %s", messages, p.SecretName, p.Address)
			}
		}
		return nil
	})
}

// notes returns the notes of the events with a reason, by the name of the object that the
// event is about.
func notes(t *testing.T, s *pooltest.Stand, reason string) map[string]string {
	t.Helper()
	var list eventsv1.EventList
	if err := s.Client.List(t.Context(), &list, client.InNamespace(s.Namespace)); err != nil {
		t.Fatal(err)
	}
	notes := map[string]string{}
	for i := range list.Items {
		if e := &list.Items[i]; e.Reason == reason && e.Related != nil {
			notes[e.Related.Name] = e.Note
		}
	}
	return notes
}

// constantBacklog is a BacklogReader that gives the same answer for every pod.
type constantBacklog struct{ backlog pool.Backlog }

func (c constantBacklog) Backlog(context.Context, string) (pool.Backlog, error) {
	return c.backlog, nil
}

// The backlog of an idle fleet is shown. After that, no pass writes anything.
func TestIdleFleetCausesNoWrites(t *testing.T) {
	t.Parallel()
	s := pooltest.NewStand(t, apiservertest.Config(t))
	pooltest.StartKubelet(t, s.Config, s.Namespace, pooltest.KubeletOptions{})
	pooltest.StartOperator(t, s.Config, pooltest.OperatorOptions{
		Namespaces: []string{s.Namespace}, RefsInterval: 50 * time.Millisecond, Backlog: constantBacklog{pool.Backlog{Due: 42}},
	})
	ready(t, s, "demo")
	pooltest.Eventually(t, "the backlog is shown, and the figures are written", func() error {
		status := s.Status(t, "demo")
		if status.Backlog == nil || *status.Backlog != 42 || status.FeePayers[0].BalanceLamports == nil || *status.FeePayers[0].BalanceLamports != 2_000_000_000 {
			return errors.New("the status does not show them yet")
		}
		return nil
	})
	before := versions(t, s)
	time.Sleep(15 * time.Second) // hundreds of passes, none of which may write
	if diff := cmp.Diff(before, versions(t, s)); diff != "" {
		t.Errorf("objects written at rest (-before +after):\n%s", diff)
	}
}

// versions returns the resource versions of all objects in the namespace except
// events.
func versions(t *testing.T, s *pooltest.Stand) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, list := range []client.ObjectList{
		&v1alpha1.RelayPoolList{}, &appsv1.DeploymentList{}, &appsv1.ReplicaSetList{}, &corev1.PodList{}, &corev1.ConfigMapList{},
		&corev1.SecretList{}, &corev1.ServiceList{}, &corev1.ServiceAccountList{}, &policyv1.PodDisruptionBudgetList{},
		&networkingv1.NetworkPolicyList{}, &autoscalingv2.HorizontalPodAutoscalerList{}, &batchv1.JobList{},
	} {
		if err := s.Client.List(t.Context(), list, client.InNamespace(s.Namespace)); err != nil {
			t.Fatal(err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			object, ok := item.(client.Object)
			if !ok {
				return fmt.Errorf("%T is no object", item)
			}
			out[fmt.Sprintf("%T %s", object, object.GetName())] = object.GetResourceVersion()
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(out) < 8 {
		t.Fatalf("there are %d objects: want at least 8, or the test would check nothing", len(out))
	}
	return out
}

// An optional kind is reported as missing until it is installed, and is used from then on. The
// test has an API server of its own, because a new kind changes the status of every fleet
// on the server.
func TestOptionalKindIsUsedOnceInstalled(t *testing.T) {
	t.Parallel()
	server := apiservertest.Start(t, apiserver.Options{})
	config, err := server.Config()
	if err != nil {
		t.Fatal(err)
	}
	s := pooltest.NewStand(t, config)
	pooltest.StartOperator(t, config, pooltest.OperatorOptions{Namespaces: []string{s.Namespace}})
	s.Create(t, s.Pool("demo"))
	awaitAccepted := func(want string) {
		t.Helper()
		pooltest.Eventually(t, "Accepted says "+want, func() error {
			c := meta.FindStatusCondition(s.Status(t, "demo").Conditions, v1alpha1.ConditionAccepted)
			if c == nil || c.Reason != v1alpha1.ReasonValid || !strings.Contains(c.Message, want) {
				return fmt.Errorf("the condition is %+v", c)
			}
			return nil
		})
	}
	awaitAccepted("no PodMonitor and no PrometheusRule is made")
	pooltest.InstallOptional(t, server, build.KindPodMonitor, "podmonitors")
	pooltest.Eventually(t, "the PodMonitor is there", func() error {
		monitor := pooltest.Object(build.KindPodMonitor)
		return s.Client.Get(t.Context(), client.ObjectKey{Namespace: s.Namespace, Name: "demo"}, monitor)
	})
	awaitAccepted("valid; no PrometheusRule is made")
}

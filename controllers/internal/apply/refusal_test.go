package apply_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	coreac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/apply"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
)

func service(port int32) build.Object {
	return build.Object{Kind: build.KindService, Name: poolName, Config: coreac.Service(poolName, "").
		WithLabels(build.Labels(poolName)).WithSpec(coreac.ServiceSpec().
		WithPorts(coreac.ServicePort().WithName("http").WithPort(port).WithProtocol(corev1.ProtocolTCP)))}
}

// A custom resource's definition may be older than the fields that the operator applies.
func TestAFieldThatTheClusterDoesNotKnowIsRefused(t *testing.T) {
	t.Parallel()
	c, err := client.New(apiservertest.Config(t), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": v1alpha1.Kind,
		"metadata": map[string]any{"name": poolName, "namespace": apiservertest.Namespace(t)}, "spec": map[string]any{"newer": "a"},
	}}
	err = c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("test"))
	got, refused := apply.RefusalOf(apply.Ref{Name: poolName}, err)
	if !refused || got.Reason != "UnknownField" || !strings.Contains(got.Message, ".spec.newer: field not declared in schema") {
		t.Errorf("the error %v is a refusal: %t, as %+v; want one with the reason UnknownField that names the field", err, refused, got)
	}
}

func TestARefusedObjectBlocksNoOtherAndIsRetriedLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	objects := []build.Object{service(70000), configMap(shape{})}
	result := w.apply(objects)
	want := []apply.Refusal{{
		Ref: apply.Ref{Kind: build.KindService, Name: poolName}, Reason: "Invalid",
		Message: "spec.ports[0].port: Invalid value: must be between 1 and 65535, inclusive; " +
			"spec.ports[0].targetPort: Invalid value: must be between 1 and 65535, inclusive",
	}}
	if diff := cmp.Diff(want, result.Refused); diff != "" || names(result.Applied) != "ConfigMap demo" {
		t.Errorf("applied %s, refused (-want +got):\n%s", names(result.Applied), diff)
	}
	w.waitForCache(objects[1:])
	w.calls.reset()
	again := w.apply(objects)
	if diff := cmp.Diff(want, again.Refused); diff != "" || again.RetryAfter != apply.DefaultRefusalInterval {
		t.Errorf("again after %s, refused (-want +got):\n%s", again.RetryAfter, diff)
	}
	if writes, _ := w.calls.reset(); len(writes) > 0 {
		t.Errorf("wrote %q, want no call", writes)
	}
	w.clock.advance(apply.DefaultRefusalInterval)
	w.apply(objects)
	if writes, _ := w.calls.reset(); len(writes) != 1 {
		t.Errorf("wrote %q, want another try", writes)
	}
	// A corrected object is applied at once.
	objects[0] = service(80)
	if result := w.apply(objects); names(result.Applied) != "Service demo" || len(result.Refused) > 0 {
		t.Errorf("%+v, want the Service applied", result)
	}
}

func TestAQuotaIsARefusalWithoutItsCurrentUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	hard := corev1.ResourceList{"count/services": resource.MustParse("3")}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: w.owner.Namespace, Name: "small"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	must(t, w.live.Create(ctx, quota))
	// In a cluster the quota controller sets the status.
	quota.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: hard}
	must(t, w.live.Status().Update(ctx, quota))
	want := []apply.Refusal{{
		Ref: apply.Ref{Kind: build.KindService, Name: poolName}, Reason: "Forbidden",
		Message: "exceeded quota: small, requested: count/services=1, limited: count/services=3",
	}}
	eventually(t, func() error {
		result := w.apply([]build.Object{service(80), configMap(shape{})})
		if diff := cmp.Diff(want, result.Refused); diff != "" {
			// The API server enforces a new quota only after a moment.
			must(t, client.IgnoreNotFound(w.live.Delete(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: w.owner.Namespace, Name: poolName}})))
			w.clock.advance(apply.DefaultRefusalInterval)
			return errorf("refused (-want +got):\n%s", diff)
		}
		return nil
	})
}

func TestAnAdmissionPolicysMessageIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	name := "no-budgets-" + w.owner.Namespace
	fail := admissionv1.Fail
	must(t, w.live.Create(ctx, &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"services"}},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: "false", Message: "services are made by the network team"}},
		},
	}))
	must(t, w.live.Create(ctx, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.owner.Namespace}}},
		},
	}))
	t.Cleanup(func() {
		for _, o := range []client.Object{&admissionv1.ValidatingAdmissionPolicyBinding{}, &admissionv1.ValidatingAdmissionPolicy{}} {
			o.SetName(name)
			must(t, w.live.Delete(context.Background(), o))
		}
	})
	want := fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: services are made by the network team", name, name)
	eventually(t, func() error {
		result := w.apply([]build.Object{service(80), configMap(shape{})})
		if len(result.Refused) != 1 || result.Refused[0].Message != want {
			must(t, client.IgnoreNotFound(w.live.Delete(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: w.owner.Namespace, Name: poolName}})))
			w.clock.advance(10 * time.Second)
			return errorf("%+v", result)
		}
		return nil
	})
}

func TestOtherErrorsNameTheObject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := w.applier.Apply(ctx, w.owner, []build.Object{configMap(shape{}), service(80)})
	if err == nil || !strings.Contains(err.Error(), "apply ConfigMap demo: ") || !strings.Contains(err.Error(), "apply Service demo: ") {
		t.Errorf("error %v, want one that names both objects", err)
	}
	if apierrors.IsConflict(err) {
		t.Errorf("%v counts as a conflict", err)
	}
}

func TestRepeatedRepairsAreRateLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	objects := fixedObjects(shape{replicas: ptr(int32(2)), image: "relay:1"})
	w.apply(objects)
	w.applyUntilUnchanged(objects)
	stop, done := make(chan struct{}), make(chan int)
	go func() {
		changes := 0
		for ; ; changes++ {
			select {
			case <-stop:
				done <- changes
				return
			default:
			}
			var c corev1.ConfigMap
			if err := w.live.Get(context.Background(), client.ObjectKey{Namespace: w.owner.Namespace, Name: poolName}, &c); err != nil {
				t.Error(err)
			}
			c.Data["endpoints.yaml"] = fmt.Sprintf("evil %d", changes)
			// The update may lose a race against the Applier; the next one tries again.
			_ = w.live.Update(context.Background(), &c, client.FieldOwner("another-manager"))
		}
	}()
	repaired := 0
	contested := false
	eventually(t, func() error {
		result, err := w.applier.Apply(t.Context(), w.owner, objects)
		if err != nil && !apierrors.IsConflict(err) {
			return err
		}
		repaired += len(result.Repaired)
		contested = contested || names(result.Contested) == "ConfigMap demo"
		if !contested {
			return errorf("repaired %d times, and not yet contested", repaired)
		}
		return nil
	})
	for range 100 {
		result := w.apply(objects)
		repaired += len(result.Repaired)
	}
	close(stop)
	if changes := <-done; changes == 0 {
		t.Error("no other manager interfered")
	}
	if repaired > 5 {
		t.Errorf("repaired %d times while the clock stood still, want 5 at most", repaired)
	}
	// Without the other writer, the object is repaired.
	w.waitForCache(objects)
	eventually(t, func() error {
		w.clock.advance(10 * time.Second)
		w.apply(objects)
		if got := w.get(objects[1]).Object["data"].(map[string]any)["endpoints.yaml"]; got != "- name: one\n" {
			return errorf("the file is %v", got)
		}
		return nil
	})
	w.applyUntilUnchanged(objects)
}

package build_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
)

func TestMain(m *testing.M) { apiservertest.Main(m) }

// A real API server accepts the golden files with strict validation. Applying them
// again writes nothing.
func TestAnAPIServerAcceptsEveryObject(t *testing.T) {
	t.Parallel()
	for _, crd := range []struct{ kind, plural string }{{"PodMonitor", "podmonitors"}, {"PrometheusRule", "prometheusrules"}, {"ScaledObject", "scaledobjects"}} {
		for _, kind := range build.OptionalKinds() {
			if kind.Kind == crd.kind {
				if err := apiservertest.Server(t).Install(apiservertest.ForeignCRD(kind, crd.plural)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := apiservertest.Server(t).Install(apiservertest.HTTPRouteCRD(t)); err != nil {
		t.Fatal(err)
	}
	cl, err := client.New(apiservertest.Config(t), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	high := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 1000}
	if err := cl.Create(t.Context(), high); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	for name, in := range fixtures(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in.Pool.Namespace = apiservertest.Namespace(t)
			objects := append(build.Objects(in), build.RotationJob(in, build.Rotation{Step: build.StepFund, Revision: 1, From: in.Payers, To: in.Payers}))
			for _, o := range objects {
				first := apply(t, cl, o)
				second := apply(t, cl, o)
				if diff := cmp.Diff(first, second); diff != "" {
					t.Errorf("%s %s is written again although nothing changed (-first +second):\n%s", o.Kind.Kind, o.Name, diff)
				}
			}
			// The namespace enforces the restricted standard, and pods comply with it.
			template := into[appsv1.Deployment](t, single(t, objects, "Deployment")).Spec.Template
			pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
			pod.Name, pod.Namespace = "one-of-the-fleet", in.Pool.Namespace
			if err := cl.Create(t.Context(), pod, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
				t.Errorf("a pod of the fleet is refused: %v", err)
			}
		})
	}
}

// apply applies an object as the operator does and returns the stored object.
func apply(t *testing.T, cl client.Client, o build.Object) map[string]any {
	t.Helper()
	// Apply a copy, because the client writes the answer into its argument.
	if err := cl.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(asUnstructured(t, o)), client.FieldOwner(build.Manager), client.ForceOwnership); err != nil {
		t.Fatalf("%s %s: %v", o.Kind.Kind, o.Name, err)
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(o.Kind)
	key := client.ObjectKey{Namespace: asUnstructured(t, o).GetNamespace(), Name: o.Name}
	if err := cl.Get(t.Context(), key, live); err != nil {
		t.Fatal(err)
	}
	return live.Object
}

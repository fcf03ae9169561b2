package pool

import (
	"context"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/apply"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/chainwatch"
	"github.com/relaypool/relaypool/controllers/internal/keys"
	"github.com/relaypool/relaypool/controllers/internal/refs"
)

// fixedReadings implements the collaborators from which a Reconciler reads. The results are
// fixed.
type fixedReadings struct {
	references refs.Facts
	keys       keys.Facts
	chain      chainwatch.Reading
	backlog    Backlog
}

func (g fixedReadings) Resolve(context.Context, *v1alpha1.RelayPool) (refs.Facts, error) {
	return g.references, nil
}

func (g fixedReadings) Value(context.Context, types.NamespacedName, v1alpha1.SecretKeyReference) (string, error) {
	return "", nil
}
func (g fixedReadings) Certificates(context.Context, types.NamespacedName, *v1alpha1.CertificatesSource) (string, error) {
	return "", nil
}
func (g fixedReadings) Forget(types.NamespacedName) {}
func (g fixedReadings) Observe(context.Context, *v1alpha1.RelayPool) (keys.Facts, error) {
	return g.keys, nil
}
func (g fixedReadings) ForBuild(context.Context) (build.Capabilities, error) {
	return build.Capabilities{}, nil
}
func (g fixedReadings) Set(types.NamespacedName, chainwatch.Query)              {}
func (g fixedReadings) Reading(types.NamespacedName) (chainwatch.Reading, bool) { return g.chain, true }
func (g fixedReadings) Events() <-chan event.GenericEvent                       { return nil }
func (g fixedReadings) Backlog(types.NamespacedName, []string) Backlog          { return g.backlog }

// observe returns what a pass reads for f's RelayPool. The collaborators return the values
// in f. The cluster has all objects, and the cache has the objects with the label of a
// pool.
func observe(t *testing.T, f *Facts, objects ...client.Object) *Facts {
	t.Helper()
	g := fixedReadings{f.References, f.Keys, f.Chain, f.Backlog}
	labelled := slices.DeleteFunc(slices.Clone(objects), func(o client.Object) bool { return o.GetLabels()[build.LabelPool] == "" })
	cache := fake.NewClientBuilder().WithObjects(labelled...).WithReturnManagedFields().Build()
	cluster := fake.NewClientBuilder().WithObjects(objects...).WithReturnManagedFields().Build()
	r := &Reconciler{Options: Options{
		Client: cache, Live: cluster, References: g, KeyObserver: g, Capabilities: g, Watcher: g, Backlogs: g, Now: now,
	}}
	out, err := r.observe(t.Context(), f.Pool)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A reading made for another program or cluster does not open the gate after the spec was
// corrected.
func TestReadingOfAnotherPoolDoesNotOpenTheGate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change       func(*v1alpha1.RelayPoolSpec)
		wantRecorded bool
		want         string
	}{
		"the spec is unchanged": {
			func(*v1alpha1.RelayPoolSpec) {}, true, v1alpha1.ReasonInitialised,
		},
		"the spec now declares another program": {
			func(s *v1alpha1.RelayPoolSpec) { s.Pool.ProgramID = payerA().String() }, false, v1alpha1.ReasonNotChecked,
		},
		"the spec now declares another cluster": {
			func(s *v1alpha1.RelayPoolSpec) { s.Solana.Cluster = "mainnet-beta" }, false, v1alpha1.ReasonNotChecked,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := healthyFacts()
			f.Pool.Status.InitialisedAt = nil
			f.Chain.Target = f.Target.Query.Target
			test.change(&f.Pool.Spec)
			f = observe(t, f)
			p := Decide(f, settings())
			if p.RecordInitialised != test.wantRecorded {
				t.Errorf("RecordInitialised is %t, want %t", p.RecordInitialised, test.wantRecorded)
			}
			if got := poolInitialised(f, &p).reason; got != test.want {
				t.Errorf("PoolInitialised has the reason %s, want %s", got, test.want)
			}
		})
	}
}

// A Deployment that lost its owner still belongs to the fleet. The operator adopts it
// again, and must not set its size as for a new fleet.
func TestDeploymentWithoutOwnerKeepsItsSize(t *testing.T) {
	t.Parallel()
	madeByOperator := []metav1.ManagedFieldsEntry{{Manager: apply.FieldOwner, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "apps/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}}
	for name, test := range map[string]struct {
		managed  []metav1.ManagedFieldsEntry
		owner    []metav1.OwnerReference
		noLabels bool
		want     bool
	}{
		"its owner is the RelayPool":                                {madeByOperator, []metav1.OwnerReference{*metav1.NewControllerRef(healthyFacts().Pool, v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.Kind))}, false, true},
		"it has no owner, and the operator made it":                 {madeByOperator, nil, false, true},
		"it has neither owner nor labels, and the operator made it": {madeByOperator, nil, true, true},
		"it has no owner, and another manager made it":              {nil, nil, false, false},
		"its owner is an object of another kind":                    {madeByOperator, []metav1.OwnerReference{{APIVersion: "v1", Kind: "Other", Name: "demo", UID: "x", Controller: ptr.To(true)}}, false, false},
		"its owner is an earlier RelayPool of the same name":        {madeByOperator, []metav1.OwnerReference{{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.Kind, Name: "demo", UID: "x", Controller: ptr.To(true)}}, false, false},
		"its owner is another RelayPool":                            {madeByOperator, []metav1.OwnerReference{{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.Kind, Name: "other", UID: "x", Controller: ptr.To(true)}}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := healthyFacts()
			f.Pool.Spec.Replicas, f.Pool.Spec.Autoscaling = nil, &v1alpha1.Autoscaling{MinReplicas: 1, MaxReplicas: 20}
			labels := build.Labels("demo")
			if test.noLabels {
				labels = nil
			}
			f = observe(t, f, &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: "pools", Labels: labels, OwnerReferences: test.owner, ManagedFields: test.managed},
				Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](12)},
			})
			if got := f.Fleet.Deployment != nil; got != test.want {
				t.Fatalf("the Deployment counts as the fleet: %t, want %t", got, test.want)
			}
			if p := Decide(f, settings()); test.want && p.Input.Replicas != nil {
				t.Errorf("the Deployment is set to %d replicas, want the autoscaler's 12 left alone", *p.Input.Replicas)
			}
		})
	}
}

package pool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/apply"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/keys"
)

// keyWriter is a KeyWriter that records the plans, and returns err.
type keyWriter struct {
	plans []keys.Plan
	err   error
}

func (w *keyWriter) Apply(_ context.Context, _ *v1alpha1.RelayPool, plan keys.Plan, _ runtime.ApplyConfiguration) error {
	w.plans = append(w.plans, plan)
	return w.err
}

// mounting returns the spec of a pod that mounts the Secret of a key.
func mounting(secret string) corev1.PodSpec {
	return corev1.PodSpec{Volumes: []corev1.Volume{{Name: "files", VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{
			Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: secret}},
		}}},
	}}}}
}

// The cache shows no pod with the old keys, but a pod that is not in the cache yet may sign
// with them. So the pods in the API server decide whether the keys are drained.
func TestKeysAreOnlyDrainedWhenTheAPIServerShowsThemUnused(t *testing.T) {
	t.Parallel()
	old, fresh := keys.SecretName("demo", 0, 0), keys.SecretName("demo", 1, 0)
	pod := func(secret string, labels map[string]string) client.Object {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod-" + secret, Namespace: "pools", Labels: labels}, Spec: mounting(secret)}
	}
	deployment := func(secret string) client.Object {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: "pools"},
			Spec:       appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: mounting(secret)}},
		}
	}
	serviceAccount := func(owners ...metav1.OwnerReference) client.Object {
		return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: "pools", OwnerReferences: owners}}
	}
	configMap := func(owners ...metav1.OwnerReference) client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: "pools", OwnerReferences: owners}}
	}
	ownedByPool := metav1.OwnerReference{APIVersion: "relaypool.dev/v1alpha1", Kind: "RelayPool", Name: "demo", UID: "demo-uid", Controller: new(true)}
	rotation := build.Labels("demo")
	rotation[build.LabelComponent] = build.ComponentRotation
	for name, test := range map[string]struct {
		live    []client.Object
		step    v1alpha1.RotationStep
		running bool
		want    bool
	}{
		"all pods have the new key":                         {[]client.Object{deployment(fresh), pod(fresh, build.Labels("demo"))}, v1alpha1.RotationDrain, false, true},
		"there is no fleet":                                 {nil, v1alpha1.RotationDrain, false, true},
		"a pod has the old key":                             {[]client.Object{deployment(fresh), pod(old, build.Labels("demo"))}, v1alpha1.RotationDrain, false, false},
		"the template has the old key":                      {[]client.Object{deployment(old)}, v1alpha1.RotationDrain, false, false},
		"a pod has the key that is to be swept":             {[]client.Object{pod(old, build.Labels("demo"))}, v1alpha1.RotationSweep, false, false},
		"a pod of the rotation has the old key":             {[]client.Object{deployment(fresh), pod(old, rotation)}, v1alpha1.RotationDrain, false, true},
		"pods have the old key while the new key is funded": {[]client.Object{deployment(old), pod(old, build.Labels("demo"))}, v1alpha1.RotationFund, false, true},
		"the service account is foreign":                    {[]client.Object{deployment(old), serviceAccount()}, v1alpha1.RotationFund, false, false},
		"the service account is the fleet's":                {[]client.Object{deployment(old), serviceAccount(ownedByPool)}, v1alpha1.RotationFund, false, true},
		"the ConfigMap with the endpoints is foreign":       {[]client.Object{deployment(old), serviceAccount(ownedByPool), configMap()}, v1alpha1.RotationFund, false, false},
		"the ConfigMap with the endpoints is the fleet's":   {[]client.Object{deployment(old), serviceAccount(ownedByPool), configMap(ownedByPool)}, v1alpha1.RotationFund, false, true},
		"the Job exists already":                            {[]client.Object{pod(old, build.Labels("demo"))}, v1alpha1.RotationDrain, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, written := healthyFacts(), &keyWriter{}
			r := &Reconciler{Options: Options{Live: fake.NewClientBuilder().WithObjects(test.live...).Build(), KeyWriter: written}}
			p := Plan{Keys: keys.Plan{Job: &keys.JobWanted{
				Name: "demo-payer-1-drain", Step: test.step, Revision: 1,
				From: []keys.Mount{{Secret: old, Key: keys.DataKey}}, To: []keys.Mount{{Secret: fresh, Key: keys.DataKey}},
			}}}
			p.Input = build.Input{Pool: f.Pool, Image: "relay:1"}
			if test.running {
				p.Keys.Job.Existing = &keys.Job{Name: "demo-payer-1-drain"}
			}
			if _, err := r.apply(t.Context(), f, &p); err != nil {
				t.Fatal(err)
			}
			if len(written.plans) != 1 || (written.plans[0].Job != nil) != test.want {
				t.Errorf("plans written: %+v; want one plan, and it has to contain the Job: %t", written.plans, test.want)
			}
		})
	}
}

// countingApplier counts its calls, and applies nothing.
type countingApplier struct{ passes int }

func (a *countingApplier) Apply(context.Context, *v1alpha1.RelayPool, []build.Object, ...apply.Option) (apply.Result, error) {
	a.passes++
	return apply.Result{}, nil
}

func (a *countingApplier) Forget(types.NamespacedName) {}

// If the API server refuses the Job of a rotation, this is reported, and the rest of the
// spec is applied to the fleet. If a key cannot be made, the pass stops, because the fleet
// needs the key.
func TestAJobThatCannotBeMadeBlocksOnlyItsRotation(t *testing.T) {
	t.Parallel()
	job := &keys.JobWanted{Name: "demo-payer-1-fund", Step: v1alpha1.RotationFund, Revision: 1, From: []keys.Mount{{Secret: "a", Key: "key"}}}
	rotation := &v1alpha1.RotationStatus{Revision: 1, Step: v1alpha1.RotationFund, Message: "Job demo-payer-1-fund is made"}
	denied := apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, job.Name, errors.New("no Jobs on Saturdays"))
	for name, test := range map[string]struct {
		plan        keys.Plan
		err         error
		wantApplied int
		wantErr     bool
		wantStalled string
	}{
		"the API server refuses the Job": {
			keys.Plan{Job: job, Rotation: rotation}, fmt.Errorf("create Job %s: %w", job.Name, denied), 1, false, v1alpha1.ReasonRefused,
		},
		"the API server does not answer": {
			keys.Plan{Job: job, Rotation: rotation}, errors.New("no answer"), 1, true, "",
		},
		"the API server refuses a key": {
			keys.Plan{Create: []keys.NewKey{{Secret: "demo-payer-1-0"}}}, denied, 0, true, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, fleet := healthyFacts(), &countingApplier{}
			r := &Reconciler{Options: Options{Live: fake.NewClientBuilder().Build(), KeyWriter: &keyWriter{err: test.err}, Applier: fleet}}
			p := Plan{Keys: test.plan, Deploy: true, Input: build.Input{Pool: f.Pool, Image: "relay:1"}}
			p.Keys.Rotation = test.plan.Rotation.DeepCopy()
			o, err := r.apply(t.Context(), f, &p)
			if fleet.passes != test.wantApplied || (err != nil) != test.wantErr {
				t.Errorf("the fleet was applied %d times, error %v; want %d times, and an error is expected: %t", fleet.passes, err, test.wantApplied, test.wantErr)
			}
			status := Report(f, &p, &o)
			reason := ""
			if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionStalled); c != nil {
				reason = c.Reason
				if !strings.Contains(c.Message, "no Jobs on Saturdays") || !strings.Contains(c.Message, job.Name) {
					t.Errorf("message %q: want the Job and what the API server says", c.Message)
				}
				if !strings.Contains(status.Rotation.Message, "refused") {
					t.Errorf("the rotation says %q: want that its Job was refused", status.Rotation.Message)
				}
			}
			if reason != test.wantStalled {
				t.Errorf("Stalled has the reason %q, want %q", reason, test.wantStalled)
			}
		})
	}
}

// A stale cache shows the RelayPool as it was before the last write of its status. A pass
// on that version could take a step of a rotation and then fail to record the step.
func TestStaleCachedRelayPoolIsNotReconciled(t *testing.T) {
	t.Parallel()
	pool := healthyFacts().Pool
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	cached := fake.NewClientBuilder().WithScheme(scheme).WithObjects(pool.DeepCopy()).WithStatusSubresource(pool).Build()
	key := client.ObjectKeyFromObject(pool)
	before := new(v1alpha1.RelayPool)
	if err := cached.Get(t.Context(), key, before); err != nil {
		t.Fatal(err)
	}
	r := &Reconciler{Options: Options{Client: cached, Now: now}} // too few options for a pass
	status := before.Status.DeepCopy()
	status.ObservedGeneration++
	r.Recorder = discardRecorder{}
	if err := r.write(t.Context(), &Facts{Pool: before}, &Plan{}, status); err != nil {
		t.Fatal(err)
	}
	if !r.replacedVersions.isReplaced(key, before.ResourceVersion, now()) {
		t.Error("the version that was replaced is not known")
	}
	after := new(v1alpha1.RelayPool)
	if err := cached.Get(t.Context(), key, after); err != nil {
		t.Fatal(err)
	}
	if r.replacedVersions.isReplaced(key, after.ResourceVersion, now()) {
		t.Error("the version that is new counts as replaced")
	}
	if r.replacedVersions.isReplaced(key, before.ResourceVersion, now().Add(replacedMaxAge)) {
		t.Error("a version that is still shown after a minute counts as replaced: a restored RelayPool would never be reconciled")
	}
	r.replacedVersions.set(key, after.ResourceVersion, now())
	got, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
	if err != nil || got.RequeueAfter != minRequeue {
		t.Errorf("a pass on a replaced version returns %+v, error %v; want a requeue after %s", got, err, minRequeue)
	}
	r.replacedVersions.forget(key)
	if r.replacedVersions.isReplaced(key, after.ResourceVersion, now()) {
		t.Error("a deleted RelayPool is remembered")
	}
}

type discardRecorder struct{}

func (discardRecorder) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {
}

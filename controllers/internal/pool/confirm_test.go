package pool

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/keys"
)

// writes notes what is to be written about keys.
type writes struct{ plans []keys.Plan }

func (w *writes) Apply(_ context.Context, _ *v1alpha1.RelayPool, plan keys.Plan, _ runtime.ApplyConfiguration) error {
	w.plans = append(w.plans, plan)
	return nil
}

// mounting is the pod of a fleet, or its template, with a key.
func mounting(secret string) corev1.PodSpec {
	return corev1.PodSpec{Volumes: []corev1.Volume{{Name: "files", VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{
			Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: secret}},
		}}},
	}}}}
}

// The cache shows no pod with the old keys. What the API server itself has decides
// whether these are drained: a pod that the cache does not know yet may sign.
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
	rotation := build.Labels("demo")
	rotation[build.LabelComponent] = build.ComponentRotation
	for name, test := range map[string]struct {
		live    []client.Object
		step    v1alpha1.RotationStep
		running bool
		want    bool
	}{
		"no pod has the old key":                               {[]client.Object{deployment(fresh), pod(fresh, build.Labels("demo"))}, v1alpha1.RotationDrain, false, true},
		"there is no fleet":                                    {nil, v1alpha1.RotationDrain, false, true},
		"a pod has the old key":                                {[]client.Object{deployment(fresh), pod(old, build.Labels("demo"))}, v1alpha1.RotationDrain, false, false},
		"the template has the old key":                         {[]client.Object{deployment(old)}, v1alpha1.RotationDrain, false, false},
		"a pod has the key that is to be swept":                {[]client.Object{pod(old, build.Labels("demo"))}, v1alpha1.RotationSweep, false, false},
		"a pod of the rotation has the old key":                {[]client.Object{deployment(fresh), pod(old, rotation)}, v1alpha1.RotationDrain, false, true},
		"the fleet has the old keys while new ones are funded": {[]client.Object{deployment(old), pod(old, build.Labels("demo"))}, v1alpha1.RotationFund, false, true},
		"the Job is there already":                             {[]client.Object{pod(old, build.Labels("demo"))}, v1alpha1.RotationDrain, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, written := running(), &writes{}
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
				t.Errorf("the Job is made: %+v, want %t", written.plans, test.want)
			}
		})
	}
}

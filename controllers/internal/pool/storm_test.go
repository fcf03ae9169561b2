package pool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/keys"
	"github.com/relaypool/relaypool/controllers/internal/pool"
	"github.com/relaypool/relaypool/controllers/internal/pool/pooltest"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
)

// stormWrites is how many writes the test's writers make together.
const stormWrites = 1000

// minScaled is the lowest number of replicas that the stand-in for an autoscaler sets.
const minScaled = 4

// Other writers change RelayPools and owned objects as fast as they can. The operator keeps
// every replica that an autoscaler added, makes no key twice, and makes at most two
// requests for each of their writes. When the writers stop, every object is as declared,
// and the operator stops writing.
func TestOperatorConvergesAfterConflictingWrites(t *testing.T) {
	t.Parallel()
	s := pooltest.NewStand(t, apiservertest.Config(t))
	pooltest.StartKubelet(t, s.Config, s.Namespace, pooltest.KubeletOptions{})
	var traffic pooltest.Traffic
	pooltest.StartOperator(t, s.Config, pooltest.OperatorOptions{
		Namespaces: []string{s.Namespace}, Backlog: constantBacklog{pool.Backlog{Due: 7}}, Traffic: &traffic,
	})
	ready(t, s, "fixed", func(p *v1alpha1.RelayPool) { p.Spec.Replicas = ptr.To[int32](2) })
	s.Create(t, s.Pool("scaled", func(p *v1alpha1.RelayPool) {
		p.Spec.Autoscaling = &v1alpha1.Autoscaling{Provider: v1alpha1.ProviderHPA, MinReplicas: 2, MaxReplicas: 9}
	}))
	s.Fund(t, "scaled", 2_000_000_000)
	s.Await(t, "scaled", v1alpha1.ConditionAvailable, "True/Available")
	before := payerSecrets(t, s, 2)

	storm := newStorm(t, s)
	if err := storm.scale(t.Context(), "scaled", minScaled); err != nil {
		t.Fatal(err)
	}
	lowest := storm.watchReplicas(t, "scaled")
	traffic.Take()
	storm.run(t)
	requests := traffic.Take()
	if got := lowest(); got < minScaled {
		t.Errorf("the autoscaled fleet was at %d replicas: want always at least the autoscaler's %d", got, minScaled)
	}
	// One pass covers several writes, and the rate of repairs is bounded.
	if limit := 2 * stormWrites; len(requests) > limit {
		t.Errorf("the operator made %d requests in a storm of %d writes: want at most %d", len(requests), stormWrites, limit)
	}
	t.Logf("%d requests of the operator, %d of them writes, in a storm of %d writes", len(requests), countWrites(requests), stormWrites)

	storm.resetReplicas(t)
	s.Await(t, "fixed", v1alpha1.ConditionReady, "True/Ready")
	s.Await(t, "scaled", v1alpha1.ConditionAvailable, "True/Available")
	pooltest.Eventually(t, "both fleets are as declared", func() error { return errors.Join(asDeclared(t, s, "fixed", 2), asDeclared(t, s, "scaled", 0)) })
	after := payerSecrets(t, s, 2)
	for name, uid := range before {
		if after[name] != uid {
			t.Errorf("Secret %s was replaced or deleted", name)
		}
	}
	storm.awaitNoWrites(t, &traffic)
}

func countWrites(requests []pooltest.Request) (n int) {
	for _, r := range requests {
		if r.Writes() {
			n++
		}
	}
	return n
}

// payerSecrets returns the uids of the generated keys' Secrets, by name.
func payerSecrets(t *testing.T, s *pooltest.Stand, want int) map[string]types.UID {
	t.Helper()
	var list corev1.SecretList
	if err := s.Client.List(t.Context(), &list, client.InNamespace(s.Namespace), client.HasLabels{keys.LabelState}); err != nil {
		t.Fatal(err)
	}
	out, addresses := map[string]types.UID{}, map[string]bool{}
	for i := range list.Items {
		out[list.Items[i].Name] = list.Items[i].UID
		addresses[list.Items[i].Annotations[keys.AnnotationAddress]] = true
	}
	if len(out) != want || len(addresses) != want {
		t.Fatalf("there are %d keys with %d addresses: want %d", len(out), len(addresses), want)
	}
	return out
}

// storm runs all writers except the operator.
type storm struct {
	*pooltest.Stand
	writes atomic.Int64
}

func newStorm(t *testing.T, s *pooltest.Stand) *storm {
	t.Helper()
	return &storm{Stand: s}
}

// run runs the writers until they have made stormWrites writes.
func (s *storm) run(t *testing.T) {
	t.Helper()
	var writers sync.WaitGroup
	for _, name := range []string{"fixed", "scaled"} {
		for _, write := range s.writers(name) {
			writers.Go(func() {
				for n := 0; s.writes.Add(1) <= stormWrites && t.Context().Err() == nil; n++ {
					if err := write(t.Context(), n); err != nil && !isExpected(err) && t.Context().Err() == nil {
						t.Errorf("storm: %v", err)
						return
					}
				}
			})
		}
	}
	writers.Wait()
}

// isExpected reports whether an error is expected when others delete and change objects.
func isExpected(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }

// writers returns functions that each make one kind of write to a fleet. They run
// concurrently.
func (s *storm) writers(name string) []func(context.Context, int) error {
	object := metav1.ObjectMeta{Namespace: s.Namespace, Name: name}
	deployment := func() client.Object { return &appsv1.Deployment{ObjectMeta: object} }
	return []func(context.Context, int) error{
		func(ctx context.Context, n int) error { // labels, annotations and spec of the RelayPool
			change := map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"storm": fmt.Sprint(n)}, "annotations": map[string]any{"storm": fmt.Sprint(n)}},
				"spec":     map[string]any{"pool": map[string]any{"checkIntervalSeconds": 10 + n%20}},
			}
			if name == "fixed" {
				change["spec"].(map[string]any)["replicas"] = 2 + n%2
			}
			return s.merge(ctx, &v1alpha1.RelayPool{ObjectMeta: object}, change)
		},
		func(ctx context.Context, n int) error { // the Deployment: annotations, sometimes its spec
			change := map[string]any{"metadata": map[string]any{"annotations": map[string]any{"storm": fmt.Sprint(n)}}}
			if n%10 == 9 {
				change["spec"] = map[string]any{"minReadySeconds": n, "revisionHistoryLimit": n}
			}
			return s.merge(ctx, deployment(), change)
		},
		func(ctx context.Context, _ int) error { // an autoscaler, or somebody with kubectl scale
			return s.scale(ctx, name, minScaled+rand.Int32N(4))
		},
		func(ctx context.Context, n int) error {
			return s.merge(ctx, &corev1.Service{ObjectMeta: object}, map[string]any{
				"metadata": map[string]any{"labels": map[string]any{build.LabelManagedBy: fmt.Sprint("storm-", n)}},
				"spec":     map[string]any{"selector": map[string]any{"storm": fmt.Sprint(n)}},
			})
		},
		func(ctx context.Context, _ int) error {
			return s.Client.Delete(ctx, &policyv1.PodDisruptionBudget{ObjectMeta: object})
		},
	}
}

func (s *storm) merge(ctx context.Context, object client.Object, change map[string]any) error {
	raw, err := json.Marshal(change)
	if err != nil {
		return err
	}
	return s.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, raw), client.FieldOwner("storm"))
}

func (s *storm) scale(ctx context.Context, name string, replicas int32) error {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}}
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
	return s.Client.SubResource("scale").Update(ctx, deployment, client.WithSubResourceBody(scale), client.FieldOwner("autoscaler"))
}

// watchReplicas watches the replicas of a Deployment. The function lowest stops the watch
// and returns the lowest number.
func (s *storm) watchReplicas(t *testing.T, name string) (lowest func() int32) {
	t.Helper()
	watchClient, err := client.NewWithWatch(s.Config, client.Options{Scheme: s.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	var d appsv1.Deployment
	s.Get(t, name, &d)
	minimum := *d.Spec.Replicas
	w, err := watchClient.Watch(t.Context(), &appsv1.DeploymentList{}, client.InNamespace(s.Namespace), &client.ListOptions{
		Raw: &metav1.ListOptions{ResourceVersion: d.ResourceVersion, FieldSelector: "metadata.name=" + name},
	})
	if err != nil {
		t.Fatal(err)
	}
	var watcher sync.WaitGroup
	var stopped atomic.Bool
	seen := 0
	watcher.Go(func() {
		for e := range w.ResultChan() {
			d, ok := e.Object.(*appsv1.Deployment)
			if !ok {
				if !stopped.Load() {
					t.Errorf("watch the Deployment: %+v", e.Object)
				}
				return
			}
			minimum, seen = min(minimum, *d.Spec.Replicas), seen+1
		}
	})
	return func() int32 {
		stopped.Store(true)
		w.Stop()
		watcher.Wait()
		if seen < 10 {
			t.Errorf("the Deployment changed %d times: want at least 10, or the test checks too little", seen)
		}
		return minimum
	}
}

// resetReplicas sets the number that the spec declares after the storm.
func (s *storm) resetReplicas(t *testing.T) {
	t.Helper()
	pooltest.Change(t, s.Stand, "fixed", &v1alpha1.RelayPool{}, func(p *v1alpha1.RelayPool) { p.Spec.Replicas = ptr.To[int32](2) })
}

// asDeclared checks that a fleet's objects are what the operator makes from its RelayPool.
// replicas is the wanted number; 0 means that the autoscaler sets it.
func asDeclared(t *testing.T, s *pooltest.Stand, name string, replicas int32) error {
	t.Helper()
	var p v1alpha1.RelayPool
	s.Get(t, name, &p)
	for _, kind := range []string{v1alpha1.ConditionStalled, v1alpha1.ConditionReconciling} {
		if c := meta.FindStatusCondition(p.Status.Conditions, kind); c != nil {
			return fmt.Errorf("%s is %s: %s", name, kind, c.Message)
		}
	}
	var d appsv1.Deployment
	s.Get(t, name, &d)
	var service corev1.Service
	s.Get(t, name, &service)
	wanted := build.Selector(name)
	switch {
	case replicas != 0 && *d.Spec.Replicas != replicas, replicas == 0 && *d.Spec.Replicas < minScaled:
		return fmt.Errorf("%s has %d replicas", name, *d.Spec.Replicas)
	case d.Spec.MinReadySeconds != 0:
		return fmt.Errorf("%s has minReadySeconds %d, want 0", name, d.Spec.MinReadySeconds)
	case service.Labels[build.LabelManagedBy] != build.Manager:
		return fmt.Errorf("%s's Service is managed by %s", name, service.Labels[build.LabelManagedBy])
	}
	for key, value := range wanted {
		if service.Spec.Selector[key] != value {
			return fmt.Errorf("%s's Service selects %v", name, service.Spec.Selector)
		}
	}
	return s.Client.Get(t.Context(), client.ObjectKey{Namespace: s.Namespace, Name: name}, &policyv1.PodDisruptionBudget{})
}

// awaitNoWrites waits until several passes in a row wrote nothing. It fails if the operator
// repairs objects in an endless loop.
func (s *storm) awaitNoWrites(t *testing.T, traffic *pooltest.Traffic) {
	t.Helper()
	const wantReads = 10 // of the Secret that the RelayPools name; each is part of a pass
	reads := 0
	pooltest.Eventually(t, "passes write nothing any more", func() error {
		for _, r := range traffic.Take() {
			switch {
			case r.Writes() && r.Resource != "events":
				reads = 0
			case r.Resource == "secrets" && r.Name == "postgres":
				reads++
			}
		}
		if reads < wantReads {
			return fmt.Errorf("%d reads of the Secret without a write", reads)
		}
		return nil
	})
	var list v1alpha1.RelayPoolList
	if err := s.Client.List(t.Context(), &list, client.InNamespace(s.Namespace)); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		for _, c := range list.Items[i].Status.Conditions {
			if c.ObservedGeneration != list.Items[i].Generation {
				t.Errorf("%s: the condition %s has generation %d, want %d", list.Items[i].Name, c.Type, c.ObservedGeneration, list.Items[i].Generation)
			}
		}
	}
}

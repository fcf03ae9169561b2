package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/gagliardetto/solana-go"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

const (
	// enough is what each payer is funded with, in lamports: above the target that
	// a RelayPool has by default.
	enough = 20 * solana.LAMPORTS_PER_SOL
	// payerAddress is the annotation by which the operator says whose key a Secret
	// holds.
	payerAddress = v1alpha1.Group + "/payer-address"
	// nodes is how many Deployments are tended at once.
	nodes = 8
)

// world does what others do in a cluster: pods of Deployments are made and become
// ready, and somebody funds each new key at once. It notes how far each RelayPool
// has come.
type world struct {
	lab   *lab
	cache cache.Cache
	queue workqueue.TypedRateLimitingInterface[client.ObjectKey]
	fault chan error

	mu     sync.Mutex
	funded map[string]bool
	fleet  map[string]time.Time // when it was first available, its pool initialised
	ready  map[string]time.Time // when it was first ready
	is     map[string]bool      // which are ready now
	lost   map[string]bool      // those that were ready and then were not, since forgive
}

// watch makes a world that goes on until ctx ends.
func (l *lab) watch(ctx context.Context) (*world, error) {
	w := &world{
		lab: l, fault: make(chan error, 1),
		queue:  workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[client.ObjectKey]()),
		funded: map[string]bool{}, fleet: map[string]time.Time{}, ready: map[string]time.Time{}, is: map[string]bool{}, lost: map[string]bool{},
	}
	var err error
	if w.cache, err = cache.New(l.config, cache.Options{Scheme: l.scheme, DefaultNamespaces: map[string]cache.Config{namespace: {}}}); err != nil {
		return nil, err
	}
	for object, handler := range map[client.Object]toolscache.ResourceEventHandlerFuncs{
		&appsv1.Deployment{}:  changed(func(d *appsv1.Deployment) { w.queue.Add(client.ObjectKeyFromObject(d)) }),
		&corev1.Secret{}:      changed(func(s *corev1.Secret) { w.note(w.fund(s.Annotations[payerAddress])) }),
		&v1alpha1.RelayPool{}: changed(w.look),
	} {
		informer, err := w.cache.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, err
		}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return nil, err
		}
	}
	go func() { w.note(w.cache.Start(ctx)) }()
	context.AfterFunc(ctx, w.queue.ShutDown)
	for range nodes {
		go w.tend(ctx)
	}
	if !w.cache.WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("watch the cluster: %w", ctx.Err())
	}
	return w, nil
}

func changed[T any](do func(T)) toolscache.ResourceEventHandlerFuncs {
	handle := func(object any) {
		if of, ok := object.(T); ok {
			do(of)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{AddFunc: handle, UpdateFunc: func(_, object any) { handle(object) }}
}

// note keeps the first fault.
func (w *world) note(err error) {
	if err == nil {
		return
	}
	select {
	case w.fault <- err:
	default:
	}
}

// tend runs pods of Deployments until the queue is shut down.
func (w *world) tend(ctx context.Context) {
	for {
		key, ended := w.queue.Get()
		if ended {
			return
		}
		if err := w.runPods(ctx, key); ctx.Err() == nil {
			w.note(err)
		}
		w.queue.Done(key)
	}
}

// runPods makes a Deployment's pods and reports them as ready. Those of a
// Deployment that is scaled down stay: none is here.
func (w *world) runPods(ctx context.Context, key client.ObjectKey) error {
	var d appsv1.Deployment
	if err := w.cache.Get(ctx, key, &d); err != nil {
		return client.IgnoreNotFound(err)
	}
	var n int32 = 1
	if d.Spec.Replicas != nil {
		n = *d.Spec.Replicas
	}
	if d.Status.ObservedGeneration == d.Generation && d.Status.AvailableReplicas == n {
		return nil
	}
	for i := range n {
		if err := w.runPod(ctx, &d, i); err != nil {
			return err
		}
	}
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		},
	}
	d.ResourceVersion = "" // the newest counts, whoever wrote meanwhile
	return w.lab.client.Status().Update(ctx, &d)
}

// runPod makes one pod. It gets no address: nobody answers there.
func (w *world) runPod(ctx context.Context, d *appsv1.Deployment, i int32) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.Namespace, Name: fmt.Sprintf("%s-%d", d.Name, i),
			Labels: d.Spec.Template.Labels, Annotations: d.Spec.Template.Annotations,
		},
		Spec: d.Spec.Template.Spec,
	}
	if err := w.lab.client.Create(ctx, pod); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
		{Type: corev1.PodReady, Status: corev1.ConditionTrue},
	}
	return w.lab.client.Status().Update(ctx, pod)
}

// fund brings a payer what it needs, once.
func (w *world) fund(payer string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if payer == "" || w.funded[payer] {
		return nil
	}
	address, err := solana.PublicKeyFromBase58(payer)
	if err != nil {
		return err
	}
	w.funded[payer] = true
	return w.lab.chain.Fund(address, enough)
}

// look notes how far a RelayPool has come.
func (w *world) look(p *v1alpha1.RelayPool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	current := p.Status.ObservedGeneration == p.Generation
	is := func(condition string) bool {
		return current && apimeta.IsStatusConditionTrue(p.Status.Conditions, condition)
	}
	if w.fleet[p.Name].IsZero() && is(v1alpha1.ConditionPoolInitialised) && is(v1alpha1.ConditionAvailable) {
		w.fleet[p.Name] = time.Now()
	}
	if w.ready[p.Name].IsZero() && is(v1alpha1.ConditionReady) {
		w.ready[p.Name] = time.Now()
	}
	if w.is[p.Name] && !is(v1alpha1.ConditionReady) {
		w.lost[p.Name] = true
	}
	w.is[p.Name] = is(v1alpha1.ConditionReady)
}

// readyNow tells how many RelayPools are ready, and the first fault.
func (w *world) readyNow() (ready int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, is := range w.is {
		if is {
			ready++
		}
	}
	select {
	case err = <-w.fault:
		return ready, fmt.Errorf("the stand-in for the cluster failed: %w", err)
	default:
		return ready, nil
	}
}

// forgive forgets which were lost, and relapsed tells how many were since.
func (w *world) forgive() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.lost)
}

func (w *world) relapsed() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.lost)
}

// came gives when each RelayPool had its fleet and when it was ready.
func (w *world) came() (fleet, ready map[string]time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return copied(w.fleet), copied(w.ready)
}

func copied(of map[string]time.Time) map[string]time.Time {
	out := make(map[string]time.Time, len(of))
	for name, at := range of {
		out[name] = at
	}
	return out
}

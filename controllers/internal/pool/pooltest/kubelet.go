package pooltest

import (
	"context"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"

	"github.com/relaypool/relaypool/controllers/internal/build"
)

// node is the node on which the stand-in runs pods.
const node = "pooltest"

// Exit is how a container ended.
type Exit struct {
	ExitCode int32
	// Message is the container's termination message.
	Message string
}

// KubeletOptions control what happens to pods.
type KubeletOptions struct {
	// Fleet returns the status of a started pod of a fleet; nil makes every pod
	// ready.
	Fleet func(pod *corev1.Pod) corev1.PodStatus
	// Job runs a Job's pod to its end; nil leaves the pods of Jobs pending. ctx ends when
	// the pod is deleted.
	Job func(ctx context.Context, pod *corev1.Pod) Exit
	// Linger is how long a deleted pod takes to end.
	Linger time.Duration
}

// Kubelet is a stand-in for the scheduler and the kubelet in one namespace.
type Kubelet struct {
	client    kubernetes.Interface
	namespace string
	pods      listers.PodNamespaceLister

	mutex   sync.Mutex
	options KubeletOptions
	running map[types.UID]*runningPod
	jobs    sync.WaitGroup
}

type runningPod struct {
	cancel context.CancelFunc
	// ended is set once the pod's container has ended.
	ended *Exit
	endAt time.Time // when a deleted pod may end; zero until it is deleted
}

// StartKubelet runs pods until the test ends.
func StartKubelet(t testing.TB, config *rest.Config, namespace string, o KubeletOptions) *Kubelet {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatalf("make the kubelet's client: %v", err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	k := &Kubelet{
		client: client, namespace: namespace, pods: factory.Core().V1().Pods().Lister().Pods(namespace),
		options: o, running: map[types.UID]*runningPod{},
	}
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(t.Context().Done()) {
		if !synced {
			t.Fatalf("the kubelet could not list the type %s", kind)
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		k.run(ctx, t)
	}()
	t.Cleanup(func() { stop(); <-ended; k.jobs.Wait(); factory.Shutdown() })
	return k
}

// Set changes the options from now on, also for pods that run already.
func (k *Kubelet) Set(o KubeletOptions) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.options = o
}

func (k *Kubelet) run(ctx context.Context, t testing.TB) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		// The pods are from a cache, which may be stale. A write of a stale pod fails with
		// a conflict, and the next round repeats it.
		pods, err := k.pods.List(labels.Everything())
		if err != nil {
			t.Errorf("kubelet: %v", err)
			return
		}
		for _, pod := range pods {
			if err := k.syncPod(ctx, pod); ctx.Err() == nil && isMistake(err) {
				t.Errorf("kubelet: %v", err)
			}
		}
	}
}

// isMistake reports whether the API server refused a request for good. Any other error, such as a conflict,
// or one of etcd's time limit on a busy machine, is expected to disappear in the next round.
func isMistake(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsMethodNotSupported(err)
}

func (k *Kubelet) syncPod(ctx context.Context, pod *corev1.Pod) error {
	if pod.Spec.NodeName == "" {
		if pod.DeletionTimestamp != nil {
			return nil
		}
		return k.client.CoreV1().Pods(k.namespace).Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID}, Target: corev1.ObjectReference{Kind: "Node", Name: node},
		}, metav1.CreateOptions{})
	}
	k.mutex.Lock()
	o := k.options
	state := k.running[pod.UID]
	if state == nil {
		state = &runningPod{cancel: func() {}}
		k.running[pod.UID] = state
		if IsRotation(pod) && o.Job != nil && pod.Status.Phase == corev1.PodPending {
			k.start(ctx, state, pod.DeepCopy(), o)
		}
	}
	ended := state.ended
	k.mutex.Unlock()
	if pod.DeletionTimestamp != nil {
		return k.end(ctx, pod, state, o.Linger)
	}
	return k.report(ctx, pod, ended, o)
}

func (k *Kubelet) start(ctx context.Context, state *runningPod, pod *corev1.Pod, o KubeletOptions) {
	jobCtx, cancel := context.WithCancel(ctx)
	state.cancel = cancel
	k.jobs.Go(func() {
		ended := o.Job(jobCtx, pod)
		k.mutex.Lock()
		defer k.mutex.Unlock()
		state.ended = &ended
	})
}

// end removes a deleted pod once the time linger has passed since its deletion.
func (k *Kubelet) end(ctx context.Context, pod *corev1.Pod, state *runningPod, linger time.Duration) error {
	state.cancel()
	if state.endAt.IsZero() {
		state.endAt = time.Now().Add(linger)
	}
	if time.Now().Before(state.endAt) {
		return nil
	}
	zero := int64(0)
	return k.client.CoreV1().Pods(k.namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &zero, Preconditions: &metav1.Preconditions{UID: &pod.UID},
	})
}

func (k *Kubelet) report(ctx context.Context, pod *corev1.Pod, ended *Exit, o KubeletOptions) error {
	status := Ready(pod)
	switch {
	case IsRotation(pod) && ended != nil:
		status = terminated(pod, *ended)
	case IsRotation(pod):
		status.Phase = corev1.PodRunning
	case o.Fleet != nil:
		status = o.Fleet(pod)
	}
	status.Conditions = keepTimes(pod.Status.Conditions, status.Conditions)
	status.QOSClass, status.StartTime = pod.Status.QOSClass, pod.Status.StartTime
	status.ObservedGeneration = pod.Status.ObservedGeneration
	if sameStatus(&pod.Status, &status) {
		return nil
	}
	next := pod.DeepCopy()
	next.Status = status
	_, err := k.client.CoreV1().Pods(k.namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{})
	return err
}

// Ready returns the status of a ready pod.
func Ready(pod *corev1.Pod) corev1.PodStatus {
	return corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: "127.0.0.1", PodIPs: []corev1.PodIP{{IP: "127.0.0.1"}},
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
			{Type: corev1.ContainersReady, Status: corev1.ConditionTrue},
			{Type: corev1.PodReady, Status: corev1.ConditionTrue},
		},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: build.RelayContainer, Image: pod.Spec.Containers[0].Image, Ready: true,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}},
	}
}

// Crashing returns the status of a pod whose relay ends again and again.
func Crashing(pod *corev1.Pod, ended Exit) corev1.PodStatus {
	status := Ready(pod)
	status.Conditions[1].Status, status.Conditions[2].Status = corev1.ConditionFalse, corev1.ConditionFalse
	status.ContainerStatuses[0].Ready = false
	status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off restarting failed container=relay pod=" + pod.Name}}
	status.ContainerStatuses[0].LastTerminationState = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: ended.ExitCode, Reason: "Error", Message: ended.Message,
	}}
	return status
}

func terminated(pod *corev1.Pod, ended Exit) corev1.PodStatus {
	status := Ready(pod)
	status.Phase = corev1.PodSucceeded
	if ended.ExitCode != 0 {
		status.Phase = corev1.PodFailed
	}
	status.Conditions[1].Status, status.Conditions[2].Status = corev1.ConditionFalse, corev1.ConditionFalse
	status.ContainerStatuses[0].Ready = false
	status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: ended.ExitCode, Reason: "Completed", Message: ended.Message,
	}}
	return status
}

// keepTimes copies the transition times of unchanged conditions.
func keepTimes(before, next []corev1.PodCondition) []corev1.PodCondition {
	for i := range next {
		next[i].LastTransitionTime = metav1.Now().Rfc3339Copy()
		for j := range before {
			if before[j].Type == next[i].Type && before[j].Status == next[i].Status {
				next[i].LastTransitionTime = before[j].LastTransitionTime
			}
		}
	}
	return next
}

// sameStatus compares the fields that the stand-in writes.
func sameStatus(a, b *corev1.PodStatus) bool {
	if a.Phase != b.Phase || a.PodIP != b.PodIP || len(a.ContainerStatuses) != len(b.ContainerStatuses) {
		return false
	}
	for i := range b.Conditions {
		found := false
		for j := range a.Conditions {
			found = found || a.Conditions[j].Type == b.Conditions[i].Type && a.Conditions[j].Status == b.Conditions[i].Status
		}
		if !found {
			return false
		}
	}
	for i := range b.ContainerStatuses {
		if a.ContainerStatuses[i].Ready != b.ContainerStatuses[i].Ready ||
			a.ContainerStatuses[i].RestartCount != b.ContainerStatuses[i].RestartCount ||
			(a.ContainerStatuses[i].State.Waiting == nil) != (b.ContainerStatuses[i].State.Waiting == nil) ||
			(a.ContainerStatuses[i].State.Terminated == nil) != (b.ContainerStatuses[i].State.Terminated == nil) {
			return false
		}
	}
	return true
}

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
)

// watch starts to watch the pods of both namespaces, and the size of the fleet.
func (s *suite) watch(t *testing.T) {
	for _, name := range []string{"logs", "logs-operator", "failure"} {
		ok(t, os.RemoveAll(filepath.Join(folder, name)))
	}
	ctx, stop := context.WithCancel(s.ctx)
	s.fleets = &podWatch{kube: s.clientset, folder: filepath.Join(folder, "logs")}
	s.operators = &podWatch{kube: s.clientset, folder: filepath.Join(folder, "logs-operator")}
	s.sizes = &sizeWatch{}
	ok(t, errors.Join(os.MkdirAll(s.fleets.folder, 0o750), os.MkdirAll(s.operators.folder, 0o750)))
	inFleets := informers.NewSharedInformerFactoryWithOptions(s.clientset, 0, informers.WithNamespace(namespace))
	inOperators := informers.NewSharedInformerFactoryWithOptions(s.clientset, 0, informers.WithNamespace(operatorNamespace))
	handle(t, inFleets.Core().V1().Pods().Informer(), func(pod *corev1.Pod) { s.fleets.observe(ctx, pod) })
	handle(t, inOperators.Core().V1().Pods().Informer(), func(pod *corev1.Pod) { s.operators.observe(ctx, pod) })
	handle(t, inFleets.Apps().V1().Deployments().Informer(), s.sizes.observe)
	inFleets.Start(ctx.Done())
	inOperators.Start(ctx.Done())
	s.stopWatch = func() {
		stop()
		inFleets.Shutdown()
		inOperators.Shutdown()
		s.fleets.following.Wait()
		s.operators.following.Wait()
	}
}

// handle calls a function for each state of the objects of an informer, the last one
// included.
func handle[T any](t *testing.T, informer cache.SharedIndexInformer, observe func(T)) {
	handleObject := func(object any) {
		if gone, is := object.(cache.DeletedFinalStateUnknown); is {
			object = gone.Obj
		}
		if object, is := object.(T); is {
			observe(object)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: handleObject, UpdateFunc: func(_, object any) { handleObject(object) }, DeleteFunc: handleObject,
	})
	ok(t, err)
}

// podWatch stores the output of each container of a namespace in a file, even for pods that are
// long gone, and how each container ended.
type podWatch struct {
	kube   kubernetes.Interface
	folder string

	following sync.WaitGroup
	mu        sync.Mutex
	followed  []string // IDs of containers
	ended     []containerEnd
	lost      []error // logs of relays that are missing or incomplete
}

// observe records the current state of a pod.
func (w *podWatch) observe(ctx context.Context, pod *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, end := range endsOf(pod) {
		if !slices.ContainsFunc(w.ended, func(e containerEnd) bool { return e.ID == end.ID }) {
			w.ended = append(w.ended, end)
		}
	}
	for _, status := range pod.Status.ContainerStatuses {
		if status.State.Running != nil && !slices.Contains(w.followed, status.ContainerID) {
			w.followed = append(w.followed, status.ContainerID)
			w.following.Go(func() { w.follow(ctx, pod, &status) })
		}
	}
}

// logPath is the file of a container's log.
func (w *podWatch) logPath(pod, container, id string) string {
	return filepath.Join(w.folder, fmt.Sprintf("%s_%s_%.12s.log", pod, container, id))
}

// follow copies a container's output until the container ends, and starts again from the
// beginning when the stream breaks.
func (w *podWatch) follow(ctx context.Context, pod *corev1.Pod, status *corev1.ContainerStatus) {
	path := w.logPath(pod.Name, status.Name, bareID(status.ContainerID))
	err := retry.OnError(wait.Backoff{Steps: 120, Duration: pollInterval},
		func(err error) bool { return !apierrors.IsNotFound(err) && ctx.Err() == nil },
		func() error { return w.copyLog(ctx, pod, status.Name, path) })
	if err != nil && ctx.Err() == nil && status.Name == relayContainer {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.lost = append(w.lost, fmt.Errorf("the log of the relay of pod %s was not kept, and could not be searched: %w", pod.Name, err))
	}
}

// copyLog copies a container's log from its start. The existing copy stays when the log
// cannot be read.
func (w *podWatch) copyLog(ctx context.Context, pod *corev1.Pod, container, path string) (err error) {
	stream, err := w.kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: container, Follow: true}).Stream(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }() // the stream was read to its end
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = io.Copy(file, stream)
	return err
}

// ends returns the ends observed so far of the containers with a name.
func (w *podWatch) ends(container string) (ends []containerEnd) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.ended {
		if e.Container == container {
			ends = append(ends, e)
		}
	}
	return ends
}

// lostLogs returns the errors of relays' logs that could not be followed to their end.
func (w *podWatch) lostLogs() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.lost...)
}

// endOf waits until the end of a container is observed.
func (s *suite) endOf(t *testing.T, w *podWatch, container, id string) (end containerEnd) {
	t.Helper()
	s.await(t, "container "+id+" has ended", 3*time.Minute, func(context.Context) error {
		for _, end = range w.ends(container) {
			if end.ID == id {
				return nil
			}
		}
		return errors.New("its end was not observed")
	})
	return end
}

// sizeWatch records each change of the fleet's desired number of pods.
type sizeWatch struct {
	mu   sync.Mutex
	seen []fleetSize
}

func (w *sizeWatch) observe(d *appsv1.Deployment) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if d.Name == fleetName {
		w.seen = appendSize(w.seen, d, time.Now())
	}
}

// sizes are the recorded sizes, the oldest first.
func (w *sizeWatch) sizes() []fleetSize {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen)
}

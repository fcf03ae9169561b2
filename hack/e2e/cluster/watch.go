package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Exit is the end of a container.
type Exit struct {
	Pod, Container string
	// ID is the container's, as ContainerID gives it.
	ID string
	At time.Time
	// Code is the process' exit code; 137 after SIGKILL.
	Code int32
	// Asked is when the pod was told to end; zero when its container ended by
	// itself or was killed in a pod that stays. Grace is what the pod got for it.
	Asked time.Time
	Grace time.Duration
	// Reason is the kubelet's, such as Completed, Error or OOMKilled.
	Reason string
	// Finite says that the pod is not started again when it has ended by itself.
	Finite bool
	// Log is the name of the file, in the watcher's folder, that has what it printed.
	Log string
}

// Watcher follows the pods of a namespace: it keeps what each container prints
// in a file, also of pods that are long gone, and how each one ended.
type Watcher struct {
	c         *Cluster
	namespace string
	folder    string

	following sync.WaitGroup
	mu        sync.Mutex
	known     map[string]bool // log streams, by container and restart
	exits     map[string]Exit // by container id
	faults    []string
	lost      []LostLog
}

// LostLog is a container's log that could not be followed to its end.
type LostLog struct {
	Pod, Container string
	Err            error
}

// Watch begins to follow a namespace, into a folder, until ctx ends; Close then
// waits for the last lines.
func (c *Cluster) Watch(ctx context.Context, namespace, folder string) (*Watcher, error) {
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return nil, fmt.Errorf("make the folder for logs: %w", err)
	}
	w := &Watcher{c: c, namespace: namespace, folder: folder, known: make(map[string]bool), exits: make(map[string]Exit)}
	w.following.Go(func() { w.run(ctx) })
	return w, nil
}

// run lists and watches, again whenever the watch breaks.
func (w *Watcher) run(ctx context.Context) {
	tick := time.NewTicker(Poll)
	defer tick.Stop()
	for {
		if err := w.once(ctx); err != nil && ctx.Err() == nil {
			w.note("watch pods of %s: %v", w.namespace, err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (w *Watcher) once(ctx context.Context) error {
	pods := w.c.Kube.CoreV1().Pods(w.namespace)
	list, err := pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		w.see(ctx, &list.Items[i])
	}
	watching, err := pods.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return err
	}
	defer watching.Stop()
	for event := range watching.ResultChan() {
		if pod, ok := event.Object.(*corev1.Pod); ok {
			w.see(ctx, pod)
		}
	}
	return nil
}

// see takes in a pod as it is now.
func (w *Watcher) see(ctx context.Context, pod *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, status := range pod.Status.ContainerStatuses {
		for _, ended := range []*corev1.ContainerStateTerminated{status.State.Terminated, status.LastTerminationState.Terminated} {
			if ended == nil || ended.ContainerID == "" {
				continue
			}
			if _, known := w.exits[ended.ContainerID]; !known {
				w.exits[ended.ContainerID] = exitOf(pod, &status, ended)
			}
		}
		if status.State.Running == nil {
			continue
		}
		key := fmt.Sprintf("%s/%s/%d", pod.UID, status.Name, status.RestartCount)
		if !w.known[key] {
			w.known[key] = true
			w.following.Go(func() { w.follow(ctx, pod.Name, pod.UID, status.Name, status.RestartCount) })
		}
	}
}

// exitOf is what a pod tells of the end of a container: of the one that it has
// now, or of the one before.
func exitOf(pod *corev1.Pod, status *corev1.ContainerStatus, ended *corev1.ContainerStateTerminated) Exit {
	_, id, _ := strings.Cut(ended.ContainerID, "://")
	restart := status.RestartCount
	if status.State.Terminated != ended {
		restart--
	}
	exit := Exit{
		Pod: pod.Name, Container: status.Name, ID: id, At: ended.FinishedAt.Time, Code: ended.ExitCode, Reason: ended.Reason,
		Finite: pod.Spec.RestartPolicy != corev1.RestartPolicyAlways, Log: logName(pod.Name, pod.UID, status.Name, restart),
	}
	if pod.DeletionTimestamp != nil && status.State.Terminated == ended {
		if pod.DeletionGracePeriodSeconds != nil {
			exit.Grace = time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
		}
		exit.Asked = pod.DeletionTimestamp.Add(-exit.Grace) // it is when the grace is over
	}
	return exit
}

func logName(pod string, uid types.UID, container string, restart int32) string {
	return fmt.Sprintf("%s_%s_%s_%d.log", pod, shortUID(uid), container, restart)
}

// followTries bounds how often a log is begun again, Poll apart.
const followTries = 120

// follow copies what a container prints until it ends, again from the start when
// that breaks.
func (w *Watcher) follow(ctx context.Context, pod string, uid types.UID, container string, restart int32) {
	path := filepath.Join(w.folder, logName(pod, uid, container, restart))
	tick := time.NewTicker(Poll)
	defer tick.Stop()
	for try := 1; ; try++ {
		err := w.copyLog(ctx, pod, container, path)
		if err == nil || ctx.Err() != nil {
			return
		}
		if try == followTries || apierrors.IsNotFound(err) {
			w.mu.Lock()
			w.lost = append(w.lost, LostLog{Pod: pod, Container: container, Err: err})
			w.mu.Unlock()
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// copyLog copies a container's log from its start. What is there of it stays when
// the log cannot be read.
func (w *Watcher) copyLog(ctx context.Context, pod, container, path string) (err error) {
	stream, err := w.c.Kube.CoreV1().Pods(w.namespace).GetLogs(pod, &corev1.PodLogOptions{Container: container, Follow: true}).Stream(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }() // read to its end
	file, err := os.OpenFile(filepath.Clean(path), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = io.Copy(file, stream)
	return err
}

func shortUID(uid types.UID) string {
	first, _, _ := strings.Cut(string(uid), "-")
	return first
}

func (w *Watcher) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = append(w.faults, fmt.Sprintf(format, args...))
}

// Exits are the ends that were seen so far, in no order.
func (w *Watcher) Exits() []Exit {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]Exit, 0, len(w.exits))
	for _, e := range w.exits {
		out = append(out, e)
	}
	return out
}

// Faults are the breaks of the watch itself, which goes on after them.
func (w *Watcher) Faults() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.faults...)
}

// Lost are the logs that are not in the folder, or not whole.
func (w *Watcher) Lost() []LostLog {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.lost)
}

// Folder is where the logs are.
func (w *Watcher) Folder() string { return w.folder }

// Close waits for the followers. End the watch's context first.
func (w *Watcher) Close() { w.following.Wait() }

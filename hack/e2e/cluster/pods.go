package cluster

import (
	"context"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Pods lists the pods of a namespace with these labels, without those that are
// ending.
func (c *Cluster) Pods(ctx context.Context, namespace string, labels map[string]string) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := c.Client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels(labels)); err != nil {
		return nil, fmt.Errorf("list pods in %s: %w", namespace, err)
	}
	var living []corev1.Pod
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			living = append(living, list.Items[i])
		}
	}
	return living, nil
}

// Ending counts the pods of a namespace that were told to end and have not.
func (c *Cluster) Ending(ctx context.Context, namespace string) (n int, err error) {
	list := &corev1.PodList{}
	if err := c.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return 0, fmt.Errorf("list pods in %s: %w", namespace, err)
	}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp != nil {
			n++
		}
	}
	return n, nil
}

// Ready reports whether a pod serves.
func Ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// AwaitReady waits until so many pods with these labels are ready and there are
// no others, and gives them.
func (c *Cluster) AwaitReady(ctx context.Context, namespace string, labels map[string]string, count int) (pods []corev1.Pod, err error) {
	err = Await(ctx, fmt.Sprintf("%d pods of %s in %s are ready", count, describe(labels), namespace), Minutes(5), func(ctx context.Context) (string, error) {
		if pods, err = c.Pods(ctx, namespace, labels); err != nil {
			return "", err
		}
		var complaints []string
		for i := range pods {
			if !Ready(&pods[i]) {
				complaints = append(complaints, why(&pods[i]))
			}
		}
		if len(pods) != count {
			complaints = append(complaints, fmt.Sprintf("there are %d pods", len(pods)))
		}
		return strings.Join(complaints, "; "), nil
	})
	return pods, err
}

func describe(labels map[string]string) string {
	return metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: labels})
}

// why says in a few words why a pod is not ready.
func why(pod *corev1.Pod) string {
	for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		switch {
		case status.State.Waiting != nil && status.State.Waiting.Reason != "":
			return fmt.Sprintf("%s: %s %s", pod.Name, status.State.Waiting.Reason, status.State.Waiting.Message)
		case status.State.Terminated != nil:
			return fmt.Sprintf("%s: ended with %d %s", pod.Name, status.State.Terminated.ExitCode, status.State.Terminated.Message)
		}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status != corev1.ConditionTrue {
			return fmt.Sprintf("%s: not scheduled: %s", pod.Name, condition.Message)
		}
	}
	return fmt.Sprintf("%s: %s, not ready", pod.Name, pod.Status.Phase)
}

// Evict asks for a pod's eviction, as draining a node does. What a disruption
// budget refuses is an error that apierrors.IsTooManyRequests knows.
func (c *Cluster) Evict(ctx context.Context, pod *corev1.Pod) error {
	return c.Kube.PolicyV1().Evictions(pod.Namespace).Evict(ctx, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
	})
}

// ContainerID is that of a pod's container as its node's runtime knows it.
func ContainerID(pod *corev1.Pod, container string) (string, error) {
	for _, status := range pod.Status.ContainerStatuses {
		if _, id, ok := strings.Cut(status.ContainerID, "://"); ok && status.Name == container {
			return id, nil
		}
	}
	return "", fmt.Errorf("pod %s has no running container %s", pod.Name, container)
}

// RunToEnd makes a pod, waits until it has ended and gives what it printed. An
// exit code other than 0 is an error with the output.
func (c *Cluster) RunToEnd(ctx context.Context, pod *corev1.Pod) (output string, err error) {
	if err := c.Client.Create(ctx, pod); err != nil {
		return "", fmt.Errorf("make pod %s: %w", pod.Name, err)
	}
	ended := &corev1.Pod{}
	if err := Await(ctx, "pod "+pod.Name+" has ended", Minutes(3), func(ctx context.Context) (string, error) {
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(pod), ended); err != nil {
			return "", err
		}
		if ended.Status.Phase == corev1.PodSucceeded || ended.Status.Phase == corev1.PodFailed {
			return "", nil
		}
		return why(ended), nil
	}); err != nil {
		return "", err
	}
	if output, err = c.Log(ctx, pod.Namespace, pod.Name, ""); err != nil {
		return "", err
	}
	if ended.Status.Phase != corev1.PodSucceeded {
		return output, fmt.Errorf("pod %s failed: %s: %s", pod.Name, why(ended), strings.TrimSpace(output))
	}
	if err := client.IgnoreNotFound(c.Client.Delete(ctx, ended)); err != nil {
		return output, fmt.Errorf("delete pod %s: %w", pod.Name, err)
	}
	return output, nil
}

// Log gives what a container has printed so far; the container may be empty for
// a pod's only one.
func (c *Cluster) Log(ctx context.Context, namespace, pod, container string) (string, error) {
	stream, err := c.Kube.CoreV1().Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{Container: container}).Stream(ctx)
	if err != nil {
		return "", fmt.Errorf("read the log of pod %s: %w", pod, err)
	}
	defer func() { _ = stream.Close() }() // read to its end
	text, err := io.ReadAll(stream)
	if err != nil {
		return "", fmt.Errorf("read the log of pod %s: %w", pod, err)
	}
	return string(text), nil
}

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// listPods returns the pods of a namespace with these labels, except for pods that are
// ending.
func (s *suite) listPods(ctx context.Context, namespaceName string, labels map[string]string) (living []corev1.Pod, err error) {
	list := &corev1.PodList{}
	err = s.kube.List(ctx, list, client.InNamespace(namespaceName), client.MatchingLabels(labels))
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			living = append(living, list.Items[i])
		}
	}
	return living, err
}

// podCondition returns a condition of a pod; an empty one if there is none.
func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.PodCondition{}
}

func isReady(pod *corev1.Pod) bool {
	return podCondition(pod, corev1.PodReady).Status == corev1.ConditionTrue
}

// awaitReady waits until there are exactly count pods with these labels and all are ready,
// and returns them.
func (s *suite) awaitReady(t *testing.T, namespaceName string, labels map[string]string, count int) (pods []corev1.Pod) {
	t.Helper()
	s.await(t, fmt.Sprintf("%d pods of %v in %s are ready", count, labels, namespaceName), 5*time.Minute, func(ctx context.Context) (err error) {
		if pods, err = s.listPods(ctx, namespaceName, labels); err != nil {
			return err
		}
		var errs []error
		for i := range pods {
			if !isReady(&pods[i]) {
				errs = append(errs, notReady(&pods[i]))
			}
		}
		if len(pods) != count {
			errs = append(errs, fmt.Errorf("there are %d pods", len(pods)))
		}
		return errors.Join(errs...)
	})
	return pods
}

// notReady returns a short reason why a pod is not ready.
func notReady(pod *corev1.Pod) error {
	for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		switch waiting, ended := status.State.Waiting, status.State.Terminated; {
		case waiting != nil && waiting.Reason != "":
			return fmt.Errorf("%s: %s %s", pod.Name, waiting.Reason, waiting.Message)
		case ended != nil:
			return fmt.Errorf("%s: ended with %d %s", pod.Name, ended.ExitCode, ended.Message)
		}
	}
	if scheduled := podCondition(pod, corev1.PodScheduled); scheduled.Status == corev1.ConditionFalse {
		return fmt.Errorf("%s: not scheduled: %s", pod.Name, scheduled.Message)
	}
	return fmt.Errorf("%s: %s, not ready", pod.Name, pod.Status.Phase)
}

// evict requests a pod's eviction, as draining a node does. apierrors.IsTooManyRequests
// recognises the error of a refusal by a disruption budget.
func (s *suite) evict(pod *corev1.Pod) error {
	return s.clientset.PolicyV1().Evictions(pod.Namespace).Evict(s.ctx, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
	})
}

// containerStatus returns the status of a pod's container; an empty one if there is none.
func containerStatus(pod *corev1.Pod, container string) corev1.ContainerStatus {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == container {
			return status
		}
	}
	return corev1.ContainerStatus{}
}

// containerID is the ID of a pod's container as its node's runtime knows it.
func containerID(t *testing.T, pod *corev1.Pod, container string) string {
	t.Helper()
	id := bareID(containerStatus(pod, container).ContainerID)
	if id == "" {
		t.Fatalf("pod %s has no running container %s", pod.Name, container)
	}
	return id
}

// bareID is a container's ID without its runtime's name.
func bareID(id string) string {
	_, id, _ = strings.Cut(id, "://")
	return id
}

// restrictedPod returns a pod of one container that meets the restricted pod security standard.
func restrictedPod(name, image string, args ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: new(false), TerminationGracePeriodSeconds: new(int64(1)),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(65532)), RunAsGroup: new(int64(65532)), FSGroup: new(int64(65532)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: name, Image: image, ImagePullPolicy: corev1.PullIfNotPresent, Args: args,
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
}

// runToEnd makes a pod, waits until it has ended and returns its output. An exit code other
// than 0 is an error with the output.
func (s *suite) runToEnd(pod *corev1.Pod) (output string, err error) {
	if err := s.kube.Create(s.ctx, pod); err != nil {
		return "", err
	}
	if err := await(s.ctx, "pod "+pod.Name+" has ended", 3*time.Minute, func(ctx context.Context) error {
		if err := s.kube.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			return notReady(pod)
		}
		return nil
	}); err != nil {
		return "", err
	}
	text, err := s.clientset.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(s.ctx)
	if output = strings.TrimSpace(string(text)); err != nil {
		return output, err
	}
	if pod.Status.Phase != corev1.PodSucceeded {
		return output, fmt.Errorf("%w: %s", notReady(pod), output)
	}
	return output, s.kube.Delete(s.ctx, pod)
}

package pool

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/relaypool/relaypool/controllers/internal/build"
)

// maxCopiedMessage bounds the messages that are copied from pods, Deployments and
// autoscalers, in bytes.
const maxCopiedMessage = 450

// These are reasons why a pod is not ready. Kubernetes alternates between two reasons for
// one fault, such as ErrImagePull and ImagePullBackOff. Both are reported under the one
// named here.
const (
	crashLoopReason     = "CrashLoopBackOff"
	imagePullReason     = "ImagePullBackOff"
	unschedulableReason = "Unschedulable"
)

// podReason is why one pod is not ready.
type podReason struct {
	rank int // 0 is the most specific reason
	text string
}

// whyNotReady returns why pods are not ready: the most specific reason of any pod. If no pod
// has a reason, it returns why pods could not be created; empty if that is unknown too. The
// result does not change while the same fault lasts.
func whyNotReady(pods []corev1.Pod, d *appsv1.Deployment) string {
	var reasons []podReason
	for i := range pods {
		pod := &pods[i]
		if pod.DeletionTimestamp != nil || podReady(pod) || pod.Status.Phase == corev1.PodSucceeded {
			continue
		}
		if r, ok := reasonOf(pod); ok {
			reasons = append(reasons, r)
		}
	}
	if len(reasons) == 0 {
		return replicaFailure(d)
	}
	return slices.MinFunc(reasons, func(a, b podReason) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), strings.Compare(a.text, b.text))
	}).text
}

func podReady(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func reasonOf(pod *corev1.Pod) (podReason, bool) {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == build.RelayContainer {
			if r, ok := containerReason(pod, &c); ok {
				return r, true
			}
		}
	}
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == unschedulableReason {
			// The scheduler's message has a count of nodes, which varies.
			return podReason{4, unschedulableReason + ": the pod cannot be scheduled (kubectl describe pod -l " + selectorOf(pod) + " has the scheduler's reasons)"}, true
		}
	}
	if pod.Status.Phase == corev1.PodFailed && pod.Status.Reason != "" {
		return podReason{3, pod.Status.Reason + ": " + withoutGeneratedNames(pod.Status.Message, pod)}, true
	}
	return podReason{}, false
}

func containerReason(pod *corev1.Pod, c *corev1.ContainerStatus) (podReason, bool) {
	ended := c.State.Terminated
	if ended == nil {
		ended = c.LastTerminationState.Terminated
	}
	if waiting := c.State.Waiting; waiting != nil {
		switch waiting.Reason {
		case imagePullReason, "ErrImagePull", "InvalidImageName", "ErrImageNeverPull":
			return podReason{1, fmt.Sprintf("%s: the image %s cannot be fetched: check spec.image and spec.template.imagePullSecrets", imagePullReason, c.Image)}, true
		case crashLoopReason, "", "ContainerCreating", "PodInitializing":
		default:
			return podReason{2, waiting.Reason + ": " + withoutGeneratedNames(waiting.Message, pod)}, true
		}
	}
	if ended == nil {
		return podReason{}, false
	}
	text := fmt.Sprintf("%s: the relay ended with exit code %d", crashLoopReason, ended.ExitCode)
	if ended.Reason != "" && ended.Reason != "Error" && ended.Reason != "Completed" {
		text += " (" + ended.Reason + ")"
	}
	if line := lastLine(ended.Message); line != "" {
		text += ": " + withoutGeneratedNames(line, pod)
	}
	return podReason{0, text}, true
}

func selectorOf(pod *corev1.Pod) string {
	return build.LabelInstance + "=" + pod.Labels[build.LabelInstance]
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// withoutGeneratedNames returns a message of another component on one line, without the
// parts that differ from pod to pod: uids and generated names.
func withoutGeneratedNames(text string, pod *corev1.Pod) string {
	if pod != nil {
		for _, generated := range []string{string(pod.UID), pod.Name} {
			if generated != "" {
				text = strings.ReplaceAll(text, generated, "…")
			}
		}
	}
	for _, pattern := range []string{uidPattern, generatedPattern} {
		text = regexp.MustCompile(pattern).ReplaceAllString(text, "…")
	}
	return shortened(strings.Join(strings.Fields(text), " "), maxCopiedMessage)
}

// uidPattern matches uids. generatedPattern matches the generated suffixes of pods' names,
// which the API server's messages quote.
const (
	uidPattern       = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`
	generatedPattern = `-[0-9a-f]{8,10}-[bcdfghjklmnpqrstvwxz2456789]{5}\b`
)

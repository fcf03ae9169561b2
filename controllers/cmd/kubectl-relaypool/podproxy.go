package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/relay/contract"
)

// errPodSilent marks the error of a pod that does not answer. The others are then not asked: most
// likely the network's policies keep the API server from all of them.
var errPodSilent = errors.New("no answer; the API server has to reach the operations port of pods, which spec.networkPolicy and its operationsFrom decide")

// relayPods lists the fleet's pods by name.
func (c *connection) relayPods(ctx context.Context, pool string) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(c.namespace), client.MatchingLabels(build.Selector(pool))); err != nil {
		return nil, fmt.Errorf("list the pods of RelayPool %s: %w", pool, err)
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods.Items, nil
}

// podReady reports whether a pod serves clients.
func podReady(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// fromPod asks the operations port of a pod for a page, through the API server. When the pod
// answers with another status than 200, the result has the answer as well as an error.
func (c *connection) fromPod(ctx context.Context, pod, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.podTimeout)
	defer cancel()
	answer, err := c.core.RESTClient().Get().Namespace(c.namespace).Resource("pods").
		Name(pod + ":" + strconv.Itoa(contract.OperationsPort)).SubResource("proxy").Suffix(path).MaxRetries(0).Do(ctx).Raw()
	switch {
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("you may not get pods/proxy in the namespace %s", c.namespace)
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("ask pod %s for %s: %w", pod, path, errPodSilent)
	case err != nil:
		return answer, fmt.Errorf("ask pod %s for %s: %w", pod, path, err)
	default:
		return answer, nil
	}
}

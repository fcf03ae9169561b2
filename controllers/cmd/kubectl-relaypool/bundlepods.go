package main

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/relay/contract"
)

// logLines is how much of each container's log the bundle has.
const logLines = 1000

const (
	operatorLabel     = "relaypool-operator" // the value of build.LabelName on the operator's pods
	operatorContainer = "operator"
)

// addPods adds the pods of relays and of rotation Jobs, with logs, and of running relays the pages
// of their operations port.
func (b *bundle) addPods(ctx context.Context) {
	var pods corev1.PodList
	if err := b.List(ctx, &pods, client.InNamespace(b.namespace), client.MatchingLabels{build.LabelPool: b.pool.Name}); err != nil {
		b.failed("pods", err)
		return
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		folder := "pods/" + pod.Name + "/"
		b.involved[pod.UID] = true
		b.addObject(folder+"pod.yaml", pod)
		b.addLogs(ctx, folder, pod, build.RelayContainer)
		if pod.Status.Phase != corev1.PodRunning || pod.Labels[build.LabelComponent] != build.ComponentRelay {
			continue
		}
		b.addPages(ctx, folder, pod.Name)
	}
}

// addPages adds the pages of a relay's operations port.
func (b *bundle) addPages(ctx context.Context, folder, pod string) {
	for _, page := range []struct{ path, file string }{
		{contract.HealthPath, "health.json"}, {contract.MetricsPath, "metrics.txt"}, {contract.BacklogPath, "backlog.json"},
	} {
		if b.podsSilent {
			return
		}
		content, err := b.fromPod(ctx, pod, page.path)
		if err != nil {
			b.podsSilent = errors.Is(err, errPodSilent)
			b.failed(folder+page.file, err)
		}
		if len(content) > 0 && (err == nil || page.path == contract.HealthPath) { // a relay that is not well answers with 503 and says why
			b.add(folder+page.file, content)
		}
	}
}

// addOperator adds the operator's pods with their logs.
func (b *bundle) addOperator(ctx context.Context, namespace string) {
	var pods corev1.PodList
	if err := b.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{build.LabelName: operatorLabel}); err != nil {
		b.failed("the operator's pods in the namespace "+namespace, err)
		return
	}
	if len(pods.Items) == 0 {
		b.problems = append(b.problems, "the operator: the namespace "+namespace+" has no pods of it; --operator-namespace names another")
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		folder := "operator/" + pod.Name + "/"
		b.addObject(folder+"pod.yaml", pod)
		b.addLogs(ctx, folder, pod, operatorContainer)
	}
}

// addLogs adds the log of a container, and of its earlier run if it was restarted.
func (b *bundle) addLogs(ctx context.Context, folder string, pod *corev1.Pod, container string) {
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		if status.Name != container {
			continue
		}
		b.addLog(ctx, folder+container+".log", pod, container, false)
		if status.RestartCount > 0 {
			b.addLog(ctx, folder+container+".previous.log", pod, container, true)
		}
	}
}

func (b *bundle) addLog(ctx context.Context, path string, pod *corev1.Pod, container string, previous bool) {
	content, err := b.core.Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
		Container: container, Previous: previous, TailLines: new(int64(logLines)), Timestamps: true,
	}).Do(ctx).Raw()
	if err != nil {
		b.failed(path, err)
		return
	}
	b.add(path, content)
}

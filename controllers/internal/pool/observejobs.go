package pool

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/keys"
)

// observeJobs reads the Jobs of rotations, each with the last line of its termination message.
func (r *Reconciler) observeJobs(ctx context.Context, f *Facts, pods []corev1.Pod) error {
	var jobs batchv1.JobList
	if err := r.Client.List(ctx, &jobs, client.InNamespace(f.Pool.Namespace), client.MatchingLabels{build.LabelPool: f.Pool.Name}); err != nil {
		return fmt.Errorf("list Jobs: %w", err)
	}
	for i := range jobs.Items {
		f.Jobs = append(f.Jobs, keys.JobOf(f.Pool, &jobs.Items[i], lastTerminationLine(&jobs.Items[i], pods)))
	}
	return nil
}

// lastTerminationLine returns the last line of the newest termination message of a Job's
// pods; empty if they have none.
func lastTerminationLine(job *batchv1.Job, pods []corev1.Pod) string {
	var line string
	var newest metav1.Time
	for i := range pods {
		pod := &pods[i]
		if !metav1.IsControlledBy(pod, job) {
			continue
		}
		for _, c := range pod.Status.ContainerStatuses {
			if ended := c.State.Terminated; ended != nil && ended.Message != "" && !ended.FinishedAt.Before(&newest) {
				line, newest = shortened(lastLine(ended.Message), maxCopiedMessage), ended.FinishedAt
			}
		}
	}
	return line
}

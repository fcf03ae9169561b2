package pool

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/keys"
)

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

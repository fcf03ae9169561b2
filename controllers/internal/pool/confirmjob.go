package pool

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/apply"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/keys"
)

// confirmUnused drops the planned Job if the Job drains or sweeps a key that a pod or the pod
// template still mounts. The plan is made from the cache, which may lack a pod that signs with
// the key, so confirmUnused reads the API server. When that pod reaches the cache, another
// pass starts and makes a new plan.
func (r *Reconciler) confirmUnused(ctx context.Context, f *Facts, p *keys.Plan) error {
	if p.Job == nil || p.Job.Existing != nil || p.Job.Step == v1alpha1.RotationFund {
		return nil
	}
	deployment := new(appsv1.Deployment)
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(f.Pool), deployment); apierrors.IsNotFound(err) {
		deployment = nil
	} else if err != nil {
		return fmt.Errorf("read Deployment to confirm unused keys: %w", err)
	}
	var pods corev1.PodList
	if err := r.Live.List(ctx, &pods, client.InNamespace(f.Pool.Namespace), client.MatchingLabels(build.Selector(f.Pool.Name))); err != nil {
		return fmt.Errorf("list pods to confirm unused keys: %w", err)
	}
	rollout := keys.RolloutOf(deployment, pods.Items)
	for _, m := range p.Job.From {
		if slices.Contains(rollout.Template, m.Secret) || slices.Contains(rollout.Pods, m.Secret) {
			p.Job = nil
			if p.Rotation != nil {
				p.Rotation.Message = "pods with the old keys are being replaced"
			}
			return nil
		}
	}
	return nil
}

// confirmOwned drops the planned Job if the Job would use a service account or a ConfigMap
// that the RelayPool does not own. With a foreign ConfigMap, the Job would call RPC endpoints
// that somebody else chose. The Applier withholds the Deployment for the same reason.
func (r *Reconciler) confirmOwned(ctx context.Context, pool *v1alpha1.RelayPool, p *keys.Plan) error {
	if p.Job == nil || p.Job.Existing != nil {
		return nil
	}
	for _, used := range []struct {
		kind   string
		object client.Object
	}{
		{build.KindServiceAccount.Kind, new(corev1.ServiceAccount)},
		{build.KindConfigMap.Kind, new(corev1.ConfigMap)},
	} {
		err := r.Live.Get(ctx, client.ObjectKeyFromObject(pool), used.object)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read %s before a rotation's Job is made: %w", used.kind, err)
		}
		if err != nil || apply.Owns(pool, used.object) {
			continue
		}
		p.Job = nil
		if p.Rotation != nil {
			p.Rotation.Message = used.kind + " " + pool.Name + " belongs to somebody else: the condition Stalled says what to do"
		}
		return nil
	}
	return nil
}

package pool

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/apply"
	"github.com/relaypool/relaypool/controllers/internal/build"
)

func available(f *Facts, p *Plan, o *Outcome) verdict {
	if f.isUnread(PartFleet) {
		return unreadable("the fleet")
	}
	d := f.Fleet.Deployment
	if d == nil {
		return deploymentMissing(f, p, o)
	}
	wanted := f.Fleet.deploymentReplicas()
	if wanted == 0 {
		switch {
		case p.Withheld || p.RecordInitialised:
			return conditionFalse(v1alpha1.ReasonHeld, "the fleet starts once the pool is initialised: the condition PoolInitialised names what is missing; spec.pool.gate: Warn would start it at once")
		case f.Pool.Spec.Replicas != nil && *f.Pool.Spec.Replicas == 0:
			return conditionFalse(v1alpha1.ReasonScaledToZero, "spec.replicas is 0: what was accepted waits in the database until a pod runs (kubectl scale relaypool "+f.Pool.Name+" --replicas=2)")
		default:
			return conditionFalse(v1alpha1.ReasonPodsNotReady, "the fleet is about to start: no pod is ready yet")
		}
	}
	ready := d.Status.AvailableReplicas
	why := whyNotReady(f.Fleet.Pods, d)
	switch {
	case ready == 0:
		return conditionFalse(v1alpha1.ReasonPodsNotReady, "no pod is ready: "+orDefault(why, "they are being started"))
	case rolloutStuck(d):
		return conditionFalse(v1alpha1.ReasonPodsNotReady, "pods serve, but the rollout makes no progress: "+orDefault(why, orDefault(replicaFailure(d), "its deadline has passed")))
	case rollingOut(f):
		if why != "" {
			return conditionTrue(v1alpha1.ReasonRollingOut, "some pods serve while others start: "+why)
		}
		return conditionTrue(v1alpha1.ReasonRollingOut, "some pods serve while others are started or replaced")
	default:
		return conditionTrue(v1alpha1.ReasonAvailable, "all wanted pods are ready")
	}
}

// deploymentMissing is the verdict when the RelayPool has no Deployment of its own.
func deploymentMissing(f *Facts, p *Plan, o *Outcome) verdict {
	deployment := apply.Ref{Kind: build.KindDeployment, Name: f.Pool.Name}
	switch {
	case p.Paused:
		return conditionFalse(v1alpha1.ReasonNotDeployed, "no pods were made, because spec.paused is true")
	case slices.Contains(o.Result.Foreign, deployment):
		return conditionFalse(v1alpha1.ReasonNotDeployed, "no pods were made, because "+deployment.String()+" belongs to somebody else: see the condition Stalled")
	case slices.ContainsFunc(o.Result.Refused, func(r apply.Refusal) bool { return r.Ref == deployment }):
		return conditionFalse(v1alpha1.ReasonNotDeployed, "no pods were made, because the API server refused "+deployment.String()+": see the condition Stalled")
	case slices.Contains(o.Result.Withheld, deployment):
		return conditionFalse(v1alpha1.ReasonNotDeployed, "no pods were created, because they would use an object that belongs to somebody else: see the condition Stalled")
	case len(p.Faults) > 0:
		return conditionFalse(v1alpha1.ReasonNotDeployed, "no pods were made, because the spec is invalid or not allowed: see the condition Accepted")
	case !f.References.Known() && f.References.ReadAt.IsZero():
		return conditionUnknown(v1alpha1.ReasonNotChecked, "the Secrets and ConfigMaps that the spec names have not been read yet")
	case !p.Deploy && secretsResolved(f, p).status != metav1.ConditionTrue:
		return conditionFalse(v1alpha1.ReasonNotDeployed, "no pods were made, because a Secret or ConfigMap is not resolved: see the condition SecretsResolved")
	case f.isUnread(PartCapabilities):
		return unreadable("the list of the cluster's kinds")
	case !p.Deploy:
		return conditionFalse(v1alpha1.ReasonNotDeployed, "no pods were made, because there is no fee payer: see the condition FeePayersFunded")
	case p.Withheld:
		return conditionFalse(v1alpha1.ReasonHeld, "the fleet starts once the pool is initialised: the condition PoolInitialised names what is missing; spec.pool.gate: Warn would start it at once")
	default:
		return conditionFalse(v1alpha1.ReasonPodsNotReady, "the fleet is being made: no pod is ready yet")
	}
}

func orDefault(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}

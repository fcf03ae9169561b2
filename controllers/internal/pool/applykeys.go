package pool

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/apply"
	"github.com/relaypool/relaypool/controllers/internal/build"
)

// applyKeys creates keys, changes their state labels, and deletes and creates the Jobs of a
// rotation. If the API server refuses a Job, applyKeys returns a refusal and no error, because
// only a person can correct the cause.
func (r *Reconciler) applyKeys(ctx context.Context, f *Facts, p *Plan) ([]apply.Refusal, error) {
	if !f.KeysKnown {
		return nil, nil
	}
	if err := r.confirmUnused(ctx, f, &p.Keys); err != nil {
		return nil, err
	}
	if err := r.confirmOwned(ctx, f.Pool, &p.Keys); err != nil {
		return nil, err
	}
	err := r.KeyWriter.Apply(ctx, f.Pool, p.Keys, rotationJob(p))
	if err == nil || p.Keys.Job == nil || p.Keys.Writes() {
		return nil, err
	}
	refusal, ok := apply.RefusalOf(apply.Ref{Kind: build.KindJob, Name: p.Keys.Job.Name}, err)
	if !ok {
		return nil, err
	}
	if p.Keys.Rotation != nil {
		p.Keys.Rotation.Message = "the API server refused Job " + p.Keys.Job.Name + ": the condition Stalled says why"
	}
	return []apply.Refusal{refusal}, nil
}

// rotationJob returns the planned Job of a rotation, or nil if none is planned.
func rotationJob(p *Plan) runtime.ApplyConfiguration {
	job := p.Keys.Job
	if job == nil {
		return nil
	}
	steps := map[v1alpha1.RotationStep]build.Step{
		v1alpha1.RotationFund: build.StepFund, v1alpha1.RotationDrain: build.StepDrain, v1alpha1.RotationSweep: build.StepSweep,
	}
	return build.RotationJob(p.Input, build.Rotation{
		Step: steps[job.Step], Revision: job.Revision, From: mounts(job.From), To: mounts(job.To),
	}).Config
}

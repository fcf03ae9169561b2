package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// followRotation prints each step of the rotation to a revision, and what it waits for, until the
// rotation is done or has failed.
func followRotation(ctx context.Context, env *environment, cluster *connection, name string, revision int32) error {
	printed := ""
	for {
		pool, err := cluster.relayPool(ctx, name)
		if err != nil {
			return stillWaiting(ctx, revision, err)
		}
		if r := pool.Status.Rotation; r != nil && r.Revision >= revision {
			if line := rotationProgress(r); line != printed {
				fmt.Fprintln(env.out, line)
				printed = line
			}
			if r.Step == v1alpha1.RotationDone {
				return nil
			}
			if failure := rotationFailure(pool); failure != "" {
				return fmt.Errorf("%w: %s", errRotationFailed, failure)
			}
		}
		if err := env.pause(ctx); err != nil {
			return stillWaiting(ctx, revision, err)
		}
	}
}

// stillWaiting says, when ctx has ended, that only the wait has ended.
func stillWaiting(ctx context.Context, revision int32, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("wait for the rotation to revision %d, which goes on: %w", revision, ctx.Err())
}

func rotationProgress(r *v1alpha1.RotationStatus) string {
	line := string(r.Step)
	if r.Message != "" {
		line += ": " + r.Message
	}
	return line
}

// rotationFailure returns the message of the condition that reports a failed step, or "".
func rotationFailure(pool *v1alpha1.RelayPool) string {
	stalled := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionStalled)
	if stalled == nil || stalled.Status != "True" || stalled.Reason != v1alpha1.ReasonRotationFailed {
		return ""
	}
	return stalled.Message
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/commandline"
)

type rotateCmd struct {
	Name    string        `arg:"" help:"Name of the RelayPool."`
	Wait    bool          `help:"Follow the steps until the rotation is done. Ends with 1 when a step fails."`
	Timeout time.Duration `default:"1h" placeholder:"DURATION" help:"With --wait: how long to wait. The rotation goes on afterwards."`
}

// Run raises the revision.
func (c *rotateCmd) Run(env *environment) error {
	cluster, err := env.connect()
	if err != nil {
		return err
	}
	pool, err := cluster.relayPool(env, c.Name)
	if err != nil {
		return err
	}
	if err := checkRotatable(pool); err != nil {
		return err
	}
	if pool.Spec.Paused {
		if c.Wait {
			return fmt.Errorf("%w: RelayPool %s is paused, so its rotation would not start: kubectl relaypool resume %s, or leave out --wait", commandline.ErrUsage, c.Name, c.Name)
		}
		fmt.Fprintf(env.err, "RelayPool %s is paused: the rotation starts after kubectl relaypool resume %s\n", c.Name, c.Name)
	}
	target := wantedRevision(pool) + 1
	patch, err := raiseRevision(pool, target)
	if err != nil {
		return err
	}
	if err := cluster.Patch(env, pool, patch); err != nil {
		return fmt.Errorf("raise spec.feePayers.rotation.revision of RelayPool %s from %d to %d: %w; if it changed meanwhile, look at its status and run the command again", c.Name, target-1, target, err)
	}
	fmt.Fprintf(env.out, "RelayPool %s/%s rotates to revision %d\n", pool.Namespace, pool.Name, target)
	if !c.Wait {
		return nil
	}
	ctx, cancel := context.WithTimeout(env, c.Timeout)
	defer cancel()
	return followRotation(ctx, env, cluster, c.Name, target)
}

// wantedRevision returns the revision of the spec.
func wantedRevision(pool *v1alpha1.RelayPool) int32 {
	if pool.Spec.FeePayers.Rotation == nil {
		return 0
	}
	return pool.Spec.FeePayers.Rotation.Revision
}

// checkRotatable refuses a rotation that the API server would refuse with a message about the
// schema, or that would overtake another one.
func checkRotatable(pool *v1alpha1.RelayPool) error {
	if pool.Spec.FeePayers.Generate == nil {
		return fmt.Errorf("%w: RelayPool %s has no spec.feePayers.generate, and only generated keys are rotated: to replace keys of your own, change spec.feePayers.secretRefs or signers", commandline.ErrUsage, pool.Name)
	}
	wanted := wantedRevision(pool)
	if r := pool.Status.Rotation; r != nil && (r.Step != v1alpha1.RotationDone || r.Revision < wanted) {
		return fmt.Errorf("RelayPool %s rotates to revision %d already, step %s: wait until the step is %s", pool.Name, max(r.Revision, wanted), r.Step, v1alpha1.RotationDone)
	}
	if pool.Status.ObservedGeneration < pool.Generation {
		return fmt.Errorf("the operator has not processed the newest spec of RelayPool %s yet, which may start a rotation: try again in a moment", pool.Name)
	}
	return nil
}

// raiseRevision makes a JSON patch that fails if somebody else changed the revision since the
// RelayPool was read.
func raiseRevision(pool *v1alpha1.RelayPool, target int32) (client.Patch, error) {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	const path = "/spec/feePayers/rotation"
	operations := []operation{{"test", path + "/revision", target - 1}, {"replace", path + "/revision", target}}
	if pool.Spec.FeePayers.Rotation == nil { // there is no value to test
		operations = []operation{{"test", "/metadata/generation", pool.Generation}, {"add", path, v1alpha1.Rotation{Revision: target}}}
	}
	content, err := json.Marshal(operations)
	if err != nil {
		return nil, fmt.Errorf("make the patch: %w", err)
	}
	return client.RawPatch(types.JSONPatchType, content), nil
}

// errRotationFailed is returned when the operator reports a failed step.
var errRotationFailed = errors.New("the rotation failed, and is not retried")

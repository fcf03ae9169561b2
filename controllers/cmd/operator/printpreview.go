package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/manager"
	"github.com/relaypool/relaypool/controllers/internal/pool"
	"github.com/relaypool/relaypool/relay/commandline"
)

// errIncomplete is returned when a RelayPool's objects would not all be applied.
var errIncomplete = errors.New("some of the plan cannot be applied: see above")

// preview asks a cluster for the effect of applying RelayPools, and prints it. If one RelayPool
// cannot be previewed, the others still are; the returned error contains the errors of all that
// failed.
func (c *planCmd) preview(env *environment, pools []*v1alpha1.RelayPool) error {
	cluster, err := c.Cluster.Load()
	if err != nil {
		return commandline.Problems{err}
	}
	previewer, err := manager.NewPreviewer(cluster, c.settings())
	if err != nil {
		return err
	}
	var failed error
	for _, relayPool := range pools {
		name := relayPool.Namespace + "/" + relayPool.Name
		p, err := previewer.Preview(env, relayPool)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", name, err))
			continue
		}
		for _, object := range p.Written {
			if err := writeYAML(env.out, object.GetKind(), object.GetName(), object); err != nil {
				return err
			}
		}
		printPreview(env.err, name, relayPool, p)
		if !p.Clean() && failed == nil {
			failed = errIncomplete
		}
	}
	return failed
}

// printPreview prints the effect of applying one RelayPool, a line for each object.
func printPreview(w io.Writer, name string, relayPool *v1alpha1.RelayPool, p *pool.Preview) {
	say := func(format string, args ...any) { fmt.Fprintf(w, "%s: %s\n", name, fmt.Sprintf(format, args...)) }
	if p.New {
		say("the RelayPool would be made")
	}
	for _, problem := range p.Problems {
		say("no object of the fleet would be created or changed until this is corrected: %s", problem)
	}
	if len(p.Generated) > 0 {
		say("a key would be made in each of the Secrets %s", strings.Join(p.Generated, ", "))
	}
	for _, object := range p.Written {
		what := "made"
		if object.GetUID() != "" {
			what = "changed"
		}
		say("%s %s would be %s", object.GetKind(), object.GetName(), what)
	}
	for _, ref := range p.Result.Pruned {
		say("%s would be deleted, because it is no longer wanted", ref)
	}
	for _, ref := range p.Result.Waiting {
		say("%s is being deleted, and would be made anew once it has gone", ref)
	}
	for _, ref := range p.Result.Foreign {
		say("%s belongs to somebody else and would not be changed: delete or rename it, or give the RelayPool another name", ref)
	}
	for _, ref := range p.Result.Withheld {
		say("%s would be left alone, because its pods would use an object that belongs to somebody else", ref)
	}
	for i := range p.Result.Refused {
		refused := &p.Result.Refused[i]
		say("%s would be refused (%s): %s", refused.Ref, refused.Reason, refused.Message)
	}
	for _, kind := range p.Result.MissingKinds {
		say("the cluster has no kind %s of %s: none would be made", kind.Kind, kind.Group)
	}
	if p.Kept > 0 {
		say("%d of its objects would stay as they are", p.Kept)
	}
	if relayPool.Spec.Paused {
		say("spec.paused is set, so none of this is applied until it is removed")
	}
	if p.New && relayPool.Spec.Pool.Gate == v1alpha1.GateHold {
		say("until the pool is initialised on the chain, the fleet is held at 0 pods and without an autoscaler")
	}
}

package main

import (
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/keys"
)

// newFleet is how many pods a fleet begins with when nothing says how many.
const newFleet = 2

// render gives the objects of a RelayPool in a cluster that has every kind that
// the operator can make use of: its pool is initialised, its Secrets are there,
// and its keys are not just being rotated.
func render(pool *v1alpha1.RelayPool, image string) []build.Object {
	in := build.Input{
		Pool: pool, Image: image, Payers: payers(pool),
		Capabilities: build.Capabilities{PodMonitor: true, PrometheusRule: true, ScaledObject: true},
	}
	switch {
	case pool.Spec.Autoscaling != nil: // the autoscaler's
	case pool.Spec.Replicas != nil:
		in.Replicas = pool.Spec.Replicas
	default:
		in.Replicas = new(int32(newFleet))
	}
	return build.Objects(in)
}

// payers are the keys that the pods mount when no rotation is under way.
func payers(pool *v1alpha1.RelayPool) []build.PayerMount {
	var mounts []build.PayerMount
	for _, s := range pool.Spec.FeePayers.Secrets {
		mounts = append(mounts, build.PayerMount{Secret: s.Name, Key: s.Key})
	}
	for _, name := range generated(pool) {
		mounts = append(mounts, build.PayerMount{Secret: name, Key: keys.DataKey})
	}
	return mounts
}

// generated names the Secrets of the keys that the operator makes.
func generated(pool *v1alpha1.RelayPool) (names []string) {
	if pool.Spec.FeePayers.Generate == nil {
		return nil
	}
	var revision int32
	if rotation := pool.Spec.FeePayers.Rotation; rotation != nil {
		revision = rotation.Revision
	}
	for i := range pool.Spec.FeePayers.Generate.Count {
		names = append(names, fmt.Sprintf("%s-payer-%d-%d", pool.Name, revision, i))
	}
	return names
}

// writeYAML writes an object as one document of a file.
func writeYAML(w io.Writer, object build.Object) error {
	content, err := yaml.Marshal(object.Config)
	if err != nil {
		return fmt.Errorf("write %s %s: %w", object.Kind.Kind, object.Name, err)
	}
	_, err = fmt.Fprintf(w, "---\n%s", content)
	return err
}

// remark tells what the objects do not show.
func remark(w io.Writer, pool *v1alpha1.RelayPool) {
	name := pool.Namespace + "/" + pool.Name
	if pool.Spec.Paused {
		fmt.Fprintf(w, "%s: spec.paused is set, so that nothing of this is applied until it is taken away\n", name)
	}
	if pool.Spec.Pool.Gate == v1alpha1.GateHold {
		fmt.Fprintf(w, "%s: until the pool is initialised on the chain, the fleet is held at 0 pods and without an autoscaler\n", name)
	}
	if secrets := generated(pool); len(secrets) > 0 {
		fmt.Fprintf(w, "%s: a key is made in each of the Secrets %s, where it is not there yet\n", name, strings.Join(secrets, ", "))
	}
}

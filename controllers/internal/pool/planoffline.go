package pool

import (
	"errors"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/keys"
)

// RenderOptions are the operator's settings, and the assumptions about the cluster.
type RenderOptions struct {
	Settings Settings
	// Capabilities are the optional kinds that the cluster has.
	Capabilities build.Capabilities
	// Withheld renders the fleet with 0 pods, as the gate keeps it until the pool is
	// initialised. It has no effect if spec.pool.gate is Warn.
	Withheld bool
}

// Render returns the objects of a RelayPool without reading a cluster. It assumes that
// everything that the spec names exists, that keys are generated, and that no rotation is
// under way. An error describes what is wrong with the spec.
func Render(pool *v1alpha1.RelayPool, o RenderOptions) ([]build.Object, error) {
	if specFaults, _ := o.Settings.faults(pool); len(specFaults) > 0 {
		return nil, errors.New(strings.Join(specFaults, "; "))
	}
	in := build.Input{
		Pool: pool, Image: o.Settings.Image, Capabilities: o.Capabilities,
		OperatorNamespace: o.Settings.OperatorNamespace, OperatorLabels: o.Settings.OperatorLabels,
		Withheld: o.Withheld && pool.Spec.Pool.Gate != v1alpha1.GateWarn,
	}
	for _, s := range pool.Spec.FeePayers.SecretRefs {
		in.Payers = append(in.Payers, build.PayerMount{Secret: s.Name, Key: s.Key})
	}
	if g := pool.Spec.FeePayers.Generate; g != nil {
		var revision int32
		if pool.Spec.FeePayers.Rotation != nil {
			revision = pool.Spec.FeePayers.Rotation.Revision
		}
		for i := range g.Count {
			in.Payers = append(in.Payers, build.PayerMount{Secret: keys.SecretName(pool.Name, revision, i), Key: keys.DataKey})
		}
	}
	switch {
	case pool.Spec.Autoscaling != nil: // the autoscaler sets the replicas
	case pool.Spec.Replicas != nil:
		in.Replicas = pool.Spec.Replicas
	default:
		in.Replicas = ptr.To[int32](defaultReplicas)
	}
	return build.Objects(in), nil
}

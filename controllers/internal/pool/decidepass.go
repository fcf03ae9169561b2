package pool

import (
	"slices"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/chainwatch"
	"github.com/relaypool/relaypool/controllers/internal/keys"
	"github.com/relaypool/relaypool/controllers/internal/refs"
	"github.com/relaypool/relaypool/controllers/internal/tenancy"
	"github.com/relaypool/relaypool/relay/poolcheck"
)

// Settings is the part of the operator's own configuration that a decision needs.
type Settings struct {
	// Image is the relay image for RelayPools that name none.
	Image string
	// OperatorNamespace and OperatorLabels select the operator's pods; empty outside
	// of a cluster.
	OperatorNamespace string
	OperatorLabels    map[string]string
	// Tenants limits what RelayPools may request.
	Tenants tenancy.Policy
}

// faults lists what is wrong with a spec, and what the operator's settings do not allow in
// it. If there are faults, reason is the reason of the condition Accepted.
func (s *Settings) faults(pool *v1alpha1.RelayPool) (all []string, reason string) {
	spec := &pool.Spec
	all, reason = append(faults(spec), build.PodTemplateFaults(pool)...), v1alpha1.ReasonInvalidSpec
	if len(all) == 0 {
		reason = v1alpha1.ReasonNotAllowed
	}
	return append(all, s.Tenants.Faults(spec, s.Image)...), reason
}

// Plan is what one pass has to do.
type Plan struct {
	// Faults lists what is invalid or not allowed in the spec. If there are any,
	// FaultReason is the reason of the condition Accepted.
	Faults      []string
	FaultReason string
	// Problems are about the Secrets and ConfigMaps that the spec names. Keys.Problems are
	// about generated keys.
	Problems []refs.Problem
	// Withheld: the gate keeps the fleet at 0 pods.
	Withheld bool
	// RecordInitialised: this pass is the first that finds the pool initialised. The status
	// has to record this before the fleet starts. If the operator started the fleet first and
	// then died, the next leader could stop the fleet again.
	RecordInitialised bool
	// Deploy: everything that the pods need is known and exists. While Deploy is false, no
	// object of the fleet is made or changed.
	Deploy bool
	// Paused is spec.paused.
	Paused bool
	// StatusOnly: the pass writes only the status, because the RelayPool is paused or its spec
	// has faults.
	StatusOnly bool
	// Keys is the plan for the fee payers' keys.
	Keys keys.Plan
	// Input is what the objects are built from. Objects are the objects to apply; the list is
	// empty while Deploy is false.
	Input   build.Input
	Objects []build.Object
	// ReplicasDerived: the wanted number of pods depends on the Deployment that was read. So
	// the write has to fail if the Deployment has changed since.
	ReplicasDerived bool
	// Query is what to read from the chain, with the payers.
	Query chainwatch.Query
}

// Decide plans one pass. It is pure.
func Decide(f *Facts, s Settings) Plan {
	spec := &f.Pool.Spec
	p := Plan{Paused: spec.Paused}
	p.Faults, p.FaultReason = s.faults(f.Pool)
	p.StatusOnly = p.Paused || len(p.Faults) > 0
	poolState := poolcheck.Unknown
	if f.ChainRead {
		poolState, _, _ = f.Chain.PoolState()
	}
	p.RecordInitialised = gateOpens(f, poolState)
	p.Withheld = gateHoldsFleet(f, poolState)
	p.Problems = append(slices.Clone(f.References.Problems), f.Target.Problems...)
	if f.KeysKnown {
		p.Keys = keys.Decide(keysInput(f, p.Problems))
	}
	p.Query = f.Target.Query
	p.Query.Payers = payers(p.Keys.Payers, f.Keys.Keys)
	p.Query.Thresholds = thresholds(&spec.FeePayers)
	p.Query.Interval = checkInterval(p.Query.Interval, p.Keys.Payers, p.Query.Thresholds[0])
	p.Deploy = len(p.Faults) == 0 && len(p.Problems) == 0 && f.References.Known() && f.KeysKnown &&
		p.hasPayers(spec) && !f.isUnread(PartFleet) && !f.isUnread(PartCapabilities)
	p.Input = build.Input{
		Pool: f.Pool, Image: s.Image, Payers: mounts(p.Keys.Mounted), Rollout: rolloutInputs(f, &p.Keys),
		Capabilities: f.Capabilities, OperatorNamespace: s.OperatorNamespace, OperatorLabels: s.OperatorLabels,
		Withheld: p.Withheld,
	}
	p.Input.Replicas, p.ReplicasDerived = replicas(f, p.Withheld)
	if p.Deploy {
		p.Objects = build.Objects(p.Input)
	}
	return p
}

// hasPayers reports whether pods would have a fee payer, and each fee payer once.
func (p *Plan) hasPayers(spec *v1alpha1.RelayPoolSpec) bool {
	duplicate := slices.ContainsFunc(p.Keys.Problems, func(problem refs.Problem) bool {
		return problem.Reason == v1alpha1.ReasonDuplicateKey
	})
	return len(p.Keys.Mounted)+len(spec.FeePayers.Signers) > 0 && !duplicate
}

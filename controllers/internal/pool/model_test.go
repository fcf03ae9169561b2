package pool

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/apply"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/chainwatch"
	"github.com/relaypool/relaypool/controllers/internal/refs"
	"github.com/relaypool/relaypool/relay/poolcheck"
)

// After any sequence of facts, four invariants hold. Once the gate has opened, only
// spec.replicas sets a fleet to 0. There is at most one scaler. Every condition is set.
// Unchanged facts give an unchanged status.
func TestInvariantsHoldForAnySequenceOfFacts(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 5))
		f := healthyFacts()
		f.Pool.Status = v1alpha1.RelayPoolStatus{}
		f.Fleet = Fleet{}
		for pass := range 60 {
			f.Now = f.Now.Add(time.Duration(random.IntN(90)) * time.Second)
			changeFacts(random, f)
			p := Decide(f, settings())
			o := outcomeOf(random, f, &p)
			status := Report(f, &p, &o)
			if err := violation(f, &p, &status); err != nil {
				t.Fatalf("seed %d, pass %d: %v", seed, pass, err)
			}
			again := *f
			again.Pool = f.Pool.DeepCopy()
			again.Pool.Status = *status.DeepCopy()
			again.Now = f.Now.Add(time.Duration(random.IntN(3600)) * time.Second)
			p = Decide(&again, settings())
			p.RecordInitialised = false // the first pass has recorded it
			repeated := p
			if o.Applied == (repeated.Deploy && !repeated.Paused) && p.Withheld == gateHoldsFleet(f, chainState(f)) {
				if next := Report(&again, &repeated, &o); !equality.Semantic.DeepEqual(status, next) && !figuresDeferred(f, &status, &next) {
					t.Fatalf("seed %d, pass %d: the same facts give another status:\n%s", seed, pass, cmp.Diff(status, next))
				}
			}
			f.Pool.Status = status
			if o.Applied {
				applyPlan(f, &p)
			}
		}
	}
}

// figuresDeferred reports whether the second status differs only in figures that the first
// deferred, because a minute had not passed.
func figuresDeferred(f *Facts, first, second *v1alpha1.RelayPoolStatus) bool {
	if f.Pool.Status.ObservedAt == nil || f.Now.Sub(f.Pool.Status.ObservedAt.Time) >= figuresInterval {
		return false
	}
	same := second.DeepCopy()
	same.NextIndex, same.Backlog, same.FeePayers, same.ObservedAt = first.NextIndex, first.Backlog, first.FeePayers, first.ObservedAt
	return equality.Semantic.DeepEqual(*first, *same)
}

func chainState(f *Facts) poolcheck.State {
	if !f.ChainRead {
		return poolcheck.Unknown
	}
	state, _, _ := f.Chain.PoolState()
	return state
}

// changeFacts makes one random change of the facts.
func changeFacts(random *rand.Rand, f *Facts) {
	spec := &f.Pool.Spec
	switch random.IntN(18) {
	case 0:
		f.ChainRead, f.Chain.UnavailableSince, f.Chain.Report = true, time.Time{}, reportOf(poolcheck.OK, "")
	case 1:
		f.ChainRead, f.Chain.UnavailableSince = true, time.Time{}
		f.Chain.Report = reportOf(poolcheck.Failed, poolcheck.ReasonAccountMissing)
	case 2:
		f.Chain.UnavailableSince, f.Chain.Cause = f.Now, "endpoint main does not answer"
	case 3:
		f.Chain, f.ChainRead = chainwatch.Reading{}, false // the operator was restarted
	case 4:
		f.Chain.Payers = map[solana.PublicKey]chainwatch.Payer{payerA(): {Lamports: random.Uint64N(2_000_000_000), At: f.Now}, payerB(): {Lamports: 1_500_000_000, At: f.Now}}
	case 5:
		f.References.Problems = nil
		if random.IntN(2) == 0 {
			f.References.Problems = []refs.Problem{{Reason: v1alpha1.ReasonSecretNotFound, Message: "Secret postgres is missing"}}
		}
	case 6:
		spec.Autoscaling, spec.Replicas = nil, ptr.To(random.Int32N(4))
	case 7:
		spec.Autoscaling, spec.Replicas = nil, nil
	case 8:
		spec.Replicas, spec.Autoscaling = nil, &v1alpha1.Autoscaling{Provider: v1alpha1.ProviderHPA, MinReplicas: 1 + random.Int32N(3), MaxReplicas: 9}
	case 9:
		spec.Replicas, spec.Autoscaling = nil, &v1alpha1.Autoscaling{Provider: v1alpha1.ProviderKEDA, MinReplicas: 1, MaxReplicas: 9}
	case 10:
		f.Capabilities.ScaledObject = !f.Capabilities.ScaledObject
	case 11:
		clear(f.Unread)
		if random.IntN(2) == 0 {
			f.Unread[[]Part{PartFleet, PartKeys, PartAutoscaler, PartExposure, PartCapabilities}[random.IntN(5)]] = errors.New("boom")
		}
		f.KeysKnown = !f.isUnread(PartKeys) && !f.isUnread(PartFleet)
	case 12:
		spec.Paused = random.IntN(3) == 0
	case 13:
		if d := f.Fleet.Deployment; d != nil && f.Fleet.deploymentReplicas() > 0 {
			setFleet(f, f.Fleet.deploymentReplicas(), random.Int32N(f.Fleet.deploymentReplicas()+1))
		}
	case 14:
		f.Autoscaler = Autoscaler{Present: random.IntN(2) == 0, Working: ptr.To(random.IntN(2) == 0)}
	case 15:
		f.Backlog = Backlog{At: f.Now, Due: random.Int64N(200), Held: map[string]int64{"fee_payer_empty": random.Int64N(2)}}
	case 16:
		ingressed(f)
		routed(f)
		balanced(f)
		f.Capabilities.HTTPRoute = random.IntN(2) == 0
	case 17:
		spec.API.Service, spec.API.Ingress, spec.API.Gateway, f.Exposure = nil, nil, nil, Exposure{}
	}
}

func outcomeOf(random *rand.Rand, f *Facts, p *Plan) Outcome {
	o := Outcome{Applied: p.Deploy && !p.Paused}
	if o.Applied && random.IntN(10) == 0 {
		o.Result.Foreign = []apply.Ref{{Kind: build.KindPodMonitor, Name: f.Pool.Name}}
	}
	return o
}

// applyPlan changes the facts as if the objects of the plan had been applied.
func applyPlan(f *Facts, p *Plan) {
	replicas := f.Fleet.deploymentReplicas()
	switch {
	case p.Withheld:
		replicas = 0
	case p.Input.Replicas != nil:
		replicas = *p.Input.Replicas
	case f.Fleet.Deployment == nil:
		replicas = 1 // the default of the API server
	}
	if f.Fleet.Deployment == nil || f.Fleet.deploymentReplicas() != replicas {
		setFleet(f, replicas, replicas)
	}
}

// violation returns the first violated invariant, or nil.
func violation(f *Facts, p *Plan, status *v1alpha1.RelayPoolStatus) error {
	scalers := 0
	for _, o := range p.Objects {
		if o.Kind == build.KindHorizontalPodAutoscaler || o.Kind == build.KindScaledObject {
			scalers++
		}
	}
	zero := p.Withheld || p.Input.Replicas != nil && *p.Input.Replicas == 0
	bySpec := f.Pool.Spec.Replicas != nil && *f.Pool.Spec.Replicas == 0
	switch {
	case scalers > 1:
		return fmt.Errorf("%d scalers", scalers)
	case p.Withheld && scalers > 0:
		return errors.New("a held fleet has an autoscaler")
	case f.Pool.Status.InitialisedAt != nil && zero && !bySpec:
		return errors.New("the fleet is set to 0 although the gate had opened")
	case f.Pool.Status.InitialisedAt != nil && status.InitialisedAt == nil:
		return errors.New("the gate has closed")
	case status.ObservedGeneration != f.Pool.Generation:
		return errors.New("the status does not have the generation")
	}
	for _, kind := range []string{
		v1alpha1.ConditionAccepted, v1alpha1.ConditionSecretsResolved, v1alpha1.ConditionPoolInitialised,
		v1alpha1.ConditionFeePayersFunded, v1alpha1.ConditionAvailable, v1alpha1.ConditionReady,
	} {
		c := meta.FindStatusCondition(status.Conditions, kind)
		if c == nil || c.Reason == "" || c.Message == "" || c.LastTransitionTime.IsZero() {
			return fmt.Errorf("condition %s is missing or incomplete: %v", kind, c)
		}
	}
	if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionAutoscalingActive); (c != nil) != (f.Pool.Spec.Autoscaling != nil) {
		return fmt.Errorf("condition AutoscalingActive is %v, with spec.autoscaling %v", c, f.Pool.Spec.Autoscaling)
	}
	if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionExposed); (c != nil) != (f.Pool.Spec.API.Ingress != nil || f.Pool.Spec.API.Gateway != nil) {
		return fmt.Errorf("condition Exposed is %v, with spec.api %+v", c, f.Pool.Spec.API)
	}
	for _, kind := range []string{v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
		if c := meta.FindStatusCondition(status.Conditions, kind); c != nil && c.Status != metav1.ConditionTrue {
			return fmt.Errorf("condition %s has the status %s: want True, or no condition", kind, c.Status)
		}
	}
	if meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReconciling) && meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionStalled) {
		return errors.New("the RelayPool is Stalled and Reconciling at once")
	}
	if slices.ContainsFunc(status.Conditions, func(c metav1.Condition) bool { return len(c.Message) > maxMessage }) {
		return errors.New("a message is too long")
	}
	return nil
}

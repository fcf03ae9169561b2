package pool

import (
	"fmt"
	"slices"
	"strings"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/refusal"
)

// autoscalingActive returns the zero verdict if spec.autoscaling is not set.
func autoscalingActive(f *Facts, p *Plan) verdict {
	a := f.Pool.Spec.Autoscaling
	switch {
	case a == nil:
		return verdict{}
	case f.isUnread(PartCapabilities) || f.isUnread(PartAutoscaler):
		return unreadable("the autoscaler")
	case a.Provider == v1alpha1.ProviderKEDA && !f.Capabilities.ScaledObject:
		return conditionFalse(v1alpha1.ReasonProviderMissing, "KEDA's CRD scaledobjects.keda.sh is not installed: install KEDA, or set spec.autoscaling.provider to HPA; until then the fleet keeps its size")
	case p.Withheld || p.RecordInitialised:
		return conditionUnknown(v1alpha1.ReasonPending, "the gate holds the fleet, and nothing is scaled until the pool is initialised")
	case !f.Autoscaler.Present || f.Autoscaler.Working == nil:
		return conditionUnknown(v1alpha1.ReasonPending, scalerName(a)+" has not reported yet")
	case !*f.Autoscaler.Working:
		return conditionFalse(v1alpha1.ReasonMetricUnavailable, metricRemedy(a, f.Autoscaler)+"; it says: "+withoutGeneratedNames(f.Autoscaler.Message, nil))
	}
	if limited, ok := limitedByHeld(a, f.Backlog); ok {
		return limited
	}
	return conditionTrue(v1alpha1.ReasonScaling, scalerName(a)+" sizes the fleet by its backlog")
}

// limitedByHeld returns the verdict on the autoscaling of a fleet whose backlog is 0 only because
// every waiting submission is held.
func limitedByHeld(a *v1alpha1.Autoscaling, b Backlog) (limited verdict, ok bool) {
	reasons := b.stoppedReasons()
	if b.Due != 0 || len(reasons) == 0 || b.Old {
		return verdict{}, false
	}
	return conditionTrue(v1alpha1.ReasonLimited, scalerName(a)+" sizes the fleet, and more pods would not help: every waiting submission is held ("+
		strings.Join(reasons, ", ")+"), and held submissions do not count as backlog; "+heldRemedy(reasons)), true
}

// stoppedReasons returns the sorted reasons for which submissions are held until a person
// acts. It omits the reasons of swaps and of the router: a swap often waits for a price or for
// its second leg, and then needs no person.
func (b Backlog) stoppedReasons() (reasons []string) {
	for reason, count := range b.Held {
		if count > 0 && !strings.HasPrefix(reason, "swap_") && !strings.HasPrefix(reason, "router_") && reason != "no_route" {
			reasons = append(reasons, reason)
		}
	}
	slices.Sort(reasons)
	return reasons
}

// heldRemedy returns what to do about each reason.
func heldRemedy(reasons []string) string {
	var remedies []string
	for _, reason := range reasons {
		switch reason {
		case string(refusal.FeePayerEmpty):
			remedies = append(remedies, "fund the fee payers (condition FeePayersFunded)")
		case string(refusal.SpendCapReached):
			remedies = append(remedies, "raise spec.feePayers.spendCaps, or wait for their window")
		case string(refusal.ChainUnavailable):
			remedies = append(remedies, "repair or add RPC endpoints, or raise their budget (spec.solana.endpoints)")
		default:
			remedies = append(remedies, "docs/reference/alerts/RelaypoolSubmissionsHeld.md says what to do about "+reason)
		}
	}
	return strings.Join(remedies, "; ")
}

// scalerName returns the name of the provider in messages. Without a provider in the spec
// it is the HPA.
func scalerName(a *v1alpha1.Autoscaling) string {
	if a.Provider == v1alpha1.ProviderKEDA {
		return "KEDA"
	}
	return "the HPA"
}

// These texts, except the last, occur in the messages of an HPA's condition. They
// distinguish causes, because the condition's reason is always FailedGetExternalMetric. In the
// order of the constants, the causes are an API without a server, a server that does not
// answer, an answer without a value, a missing permission, and a backlog that the operator's
// own server does not know.
const (
	noAPIMessage     = "could not find the requested resource"
	noServerMessage  = "currently unable to handle the request"
	noValueMessage   = "no metrics returned from external metrics API"
	forbiddenMessage = "forbidden"
	backlogMessage   = "the backlog of RelayPool"
	theAPIService    = "the APIService " + contract.ExternalMetricsAPIService
)

// metricRemedy returns what is wrong with an autoscaler that does not work, and what to do
// about it.
func metricRemedy(a *v1alpha1.Autoscaling, s Autoscaler) string {
	prefix := scalerName(a) + " cannot read the backlog, and the fleet keeps its size: "
	contains := func(text string) bool { return strings.Contains(s.Message, text) }
	switch {
	case s.Stuck:
		return scalerName(a) + " cannot change the fleet's size"
	case a.Provider == v1alpha1.ProviderKEDA:
		return prefix + "KEDA's operator has to reach the operations port (spec.networkPolicy.operationsFrom)"
	case contains(backlogMessage): // the message of the operator's own server
		return prefix + "the operator serves the backlog, but does not get it from the fleet's pods"
	case contains(noAPIMessage):
		return prefix + "no server of external metrics exists in this cluster (" + theAPIService + " is missing, or leads to an adapter without this metric); have the operator serve them, or install an adapter, as docs/guides/scaling.md says"
	case contains(noServerMessage):
		return prefix + "the adapter that " + theAPIService + " leads to does not answer; kubectl describe it"
	case contains(noValueMessage):
		return prefix + "the cluster's adapter has no value of " + contract.MetricBacklog.Name + " for this RelayPool: check its rules (docs/guides/scaling.md), and whether Prometheus scrapes the fleet"
	case contains(forbiddenMessage):
		return prefix + "its controller cannot read " + contract.MetricBacklog.Name + " of external.metrics.k8s.io: bind the role for it, which is in config/external-metrics and the chart"
	default:
		return prefix + fmt.Sprintf("something has to serve the external metric %s, see docs/guides/scaling.md", contract.MetricBacklog.Name)
	}
}

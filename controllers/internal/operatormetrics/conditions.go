package operatormetrics

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/contract"
)

// conditionTypes returns the types of the conditions that are counted.
func conditionTypes() []string {
	return []string{
		v1alpha1.ConditionAccepted, v1alpha1.ConditionSecretsResolved, v1alpha1.ConditionPoolInitialised,
		v1alpha1.ConditionFeePayersFunded, v1alpha1.ConditionKeysBackedUp, v1alpha1.ConditionSpendingCapped, v1alpha1.ConditionAvailable, v1alpha1.ConditionExposed,
		v1alpha1.ConditionAutoscalingActive,
		v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled,
	}
}

// onlyWhileTrue reports whether a condition of this type exists only while it is true.
func onlyWhileTrue(kind string) bool {
	return kind == v1alpha1.ConditionReconciling || kind == v1alpha1.ConditionStalled
}

// conditionApplies reports whether a RelayPool can have a condition of this type.
func conditionApplies(kind string, p *v1alpha1.RelayPool) bool {
	switch kind {
	case v1alpha1.ConditionAutoscalingActive:
		return p.Spec.Autoscaling != nil
	case v1alpha1.ConditionExposed:
		return p.Spec.API.Ingress != nil || p.Spec.API.Gateway != nil
	case v1alpha1.ConditionKeysBackedUp:
		return p.Spec.FeePayers.Generate != nil && p.Spec.FeePayers.Generate.Backup != nil
	default:
		return true
	}
}

// conditions counts and reports the RelayPool's conditions. A missing condition counts as false if
// its type exists only while it is true, and is not counted if the type does not apply to the
// RelayPool. Any other missing condition counts as unknown, because no pass has set it yet.
func (s *scrape) conditions(p *v1alpha1.RelayPool) {
	for _, kind := range conditionTypes() {
		status := metav1.ConditionUnknown
		switch c := meta.FindStatusCondition(p.Status.Conditions, kind); {
		case c != nil:
			status = c.Status
			s.gauge(contract.MetricOperatorPoolCondition, 1, p.Namespace, p.Name, kind, string(status), c.Reason)
		case onlyWhileTrue(kind):
			status = metav1.ConditionFalse
		case !conditionApplies(kind, p):
			continue
		}
		s.count[[2]string{kind, string(status)}]++
	}
}

// totals sends every count, including counts of 0, because an alert on a missing series does
// not fire.
func (s *scrape) totals() {
	for _, kind := range conditionTypes() {
		for _, status := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown} {
			s.gauge(contract.MetricOperatorPools, float64(s.count[[2]string{kind, string(status)}]), kind, string(status))
		}
	}
}

func stateLabel(state v1alpha1.FeePayerState) string { return strings.ToLower(string(state)) }

package build

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/relaypool/relaypool/relay/contract"
)

// liveness makes the liveness probe. The relay opens the operations port first, so that a slow
// start does not fail it. It also tolerates slow answers, because a restart costs more than
// waiting for them.
func liveness() *corev1ac.ProbeApplyConfiguration {
	return probe(contract.LivenessPath).
		WithPeriodSeconds(10).
		WithTimeoutSeconds(5).
		WithFailureThreshold(6)
}

func readiness() *corev1ac.ProbeApplyConfiguration {
	return probe(contract.ReadinessPath).
		WithPeriodSeconds(5).
		WithTimeoutSeconds(3).
		WithFailureThreshold(2)
}

func probe(path string) *corev1ac.ProbeApplyConfiguration {
	return corev1ac.Probe().WithHTTPGet(corev1ac.HTTPGetAction().
		WithPath(path).
		WithPort(intstr.FromString(portOperations)).
		WithScheme(corev1.URISchemeHTTP))
}

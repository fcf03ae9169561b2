package build

import (
	"cmp"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// defaultSubmissions is the number of due submissions per pod at which the autoscaler aims, if
// the RelayPool does not set submissionsPerReplica.
const defaultSubmissions = 64

// LabelMetricNamespace and LabelMetricPool select a fleet's figures in the external
// metrics API.
const (
	LabelMetricNamespace = labelNamespace
	LabelMetricPool      = labelPool
)

// scaler returns the autoscaler that the RelayPool wants. With KEDA, it also returns the Service
// through which KEDA reads the backlog. It returns nothing if the RelayPool wants no autoscaler,
// if the fleet is withheld, or if the RelayPool wants KEDA and the cluster lacks it.
func scaler(in Input) []Object {
	a := in.Pool.Spec.Autoscaling
	switch {
	case a == nil || in.Withheld:
		return nil
	case a.Provider != v1alpha1.ProviderKEDA:
		return []Object{horizontalPodAutoscaler(in, a)}
	case in.Capabilities.ScaledObject:
		return []Object{operationsService(in), scaledObject(in, a)}
	default:
		return nil
	}
}

func submissionsPerReplica(a *v1alpha1.Autoscaling) int64 {
	return int64(cmp.Or(a.SubmissionsPerReplica, defaultSubmissions))
}

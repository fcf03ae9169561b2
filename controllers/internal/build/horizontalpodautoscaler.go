package build

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	autoscalingv2ac "k8s.io/client-go/applyconfigurations/autoscaling/v2"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/contract"
)

// horizontalPodAutoscaler makes a HorizontalPodAutoscaler that scales by external metrics. The
// labels namespace and pool select the fleet's metrics.
func horizontalPodAutoscaler(in Input, a *v1alpha1.Autoscaling) Object {
	name := in.Pool.Name
	spec := autoscalingv2ac.HorizontalPodAutoscalerSpec().
		WithScaleTargetRef(autoscalingv2ac.CrossVersionObjectReference().
			WithAPIVersion(KindDeployment.GroupVersion().String()).
			WithKind(KindDeployment.Kind).
			WithName(name)).
		WithMinReplicas(minReplicas(a)).
		WithMaxReplicas(a.MaxReplicas).
		WithMetrics(external(in, contract.MetricBacklog, autoscalingv2ac.MetricTarget().
			WithType(autoscalingv2.AverageValueMetricType).
			WithAverageValue(*resource.NewQuantity(submissionsPerReplica(a), resource.DecimalSI)))).
		WithBehavior(horizontalScalingSpeed(a.MaxReplicas))
	if a.OldestAgeSeconds > 0 {
		// The oldest age is one figure for the whole fleet. An AverageValue would divide it by
		// the number of pods, so the target is a Value: at twice the target, the autoscaler wants
		// twice the pods.
		spec.WithMetrics(external(in, contract.MetricBacklogAge, autoscalingv2ac.MetricTarget().
			WithType(autoscalingv2.ValueMetricType).
			WithValue(*resource.NewQuantity(int64(a.OldestAgeSeconds), resource.DecimalSI))))
	}
	return Object{KindHorizontalPodAutoscaler, name, autoscalingv2ac.HorizontalPodAutoscaler(name, in.Pool.Namespace).
		WithLabels(Labels(name)).
		WithSpec(spec)}
}

// minReplicas is never 0, because without a pod nobody reports new work.
func minReplicas(a *v1alpha1.Autoscaling) int32 { return max(a.MinReplicas, 1) }

func external(in Input, metric contract.Metric, target *autoscalingv2ac.MetricTargetApplyConfiguration) *autoscalingv2ac.MetricSpecApplyConfiguration {
	return autoscalingv2ac.MetricSpec().
		WithType(autoscalingv2.ExternalMetricSourceType).
		WithExternal(autoscalingv2ac.ExternalMetricSource().
			WithMetric(autoscalingv2ac.MetricIdentifier().
				WithName(metric.Name).
				WithSelector(metav1ac.LabelSelector().WithMatchLabels(map[string]string{
					labelNamespace: in.Pool.Namespace, labelPool: in.Pool.Name,
				}))).
			WithTarget(target))
}

package build

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	autoscalingv2ac "k8s.io/client-go/applyconfigurations/autoscaling/v2"
)

// podAdditionIntervalSeconds is the period in which a fleet may grow by its maximum, so it may grow
// to the maximum at once.
const podAdditionIntervalSeconds = 15

// A pod is removed only if fewer pods would have been enough during the last
// scaleDownWindowSeconds. At most one pod is removed in podRemovalIntervalSeconds, so that a
// removed pod has handed its work over before the next pod is removed.
const scaleDownWindowSeconds, podRemovalIntervalSeconds = 300, 60

// horizontalScalingSpeed is the speed for a HorizontalPodAutoscaler.
func horizontalScalingSpeed(maxReplicas int32) *autoscalingv2ac.HorizontalPodAutoscalerBehaviorApplyConfiguration {
	return autoscalingv2ac.HorizontalPodAutoscalerBehavior().
		WithScaleUp(autoscalingv2ac.HPAScalingRules().
			WithStabilizationWindowSeconds(0).
			WithSelectPolicy(autoscalingv2.MaxChangePolicySelect).
			WithPolicies(policy(maxReplicas, podAdditionIntervalSeconds))).
		WithScaleDown(autoscalingv2ac.HPAScalingRules().
			WithStabilizationWindowSeconds(scaleDownWindowSeconds).
			WithSelectPolicy(autoscalingv2.MaxChangePolicySelect).
			WithPolicies(policy(1, podRemovalIntervalSeconds)))
}

// policy limits how many pods the autoscaler may add or remove in the given number of seconds.
func policy(pods, seconds int32) *autoscalingv2ac.HPAScalingPolicyApplyConfiguration {
	return autoscalingv2ac.HPAScalingPolicy().
		WithType(autoscalingv2.PodsScalingPolicy).
		WithValue(pods).
		WithPeriodSeconds(seconds)
}

// kedaScalingSpeed is the same speed for KEDA.
func kedaScalingSpeed(maxReplicas int32) map[string]any {
	return map[string]any{
		"scaleUp":   scalingRules(0, maxReplicas, podAdditionIntervalSeconds),
		"scaleDown": scalingRules(scaleDownWindowSeconds, 1, podRemovalIntervalSeconds),
	}
}

func scalingRules(window, pods, seconds int32) map[string]any {
	return map[string]any{
		"stabilizationWindowSeconds": int64(window),
		"selectPolicy":               "Max",
		"policies":                   []any{map[string]any{"type": "Pods", "value": int64(pods), "periodSeconds": int64(seconds)}},
	}
}

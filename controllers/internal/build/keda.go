package build

import (
	"fmt"
	"strconv"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/contract"
)

const (
	// pollingSeconds is the time between KEDA's reads of the backlog.
	pollingSeconds = 15
	// failuresBeforeFallback is the number of failed reads after which KEDA uses the fallback.
	failuresBeforeFallback = 4
)

// These fields of GET /backlog have the same figures as the metrics by which
// horizontalPodAutoscaler scales.
const (
	backlogDueField = "due_count"
	backlogAgeField = "oldest_due_age_seconds"
)

// scaledObject makes KEDA scale by GET /backlog. Any pod's answer describes the whole fleet, so
// KEDA does not have to combine the answers of several pods.
func scaledObject(in Input, a *v1alpha1.Autoscaling) Object {
	name := in.Pool.Name
	url := fmt.Sprintf("http://%s.%s.svc:%d%s", OperationsServiceName(name), in.Pool.Namespace, contract.OperationsPort, contract.BacklogPath)
	triggers := []any{trigger("backlog", "AverageValue", url, backlogDueField, submissionsPerReplica(a))}
	if a.OldestAgeSeconds > 0 {
		triggers = append(triggers, trigger("age", "Value", url, backlogAgeField, int64(a.OldestAgeSeconds)))
	}
	return optionalObject(in, KindScaledObject, optionalMetadata{}, map[string]any{
		"scaleTargetRef": map[string]any{
			"apiVersion": KindDeployment.GroupVersion().String(),
			"kind":       KindDeployment.Kind,
			"name":       name,
		},
		"minReplicaCount": int64(minReplicas(a)),
		"maxReplicaCount": int64(a.MaxReplicas),
		"pollingInterval": int64(pollingSeconds),
		// While KEDA cannot read the backlog, it must not remove pods.
		"fallback": map[string]any{
			"failureThreshold": int64(failuresBeforeFallback),
			"replicas":         int64(minReplicas(a)),
			"behavior":         "currentReplicasIfHigher",
		},
		"advanced": map[string]any{"horizontalPodAutoscalerConfig": map[string]any{"behavior": kedaScalingSpeed(a.MaxReplicas)}},
		"triggers": triggers,
	})
}

func trigger(name, metricType, url, field string, target int64) map[string]any {
	return map[string]any{
		"type":       "metrics-api",
		"name":       name,
		"metricType": metricType,
		"metadata": map[string]any{
			"url":           url,
			"valueLocation": field,
			"targetValue":   strconv.FormatInt(target, 10),
		},
	}
}

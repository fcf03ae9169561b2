package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// Diagnose writes everything about a namespace that helps to understand a
// failure into a folder: its objects as YAML, without any Secret, and its events.
// Logs are the Watcher's.
func (c *Cluster) Diagnose(ctx context.Context, namespace, folder string) error {
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return fmt.Errorf("make the folder for a diagnosis: %w", err)
	}
	lists := map[string]client.ObjectList{
		"relaypools": &v1alpha1.RelayPoolList{}, "pods": &corev1.PodList{}, "events": &corev1.EventList{}, "services": &corev1.ServiceList{},
		"deployments": &appsv1.DeploymentList{}, "replicasets": &appsv1.ReplicaSetList{}, "jobs": &batchv1.JobList{},
		"horizontalpodautoscalers": &autoscalingv2.HorizontalPodAutoscalerList{}, "poddisruptionbudgets": &policyv1.PodDisruptionBudgetList{},
		"networkpolicies": &networkingv1.NetworkPolicyList{},
	}
	var errs []error
	for name, list := range lists {
		if err := c.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			errs = append(errs, fmt.Errorf("list %s: %w", name, err))
			continue
		}
		text, err := yaml.Marshal(list)
		if err != nil {
			errs = append(errs, fmt.Errorf("encode %s: %w", name, err))
			continue
		}
		errs = append(errs, os.WriteFile(filepath.Join(folder, namespace+"-"+name+".yaml"), text, 0o600))
	}
	return errors.Join(errs...)
}

package apply

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/controllers/internal/build"
)

// OwnedTypes returns an empty object of each owned kind that every cluster has. The
// operator watches and caches these kinds; optional kinds are read from the API
// server.
func OwnedTypes() []client.Object {
	return []client.Object{
		&appsv1.Deployment{}, &batchv1.Job{}, &corev1.ConfigMap{}, &corev1.Service{}, &corev1.ServiceAccount{},
		&policyv1.PodDisruptionBudget{}, &autoscalingv2.HorizontalPodAutoscaler{}, &networkingv1.NetworkPolicy{},
		&networkingv1.Ingress{},
	}
}

// typedObject returns an empty object of the kind, or nil if OwnedTypes does not have the kind.
func typedObject(kind schema.GroupVersionKind) client.Object {
	switch kind {
	case build.KindDeployment:
		return &appsv1.Deployment{}
	case build.KindJob:
		return &batchv1.Job{}
	case build.KindConfigMap:
		return &corev1.ConfigMap{}
	case build.KindService:
		return &corev1.Service{}
	case build.KindServiceAccount:
		return &corev1.ServiceAccount{}
	case build.KindPodDisruptionBudget:
		return &policyv1.PodDisruptionBudget{}
	case build.KindHorizontalPodAutoscaler:
		return &autoscalingv2.HorizontalPodAutoscaler{}
	case build.KindNetworkPolicy:
		return &networkingv1.NetworkPolicy{}
	case build.KindIngress:
		return &networkingv1.Ingress{}
	default:
		return nil
	}
}

// typedList returns an empty list of the kind, or nil if OwnedTypes does not have the kind.
func typedList(kind schema.GroupVersionKind) client.ObjectList {
	switch kind {
	case build.KindDeployment:
		return &appsv1.DeploymentList{}
	case build.KindJob:
		return &batchv1.JobList{}
	case build.KindConfigMap:
		return &corev1.ConfigMapList{}
	case build.KindService:
		return &corev1.ServiceList{}
	case build.KindServiceAccount:
		return &corev1.ServiceAccountList{}
	case build.KindPodDisruptionBudget:
		return &policyv1.PodDisruptionBudgetList{}
	case build.KindHorizontalPodAutoscaler:
		return &autoscalingv2.HorizontalPodAutoscalerList{}
	case build.KindNetworkPolicy:
		return &networkingv1.NetworkPolicyList{}
	case build.KindIngress:
		return &networkingv1.IngressList{}
	default:
		return nil
	}
}

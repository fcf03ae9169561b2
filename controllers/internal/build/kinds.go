package build

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The kinds of owned objects.
var (
	KindServiceAccount          = corev1.SchemeGroupVersion.WithKind("ServiceAccount")
	KindConfigMap               = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	KindService                 = corev1.SchemeGroupVersion.WithKind("Service")
	KindDeployment              = appsv1.SchemeGroupVersion.WithKind("Deployment")
	KindPodDisruptionBudget     = policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget")
	KindNetworkPolicy           = networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy")
	KindIngress                 = networkingv1.SchemeGroupVersion.WithKind("Ingress")
	KindHorizontalPodAutoscaler = autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler")
	KindJob                     = batchv1.SchemeGroupVersion.WithKind("Job")
	KindPodMonitor              = schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "PodMonitor"}
	KindPrometheusRule          = schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "PrometheusRule"}
	KindScaledObject            = schema.GroupVersionKind{Group: "keda.sh", Version: "v1alpha1", Kind: "ScaledObject"}
	KindHTTPRoute               = schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRoute"}
)

// Kinds lists every kind of owned objects: first Kubernetes' own kinds, then the optional
// ones.
func Kinds() []schema.GroupVersionKind {
	return append([]schema.GroupVersionKind{
		KindServiceAccount, KindConfigMap, KindService, KindDeployment, KindPodDisruptionBudget,
		KindNetworkPolicy, KindIngress, KindHorizontalPodAutoscaler, KindJob,
	}, OptionalKinds()...)
}

// OptionalKinds lists the kinds that a cluster may lack.
func OptionalKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{KindPodMonitor, KindPrometheusRule, KindScaledObject, KindHTTPRoute}
}

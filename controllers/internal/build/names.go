package build

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Labels and annotations.
const (
	// LabelName, LabelInstance, LabelComponent and LabelManagedBy are Kubernetes'
	// recommended labels.
	LabelName      = "app.kubernetes.io/name"
	LabelInstance  = "app.kubernetes.io/instance"
	LabelComponent = "app.kubernetes.io/component"
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// LabelPool is on everything that belongs to a RelayPool; its value is the RelayPool's
	// name.
	LabelPool = "relaypool.dev/pool"
	// LabelPayerState is on the Secret of every generated fee payer key, and on
	// nothing else.
	LabelPayerState = "relaypool.dev/payer-state"
	// AnnotationRollout is on the pod template; its value is a hash of what pods read at
	// their start.
	AnnotationRollout = "relaypool.dev/rollout-hash"
)

// Values of labels.
const (
	// Application is LabelName's value.
	Application = "relaypool"
	// Manager is LabelManagedBy's value.
	Manager = "relaypool-operator"
	// ComponentRelay is LabelComponent's value on the fleet and its objects.
	ComponentRelay = "relay"
	// ComponentRotation is LabelComponent's value on rotation Jobs and their pods,
	// which no Service and no Deployment may select as relays.
	ComponentRotation = "rotation"
)

// RelayContainer is the name of the relay's container, in the Deployment's pods and
// in those of rotation Jobs.
const RelayContainer = "relay"

// The kinds of owned objects.
var (
	KindServiceAccount          = corev1.SchemeGroupVersion.WithKind("ServiceAccount")
	KindConfigMap               = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	KindService                 = corev1.SchemeGroupVersion.WithKind("Service")
	KindDeployment              = appsv1.SchemeGroupVersion.WithKind("Deployment")
	KindPodDisruptionBudget     = policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget")
	KindNetworkPolicy           = networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy")
	KindHorizontalPodAutoscaler = autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler")
	KindJob                     = batchv1.SchemeGroupVersion.WithKind("Job")
	KindPodMonitor              = schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "PodMonitor"}
	KindPrometheusRule          = schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "PrometheusRule"}
	KindScaledObject            = schema.GroupVersionKind{Group: "keda.sh", Version: "v1alpha1", Kind: "ScaledObject"}
)

// Kinds lists every kind of owned objects: first Kubernetes' own kinds, then the optional
// ones.
func Kinds() []schema.GroupVersionKind {
	return append([]schema.GroupVersionKind{
		KindServiceAccount, KindConfigMap, KindService, KindDeployment, KindPodDisruptionBudget,
		KindNetworkPolicy, KindHorizontalPodAutoscaler, KindJob,
	}, OptionalKinds()...)
}

// OptionalKinds lists the kinds that a cluster may lack.
func OptionalKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{KindPodMonitor, KindPrometheusRule, KindScaledObject}
}

// Labels returns the labels of every owned object of the RelayPool with that name.
func Labels(pool string) map[string]string {
	labels := Selector(pool)
	labels[LabelManagedBy] = Manager
	labels[LabelPool] = pool
	return labels
}

// Selector returns the labels that select the fleet's pods, and nothing else.
func Selector(pool string) map[string]string {
	return map[string]string{LabelName: Application, LabelInstance: pool, LabelComponent: ComponentRelay}
}

// OperationsServiceName returns the name of the Service for the operations port. KEDA reads the
// backlog through this Service.
func OperationsServiceName(pool string) string { return pool + "-operations" }

// Step is the work of a rotation Job.
type Step string

// The steps that run as Jobs.
const (
	// StepFund moves lamports from the old payers to the new, up to the target balance.
	StepFund Step = "fund"
	// StepDrain waits until no transaction that the old payers signed can land any more.
	StepDrain Step = "drain"
	// StepSweep moves the old payers' remaining lamports to a new payer.
	StepSweep Step = "sweep"
)

// JobName returns the name of the Job that runs a step of the rotation to a revision.
func JobName(pool string, revision int32, step Step) string {
	return fmt.Sprintf("%s-payer-%d-%s", pool, revision, step)
}

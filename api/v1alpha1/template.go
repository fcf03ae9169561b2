package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// LogLevel is the lowest level that the relay logs.
//
// +kubebuilder:validation:Enum=Debug;Info;Warn;Error
type LogLevel string

// The levels.
const (
	LogDebug LogLevel = "Debug"
	LogInfo  LogLevel = "Info"
	LogWarn  LogLevel = "Warn"
	LogError LogLevel = "Error"
)

// Template adds settings to the relay's pods. It cannot set probes, ports and the grace period:
// the operator sets those.
type Template struct {
	// The operator checks the form of labels' values, and reports faults in the condition
	// Accepted. The API server does not check the form, because a CRD rule for that would exceed
	// the server's cost limit for rules.

	// Labels are added to the pods. Labels that the operator sets have priority.
	// Default: none. Example: {team: payments}
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.qualifiedName().validate(k).hasValue() && self[k].size() <= 63)",message="template.labels has a key that no label can have, or a value of more than 63 characters: expected keys such as team or example.com/team"
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations are added to the pods. Annotations that the operator sets have priority.
	// Default: none. Example: {example.com/owner: payments}
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.qualifiedName().validate(k).hasValue() && self[k].size() <= 8192)",message="template.annotations has a key that no annotation can have, or a value of more than 8192 characters: expected keys such as example.com/owner"
	Annotations map[string]string `json:"annotations,omitempty"`
	// ServiceAccountAnnotations are set on the pods' ServiceAccount, for an identity in a cloud.
	// Default: none. A change replaces the pods.
	// Example: {eks.amazonaws.com/role-arn: "arn:aws:iam::111122223333:role/payer"}
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.qualifiedName().validate(k).hasValue() && self[k].size() <= 8192)",message="template.serviceAccountAnnotations has a key that no annotation can have, or a value of more than 8192 characters: expected keys such as eks.amazonaws.com/role-arn"
	ServiceAccountAnnotations map[string]string `json:"serviceAccountAnnotations,omitempty"`
	// Resources of the relay's container. Default: requests of 250m and 256Mi, a
	// memory limit of 1Gi, and no limit of processor time.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// NodeSelector limits the pods to matching nodes. Default: any node.
	// Example: {kubernetes.io/arch: amd64}
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.qualifiedName().validate(k).hasValue() && self[k].size() <= 63)",message="template.nodeSelector has a key that no label can have, or a value of more than 63 characters: expected keys such as team or example.com/team"
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Tolerations of taints. Default: none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// Affinity of the pods. Default: none. With or without it, the pods are spread over zones
	// and nodes.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
	// PriorityClassName of the pods. Default: the cluster's.
	// Example: business-critical
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// ImagePullSecrets to fetch the image with. Default: none.
	// Example: [{name: registry}]
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	ImagePullSecrets []SecretReference `json:"imagePullSecrets,omitempty"`
	// LogLevel is the lowest level that the relay logs: Debug, Info, Warn or Error.
	// Default: Info.
	// +optional
	// +kubebuilder:default=Info
	LogLevel LogLevel `json:"logLevel,omitempty"`
	// PodTemplate is a part of a Kubernetes PodTemplateSpec that a strategic merge adds to the
	// pods last: sidecars, volumes, DNS, security context and more. Default: none.
	// Example: {spec: {runtimeClassName: gvisor}}. It may change what the operator sets for the
	// pod, such as the user id, but nothing that the relay needs to run. Of the relay's own
	// container, named relay, it may set env, envFrom, volumeMounts, securityContext and
	// imagePullPolicy. The pods of rotations get it without its other containers, but with its
	// init containers. The operator reports faults in the condition Accepted.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	PodTemplate *runtime.RawExtension `json:"podTemplate,omitempty"`
}

package build

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

// resources returns the template's resources, or else the documented default. The default is
// enough for the verifier's tables and a few hundred submissions in flight.
func resources(r *corev1.ResourceRequirements) *corev1ac.ResourceRequirementsApplyConfiguration {
	if r != nil {
		return convert[corev1ac.ResourceRequirementsApplyConfiguration](r)
	}
	return corev1ac.ResourceRequirements().
		WithRequests(corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("250m"),
			corev1.ResourceMemory: resource.MustParse("256Mi"),
		}).
		WithLimits(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")})
}

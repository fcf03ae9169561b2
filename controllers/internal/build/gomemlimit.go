package build

import (
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"
)

// memory sets GOMEMLIMIT to nine tenths of the container's memory limit, because Go does not
// count all memory of the process. The garbage collector then works harder before the kernel
// kills the process. The CPU limit needs no variable, because Go reads it by itself.
func (e *environment) memory(r *corev1ac.ResourceRequirementsApplyConfiguration) {
	limit, ok := ptr.Deref(r.Limits, nil)["memory"]
	if ok {
		e.setUnlessZero("GOMEMLIMIT", limit.Value()/10*9)
	}
}

package build

import (
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/relaypool/relaypool/relay/contract"
)

// protectedPodFields are the fields of a pod that a merge may not change, with what to do instead.
// The pod's other fields are free.
var protectedPodFields = map[string]string{
	"serviceAccountName":            "the operator makes the service account: set spec.template.serviceAccountAnnotations, or bind roles to it",
	"serviceAccount":                "the operator makes the service account: set spec.template.serviceAccountAnnotations, or bind roles to it",
	"automountServiceAccountToken":  "the relay has no token of the API server: give a sidecar one by a projected volume",
	"enableServiceLinks":            "variables of Services could look like those of the relay",
	"restartPolicy":                 "the kind of owner decides it",
	"terminationGracePeriodSeconds": "a drain needs this time",
	"activeDeadlineSeconds":         "a relay has no deadline",
	"ephemeralContainers":           "no template has them: use kubectl debug",
}

// freeContainerFields are the fields of the relay's container that a merge may change. Variables
// and mounts may be added. A field that Kubernetes adds later is protected.
var freeContainerFields = []string{"env", "envFrom", "volumeMounts", "securityContext", "imagePullPolicy"}

// containerHints says what to do instead of setting a protected field of the relay's container.
var containerHints = map[string]string{
	"image":     "set spec.image",
	"resources": "set spec.template.resources",
}

// protectedFaults returns a fault for each protected field that a merge changed.
func protectedFaults(built, merged *corev1.PodTemplateSpec) []string {
	var faults []string
	report := func(field, hint string) {
		faults = append(faults, fmt.Sprintf("%s.%s: the operator sets it: %s, and remove it from podTemplate", PodTemplateField, field, hint))
	}
	reportMetadata(built, merged, report)
	eachField(built.Spec, merged.Spec, func(name string, same bool) {
		if hint, protected := protectedPodFields[name]; protected && !same {
			report("spec."+name, hint)
		}
	})
	for i := range built.Spec.Volumes {
		own := &built.Spec.Volumes[i]
		if got := find(merged.Spec.Volumes, func(v *corev1.Volume) bool { return v.Name == own.Name }); !equality.Semantic.DeepEqual(own, got) {
			report("spec.volumes["+own.Name+"]", "give the volume another name")
		}
	}
	relay := func(s *corev1.PodSpec) *corev1.Container {
		return find(s.Containers, func(c *corev1.Container) bool { return c.Name == RelayContainer })
	}
	ours, theirs := relay(&built.Spec), relay(&merged.Spec)
	if theirs == nil {
		report("spec.containers["+RelayContainer+"]", "keep this container")
		return faults
	}
	reportContainer(ours, theirs, func(field, hint string) { report("spec.containers["+RelayContainer+"]."+field, hint) })
	return faults
}

func reportMetadata(built, merged *corev1.PodTemplateSpec, report func(field, hint string)) {
	eachField(built.ObjectMeta, merged.ObjectMeta, func(name string, same bool) {
		if !same && name != "labels" && name != "annotations" {
			report("metadata."+name, "set labels and annotations only")
		}
	})
	for key, value := range built.Labels {
		if got, ok := merged.Labels[key]; !ok || got != value {
			report("metadata.labels["+key+"]", "use another label")
		}
	}
	for key, value := range built.Annotations {
		if key == annotationLocalVolumes { // a default, which users may replace
			continue
		}
		if got, ok := merged.Annotations[key]; !ok || got != value {
			report("metadata.annotations["+key+"]", "use another annotation")
		}
	}
}

func reportContainer(built, merged *corev1.Container, report func(field, hint string)) {
	eachField(*built, *merged, func(name string, same bool) {
		if !same && !slices.Contains(freeContainerFields, name) {
			hint := containerHints[name]
			if hint == "" {
				hint = "of this container set only " + strings.Join(freeContainerFields, ", ")
			}
			report(name, hint)
		}
	})
	for i := range built.Env {
		own := &built.Env[i]
		if got := find(merged.Env, func(v *corev1.EnvVar) bool { return v.Name == own.Name }); !equality.Semantic.DeepEqual(own, got) {
			report("env["+own.Name+"]", "set the field of the RelayPool that it is made from")
		}
	}
	for i := range merged.Env {
		name := merged.Env[i].Name
		ours := slices.ContainsFunc(built.Env, func(v corev1.EnvVar) bool { return v.Name == name })
		if !ours && strings.HasPrefix(name, contract.VariablePrefix) {
			report("env["+name+"]", "set the field of the RelayPool that it is made from")
		}
	}
	for i := range merged.EnvFrom {
		// Such a prefix and a key can make a variable of the relay's; without a prefix the keys are
		// checked, where they are read.
		prefix := merged.EnvFrom[i].Prefix
		if common := min(len(prefix), len(contract.VariablePrefix)); common > 0 && prefix[:common] == contract.VariablePrefix[:common] {
			report(fmt.Sprintf("envFrom[%d].prefix", i), "set fields of the RelayPool")
		}
	}
	for i := range built.VolumeMounts {
		own := &built.VolumeMounts[i]
		if got := find(merged.VolumeMounts, func(m *corev1.VolumeMount) bool { return m.MountPath == own.MountPath }); !equality.Semantic.DeepEqual(own, got) {
			report("volumeMounts["+own.MountPath+"]", "mount to another path")
		}
	}
	for i := range merged.VolumeMounts {
		at := merged.VolumeMounts[i].MountPath
		ours := slices.ContainsFunc(built.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == at })
		covers := slices.ContainsFunc(built.VolumeMounts, func(m corev1.VolumeMount) bool { return overlaps(at, m.MountPath) })
		if !ours && covers {
			report("volumeMounts["+at+"]", "mount to another path")
		}
	}
}

// overlaps reports whether one path is the other, or lies in it.
func overlaps(a, b string) bool {
	a, b = strings.TrimSuffix(path.Clean("/"+a), "/")+"/", strings.TrimSuffix(path.Clean("/"+b), "/")+"/"
	return strings.HasPrefix(a, b) || strings.HasPrefix(b, a)
}

func find[T any](list []T, is func(*T) bool) *T {
	for i := range list {
		if is(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

// eachField calls visit with each field of a struct of Kubernetes by its name in JSON, and whether
// the two have the same value.
func eachField[T any](a, b T, visit func(name string, same bool)) {
	left, right := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range left.NumField() {
		name, _, _ := strings.Cut(left.Type().Field(i).Tag.Get("json"), ",")
		visit(name, equality.Semantic.DeepEqual(left.Field(i).Interface(), right.Field(i).Interface()))
	}
}

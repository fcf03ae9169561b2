package build

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"
	kjson "sigs.k8s.io/json"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

const (
	// PodTemplateField is the field with the pod template that is merged into the built one.
	PodTemplateField = "spec.template.podTemplate"
	// maxPodTemplate is the greatest size of that field in JSON, because a CRD cannot limit it.
	maxPodTemplate = 64 << 10
)

// PodTemplate returns the content of spec.template.podTemplate without the directives of strategic
// merges. It returns nil if the field is not set, or is not a pod template; PodTemplateFaults says
// why.
func PodTemplate(spec *v1alpha1.RelayPoolSpec) *corev1.PodTemplateSpec {
	_, typed, err := parsePodTemplate(spec)
	if err != nil {
		return nil
	}
	return typed
}

// PodTemplateFaults returns what is wrong with spec.template.podTemplate: what is not a pod
// template, and what would change a field that the relay depends on. A RelayPool with faults must
// not be built.
func PodTemplateFaults(pool *v1alpha1.RelayPool) []string {
	patch, _, err := parsePodTemplate(&pool.Spec)
	if err != nil {
		return []string{err.Error()}
	}
	if patch == nil {
		return nil
	}
	in := Input{Pool: pool, Image: "relay"}
	var faults []string
	for _, built := range []*corev1ac.PodTemplateSpecApplyConfiguration{relayTemplate(in), rotationTemplate(in, Rotation{Step: StepDrain})} {
		merged, err := merge(built, patch)
		if err != nil {
			return []string{err.Error()}
		}
		faults = append(faults, protectedFaults(asTemplate(built), asTemplate(merged))...)
	}
	slices.Sort(faults)
	return slices.Compact(faults)
}

// MergedPodTemplate returns the template of the fleet's pods with spec.template.podTemplate, for
// checks of its security. It returns nil if PodTemplateFaults returns faults.
func MergedPodTemplate(pool *v1alpha1.RelayPool) *corev1.PodTemplateSpec {
	if len(PodTemplateFaults(pool)) > 0 {
		return nil
	}
	in := Input{Pool: pool, Image: "relay"}
	return asTemplate(finish(in, relayTemplate(in)))
}

// finish is the last step of building the fleet's pods: it merges spec.template.podTemplate.
func finish(in Input, built *corev1ac.PodTemplateSpecApplyConfiguration) *corev1ac.PodTemplateSpecApplyConfiguration {
	patch, _, err := parsePodTemplate(&in.Pool.Spec)
	if err != nil || patch == nil {
		return built
	}
	merged, err := merge(built, patch)
	if err != nil {
		return built // PodTemplateFaults reports it
	}
	return merged
}

// finishJob is finish for the pods of rotation Jobs. A sidecar would keep such a pod from ending,
// so the Job's pods get no container besides the relay's, nor volumes that nothing else mounts: one
// of them might not be there for a second pod. Init containers are merged; one whose restartPolicy is
// Always ends with the pod.
func finishJob(in Input, built *corev1ac.PodTemplateSpecApplyConfiguration) *corev1ac.PodTemplateSpecApplyConfiguration {
	merged := finish(in, built)
	merged.Spec.Containers = slices.DeleteFunc(merged.Spec.Containers, func(c corev1ac.ContainerApplyConfiguration) bool {
		return afterRelay(c) > 0
	})
	merged.Spec.Volumes = slices.DeleteFunc(merged.Spec.Volumes, func(v corev1ac.VolumeApplyConfiguration) bool {
		return !slices.ContainsFunc(slices.Concat(merged.Spec.Containers, merged.Spec.InitContainers), func(c corev1ac.ContainerApplyConfiguration) bool {
			return slices.ContainsFunc(c.VolumeMounts, func(m corev1ac.VolumeMountApplyConfiguration) bool {
				return ptr.Deref(m.Name, "") == ptr.Deref(v.Name, "")
			}) ||
				slices.ContainsFunc(c.VolumeDevices, func(d corev1ac.VolumeDeviceApplyConfiguration) bool {
					return ptr.Deref(d.Name, "") == ptr.Deref(v.Name, "")
				})
		})
	})
	return merged
}

// parsePodTemplate returns the patch in spec.template.podTemplate, and what it is without the
// directives of strategic merges. All are nil if the field is not set. The error is a sentence
// without values.
func parsePodTemplate(spec *v1alpha1.RelayPoolSpec) (map[string]any, *corev1.PodTemplateSpec, error) {
	field := spec.Template.PodTemplate
	if field == nil || len(field.Raw) == 0 {
		return nil, nil, nil
	}
	if len(field.Raw) > maxPodTemplate {
		return nil, nil, fmt.Errorf("%s: expected at most %d bytes of JSON, received %d", PodTemplateField, maxPodTemplate, len(field.Raw))
	}
	var patch map[string]any
	if err := utiljson.Unmarshal(field.Raw, &patch); err != nil {
		return nil, nil, errors.New(PodTemplateField + ": expected an object with metadata and spec, received something else")
	}
	if name := foreignDirective(patch); name != "" {
		return nil, nil, fmt.Errorf("%s: the directive %s is not for this field: use $patch with replace, merge or delete", PodTemplateField, name)
	}
	plain, err := json.Marshal(withoutDirectives(patch))
	if err != nil {
		return nil, nil, errors.New(PodTemplateField + ": cannot be written as JSON")
	}
	var typed corev1.PodTemplateSpec
	unknown, err := kjson.UnmarshalStrict(plain, &typed)
	if err != nil {
		return nil, nil, fmt.Errorf("%s%s", PodTemplateField, typeFault(err))
	}
	for _, fault := range unknown {
		var at kjson.FieldError
		if errors.As(fault, &at) {
			return nil, nil, fmt.Errorf("%s.%s: a pod template has no such field, or not for this operator: correct its name, or remove it", PodTemplateField, at.FieldPath())
		}
	}
	return patch, &typed, nil
}

// typeFault completes PodTemplateField for a value of a wrong type. The decoder's own text may
// repeat the value.
func typeFault(err error) string {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		return fmt.Sprintf(".%s: expected a value of the type %s, received another", wrong.Field, wrong.Type)
	}
	return ": expected a pod template with metadata and spec, received a value of another type in one of its fields"
}

// foreignDirective returns a directive of strategic merges other than $patch with a text, or "". The
// others can add entries to lists under names that no check of the template would see.
func foreignDirective(value any) string {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if _, isText := v[name].(string); strings.HasPrefix(name, "$") && (name != "$patch" || !isText) {
				return strconv.Quote(name)[1 : len(strconv.Quote(name))-1]
			}
			if found := foreignDirective(v[name]); found != "" {
				return found
			}
		}
	case []any:
		for _, entry := range v {
			if found := foreignDirective(entry); found != "" {
				return found
			}
		}
	}
	return ""
}

// withoutDirectives returns a copy of a patch without nulls, which delete, and without the
// directives of strategic merges, whose names begin with a dollar sign.
func withoutDirectives(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, field := range v {
			if field != nil && !strings.HasPrefix(name, "$") {
				out[name] = withoutDirectives(field)
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, entry := range v {
			out = append(out, withoutDirectives(entry))
		}
		return out
	default:
		return value
	}
}

// merge returns the built template with the patch. Neither argument is changed.
func merge(built *corev1ac.PodTemplateSpecApplyConfiguration, patch map[string]any) (*corev1ac.PodTemplateSpecApplyConfiguration, error) {
	original, err := json.Marshal(built)
	if err != nil {
		return nil, fmt.Errorf("write the pod template: %w", err)
	}
	change, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("write the patch of the pod template: %w", err)
	}
	content, err := strategicpatch.StrategicMergePatch(original, change, corev1.PodTemplateSpec{})
	if err != nil {
		// The error's text may repeat values.
		return nil, errors.New(PodTemplateField + ": cannot be merged: expected the entries of lists to have their key (name of containers, variables and volumes, mountPath of mounts, containerPort of ports), and $patch to be replace, merge or delete")
	}
	merged := new(corev1ac.PodTemplateSpecApplyConfiguration)
	if err := json.Unmarshal(content, merged); err != nil {
		return nil, errors.New(PodTemplateField + ": makes no pod template")
	}
	if merged.Spec == nil {
		merged.Spec = corev1ac.PodSpec()
	}
	setAtomicDefaults(merged.Spec)
	// The merge has put new containers first, and kubectl logs shows the first.
	slices.SortStableFunc(merged.Spec.Containers, func(a, b corev1ac.ContainerApplyConfiguration) int {
		return cmp.Compare(afterRelay(a), afterRelay(b))
	})
	return merged, nil
}

// afterRelay orders the relay's container before all others.
func afterRelay(c corev1ac.ContainerApplyConfiguration) int {
	if c.Name != nil && *c.Name == RelayContainer {
		return 0
	}
	return 1
}

func asTemplate(config *corev1ac.PodTemplateSpecApplyConfiguration) *corev1.PodTemplateSpec {
	return convert[corev1.PodTemplateSpec](config)
}

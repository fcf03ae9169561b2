package build

import (
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// PodReference is a Secret or ConfigMap that spec.template.podTemplate names.
type PodReference struct {
	// Secret is false for a ConfigMap.
	Secret bool
	Name   string
	// Field is the path of the field in the RelayPool.
	Field string
	// Optional: pods start without the object.
	Optional bool
	// Variables: pods read the object only when they start, for environment variables.
	Variables bool
	// RelayVariables: each of the object's keys is the name of a variable of the relay's container.
	RelayVariables bool
	// Pull: only the kubelet reads the object, to fetch an image.
	Pull bool
}

// PodReferences returns the Secrets and ConfigMaps that spec.template.podTemplate names, in the
// order of the fields of a pod.
func PodReferences(spec *v1alpha1.RelayPoolSpec) []PodReference {
	typed := PodTemplate(spec)
	if typed == nil {
		return nil
	}
	var found []PodReference
	walkReferences(reflect.ValueOf(typed.Spec), PodTemplateField+".spec", &found)
	return found
}

const relayEnvFrom = PodTemplateField + ".spec.containers[" + RelayContainer + "].envFrom["

// walkReferences appends the references in a value of Kubernetes' API. It knows the types of
// references rather than their fields, so that it also finds those of fields that are added later.
func walkReferences(v reflect.Value, field string, found *[]PodReference) {
	if r, ok := referenceIn(v, field); ok {
		if r.Name != "" {
			*found = append(*found, r)
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			walkReferences(v.Elem(), field, found)
		}
	case reflect.Slice:
		for i := range v.Len() {
			walkReferences(v.Index(i), entryPath(field, v.Index(i), i), found)
		}
	case reflect.Struct:
		before := len(*found)
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() {
				continue
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			at := field + "." + name
			if name == "" { // its fields are inline
				at = field
			}
			walkReferences(v.Field(i), at, found)
		}
		if from, ok := v.Interface().(corev1.EnvFromSource); ok && from.Prefix == "" && strings.HasPrefix(field, relayEnvFrom) {
			for i := range (*found)[before:] {
				(*found)[before+i].RelayVariables = true
			}
		}
	default:
	}
}

// referenceIn returns the reference that a value is. A LocalObjectReference of a pod is a Secret's,
// except inside the types for ConfigMaps.
func referenceIn(v reflect.Value, field string) (PodReference, bool) {
	reference := func(secret bool, name string, optional *bool, variables bool) (PodReference, bool) {
		return PodReference{Secret: secret, Name: name, Field: field, Optional: ptr.Deref(optional, false), Variables: variables}, true
	}
	switch r := v.Interface().(type) {
	case corev1.SecretVolumeSource:
		return reference(true, r.SecretName, r.Optional, false)
	case corev1.SecretProjection:
		return reference(true, r.Name, r.Optional, false)
	case corev1.SecretKeySelector:
		return reference(true, r.Name, r.Optional, true)
	case corev1.SecretEnvSource:
		return reference(true, r.Name, r.Optional, true)
	case corev1.SecretReference:
		return reference(true, r.Name, nil, false)
	case corev1.AzureFileVolumeSource:
		return reference(true, r.SecretName, nil, false)
	case corev1.ConfigMapVolumeSource:
		return reference(false, r.Name, r.Optional, false)
	case corev1.ConfigMapProjection:
		return reference(false, r.Name, r.Optional, false)
	case corev1.ConfigMapKeySelector:
		return reference(false, r.Name, r.Optional, true)
	case corev1.ConfigMapEnvSource:
		return reference(false, r.Name, r.Optional, true)
	case corev1.LocalObjectReference:
		out, ok := reference(true, r.Name, nil, false)
		out.Pull = strings.HasPrefix(field, PodTemplateField+".spec.imagePullSecrets")
		return out, ok
	}
	return PodReference{}, false
}

// entryPath returns the path of a list's entry: by its name if it has one, else by its number.
func entryPath(field string, entry reflect.Value, i int) string {
	if entry.Kind() == reflect.Struct {
		if name := entry.FieldByName("Name"); name.IsValid() && name.Kind() == reflect.String && name.String() != "" {
			return fmt.Sprintf("%s[%s]", field, name.String())
		}
	}
	return fmt.Sprintf("%s[%d]", field, i)
}

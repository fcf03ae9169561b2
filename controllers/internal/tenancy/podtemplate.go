package tenancy

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	psa "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/relay/commandline"
)

// FieldPodTemplate is the field of spec.template that can make pods of nearly any form. Once
// RelayPools are limited in any way, it has to be allowed by its name.
const FieldPodTemplate = "podTemplate"

// tenantPodFields are the fields of a pod that a limited RelayPool may set in podTemplate. The
// value is the field of spec.template that has to be allowed too. A field that Kubernetes adds
// later may not be set.
var tenantPodFields = map[string]string{
	"containers": "", "initContainers": "", "volumes": "", "securityContext": "",
	"dnsPolicy": "", "dnsConfig": "", "hostAliases": "", "imagePullSecrets": "",
	"nodeSelector": "nodeSelector", "tolerations": "tolerations", "affinity": "affinity",
	"topologySpreadConstraints": "affinity", "priorityClassName": "priorityClassName",
}

// tenantVolumes are the kinds of volumes that a limited RelayPool may have: those that hold nothing
// but what Secrets, ConfigMaps and the pod itself have. Others may be a neighbour's disk, or a
// path of the node.
var tenantVolumes = []string{"secret", "configMap", "downwardAPI", "emptyDir", "projected"}

// tenantSources are those of projected volumes. A token would let a container act as the service
// account.
var tenantSources = []string{"secret", "configMap", "downwardAPI"}

// limits reports whether RelayPools are limited in any way.
func (p Policy) limits() bool {
	return len(p.Images)+len(p.Withheld)+len(p.WithheldAPI) > 0 || p.RequireLabel
}

// podTemplateFaults returns what a RelayPool that is limited may not have in podTemplate. The
// objects that it names are checked by Refuse.
func (p Policy) podTemplateFaults(spec *v1alpha1.RelayPoolSpec, ownImage string) []string {
	if !p.limits() || slices.Contains(p.Withheld, FieldPodTemplate) {
		return nil
	}
	typed := build.PodTemplate(spec)
	if typed == nil {
		return nil
	}
	var faults []string
	report := func(field, fault string) {
		faults = append(faults, build.PodTemplateField+"."+field+": "+fault)
	}
	for name, value := range fields(typed.Spec) {
		allowedBy, known := tenantPodFields[name]
		switch {
		case value.IsZero():
		case !known:
			report("spec."+name, "this operator lets RelayPools not set this field of pods: remove it")
		case slices.Contains(p.Withheld, allowedBy):
			report("spec."+name, p.withheld(allowedBy))
		}
	}
	for name, set := range map[string]int{"labels": len(typed.Labels), "annotations": len(typed.Annotations)} {
		if set > 0 && slices.Contains(p.Withheld, name) {
			report("metadata."+name, p.withheld(name))
		}
	}
	reportVolumes(typed.Spec.Volumes, report)
	for list, containers := range map[string][]corev1.Container{"containers": typed.Spec.Containers, "initContainers": typed.Spec.InitContainers} {
		for i := range containers {
			at := fmt.Sprintf("spec.%s[%s].", list, containers[i].Name)
			if fault := p.imageFault(containers[i].Image, ownImage); fault != "" {
				report(at+"image", fault)
			}
			if r := containers[i].Resources; slices.Contains(p.Withheld, "resources") && len(r.Limits)+len(r.Requests)+len(r.Claims) > 0 {
				report(at+"resources", p.withheld("resources"))
			}
		}
	}
	faults = append(faults, standardFaults(spec)...)
	slices.Sort(faults)
	return faults
}

func (p Policy) withheld(field string) string {
	return fmt.Sprintf("this operator lets RelayPools not set %s of spec.template: remove it, or ask the operator's administrator to allow it (%s)",
		field, commandline.Setting(FlagTemplateFields))
}

func reportVolumes(volumes []corev1.Volume, report func(field, fault string)) {
	refuse := func(at, kind string, allowed []string) {
		report(at+kind, "this operator lets RelayPools have volumes of "+strings.Join(allowed, ", ")+" only: use one of these")
	}
	for i := range volumes {
		at := fmt.Sprintf("spec.volumes[%s].", volumes[i].Name)
		for kind, source := range fields(volumes[i].VolumeSource) {
			if !source.IsZero() && !slices.Contains(tenantVolumes, kind) {
				refuse(at, kind, tenantVolumes)
			}
		}
		if volumes[i].Projected == nil {
			continue
		}
		for j := range volumes[i].Projected.Sources {
			for kind, source := range fields(volumes[i].Projected.Sources[j]) {
				if !source.IsZero() && !slices.Contains(tenantSources, kind) {
					refuse(fmt.Sprintf("%sprojected.sources[%d].", at, j), kind, tenantSources)
				}
			}
		}
	}
}

// standardFaults returns in which ways the pods would not meet the pod security standard
// restricted, which excludes privileges, the node's network and its files.
func standardFaults(spec *v1alpha1.RelayPoolSpec) []string {
	merged := build.MergedPodTemplate(&v1alpha1.RelayPool{Spec: *spec})
	if merged == nil { // it may be for the name, which this check does not know, that the template has no fault
		return []string{build.PodTemplateField + ": cannot be checked against the pod security standard restricted: correct its other faults, and set no label or annotation of the operator's"}
	}
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return []string{build.PodTemplateField + ": cannot be checked against the pod security standard restricted"}
	}
	var faults []string
	restricted := psa.LevelVersion{Level: psa.LevelRestricted, Version: psa.LatestVersion()}
	for _, result := range evaluator.EvaluatePod(restricted, &merged.ObjectMeta, &merged.Spec) {
		if !result.Allowed {
			faults = append(faults, fmt.Sprintf("%s: expected pods that meet the pod security standard restricted, received %s (%s)", build.PodTemplateField, result.ForbiddenReason, result.ForbiddenDetail))
		}
	}
	return faults
}

// fields returns the fields of a struct of Kubernetes by their names in JSON.
func fields(of any) map[string]reflect.Value {
	v := reflect.ValueOf(of)
	out := make(map[string]reflect.Value, v.NumField())
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		out[name] = v.Field(i)
	}
	return out
}

package tenancy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/commandline"
)

// templateFields are the fields of spec.template that can be withheld from RelayPools, by their
// names in the resource. Two fields are left out: imagePullSecrets has the same limits as all
// Secrets, and logLevel gives a user no access to anything.
var templateFields = []struct {
	name  string
	isSet func(*v1alpha1.Template) bool
}{
	{"labels", func(t *v1alpha1.Template) bool { return len(t.Labels) > 0 }},
	{"annotations", func(t *v1alpha1.Template) bool { return len(t.Annotations) > 0 }},
	{"serviceAccountAnnotations", func(t *v1alpha1.Template) bool { return len(t.ServiceAccountAnnotations) > 0 }},
	{"resources", func(t *v1alpha1.Template) bool { return t.Resources != nil }},
	{"nodeSelector", func(t *v1alpha1.Template) bool { return len(t.NodeSelector) > 0 }},
	{"tolerations", func(t *v1alpha1.Template) bool { return len(t.Tolerations) > 0 }},
	{"affinity", func(t *v1alpha1.Template) bool { return t.Affinity != nil }},
	{"priorityClassName", func(t *v1alpha1.Template) bool { return t.PriorityClassName != "" }},
	{FieldPodTemplate, func(t *v1alpha1.Template) bool { return t.PodTemplate != nil }},
}

// TemplateFields returns the names of the fields of spec.template that can be withheld.
func TemplateFields() []string {
	out := make([]string, len(templateFields))
	for i, f := range templateFields {
		out[i] = f.name
	}
	return out
}

// templateFaults returns a message for each field of a template that is set but withheld.
func (p Policy) templateFaults(t *v1alpha1.Template) (faults []string) {
	for _, f := range templateFields {
		if f.isSet(t) && slices.Contains(p.Withheld, f.name) {
			faults = append(faults, withheldFault("spec.template", f.name, TemplateFields(), p.Withheld, FlagTemplateFields))
		}
	}
	return faults
}

// withheldFault returns the message for a withheld field. all are the fields of the same parent
// that can be withheld, and flag is the setting that withholds them.
func withheldFault(parent, name string, all, withheld []string, flag string) string {
	allowed := slices.DeleteFunc(slices.Clone(all), func(field string) bool { return slices.Contains(withheld, field) })
	set := "only the fields " + strings.Join(allowed, ", ") + " out of " + strings.Join(all, ", ")
	if len(allowed) == 0 {
		set = "none of the fields " + strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s.%s: this operator lets RelayPools set %s of %s, received a value: remove it, or ask the operator's administrator to allow it (%s)",
		parent, name, set, parent, commandline.Setting(flag))
}

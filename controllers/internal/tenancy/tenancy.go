// Package tenancy limits what users can do in a cluster by making RelayPools: which images
// run, which fields of the pods' template are set, and which Secrets and ConfigMaps are
// mounted. The operator makes pods with its own permissions, so without these limits the
// right to make RelayPools amounts to the right to make pods.
package tenancy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/distribution/reference"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/relay/commandline"
)

// These are the flags that set the policy.
const (
	FlagImages         = "tenant-images"
	FlagTemplateFields = "tenant-template-fields"
	FlagUsable         = "tenant-usable"
)

// Policy limits RelayPools. Its zero value is for a cluster with one tenant: everything
// is allowed except the use of another RelayPool's generated keys.
type Policy struct {
	// Images are the repositories that spec.image may name, as ParseRepository returns
	// them. If empty, every image is allowed.
	Images []string
	// Withheld are the fields of spec.template that no RelayPool may set.
	Withheld []string
	// RequireLabel allows only Secrets and ConfigMaps that have the label
	// v1alpha1.LabelUsableBy or are in Usable.
	RequireLabel bool
	// Usable are NAMESPACE/NAME of Secrets and ConfigMaps that every RelayPool of the
	// namespace may name without a label.
	Usable []string
}

// anyBelow is the suffix of a path that stands for all repositories below the path.
const anyBelow = "/*"

// ParseRepository returns the full name of an image's repository, registry included,
// or, if text ends in /*, of all repositories below this path.
func ParseRepository(text string) (string, error) {
	prefix, all := strings.CutSuffix(text, anyBelow)
	if all {
		prefix += "/x"
	}
	named, err := reference.ParseNormalizedNamed(prefix)
	if err != nil || !reference.IsNameOnly(named) {
		return "", fmt.Errorf("expected a repository without tag and digest, such as registry.example/relaypool/relay, or registry.example/relaypool%s for all below it, received %d characters that are none", anyBelow, len(text))
	}
	if all {
		return strings.TrimSuffix(named.Name(), "/x") + anyBelow, nil
	}
	return named.Name(), nil
}

// Faults returns a message for each field that a spec sets but may not set. It does not
// check the objects that the spec names. ownImage is the operator's default for RelayPools
// that name no image.
func (p Policy) Faults(spec *v1alpha1.RelayPoolSpec, ownImage string) []string {
	var out []string
	if fault := p.imageFault(spec.Image, ownImage); fault != "" {
		out = append(out, "spec.image: "+fault)
	}
	for _, f := range templateFields {
		if f.set(&spec.Template) && slices.Contains(p.Withheld, f.name) {
			out = append(out, fmt.Sprintf("spec.template.%s: this operator lets RelayPools set %s of spec.template, received a value: remove it, or ask the operator's administrator to allow it (%s)",
				f.name, p.allowedFields(), commandline.Setting(FlagTemplateFields)))
		}
	}
	return out
}

func (p Policy) imageFault(image, ownImage string) string {
	if len(p.Images) == 0 || image == "" || image == ownImage {
		return ""
	}
	found := "a text that is not an image name"
	if named, err := reference.ParseNormalizedNamed(image); err == nil {
		if found = named.Name(); slices.ContainsFunc(p.Images, func(allowed string) bool { return allows(allowed, named.Name()) }) {
			return ""
		}
	}
	return fmt.Sprintf("expected an image of %s, received %s: name one of these, omit it for the operator's own, or ask the operator's administrator to allow it (%s)",
		strings.Join(p.Images, ", "), found, commandline.Setting(FlagImages))
}

func allows(allowed, repository string) bool {
	if prefix, all := strings.CutSuffix(allowed, "*"); all {
		return strings.HasPrefix(repository, prefix)
	}
	return allowed == repository
}

// templateFields are the fields of spec.template that can be withheld, by their names in
// the resource. Pull secrets have the same limits as all Secrets, and the log level gives
// a user no access to anything.
var templateFields = []struct {
	name string
	set  func(*v1alpha1.Template) bool
}{
	{"labels", func(t *v1alpha1.Template) bool { return len(t.Labels) > 0 }},
	{"annotations", func(t *v1alpha1.Template) bool { return len(t.Annotations) > 0 }},
	{"resources", func(t *v1alpha1.Template) bool { return t.Resources != nil }},
	{"nodeSelector", func(t *v1alpha1.Template) bool { return len(t.NodeSelector) > 0 }},
	{"tolerations", func(t *v1alpha1.Template) bool { return len(t.Tolerations) > 0 }},
	{"affinity", func(t *v1alpha1.Template) bool { return t.Affinity != nil }},
	{"priorityClassName", func(t *v1alpha1.Template) bool { return t.PriorityClassName != "" }},
}

// TemplateFields names the fields of spec.template that can be withheld.
func TemplateFields() []string {
	out := make([]string, len(templateFields))
	for i, f := range templateFields {
		out[i] = f.name
	}
	return out
}

func (p Policy) allowedFields() string {
	allowed := slices.DeleteFunc(TemplateFields(), func(name string) bool { return slices.Contains(p.Withheld, name) })
	if len(allowed) == 0 {
		return "none of the fields " + strings.Join(TemplateFields(), ", ")
	}
	return "only the fields " + strings.Join(allowed, ", ") + " out of " + strings.Join(TemplateFields(), ", ")
}

// Named is an object that a RelayPool names.
type Named struct {
	// Pool is the RelayPool's name; Namespace is the namespace of both.
	Namespace, Pool string
	// Kind is Secret or ConfigMap.
	Kind, Name string
	// Labels are the labels of the object.
	Labels map[string]string
	// Payer: the RelayPool names the object as a fee payer's key.
	Payer bool
}

// Refusal is why a RelayPool may not use an object that it names.
type Refusal struct {
	// Generated: the object is a generated key. Otherwise no label or setting allows its
	// use.
	Generated bool
	// Text completes "Secret NAME …".
	Text string
}

// Refuse returns why a RelayPool may not use an object, or nil if it may. It reads only the
// object's labels. Under every policy, a generated key pays only for the RelayPool for which
// it was made.
func (p Policy) Refuse(n Named) *Refusal {
	if n.Kind == "Secret" && n.Labels[build.LabelPayerState] != "" {
		owner := n.Labels[build.LabelPool]
		switch {
		case owner != n.Pool:
			return &Refusal{true, fmt.Sprintf("is a generated fee payer key of RelayPool %s, which no other RelayPool may use: name a Secret of your own", owner)}
		case !n.Payer:
			return &Refusal{true, "is a generated fee payer key, which may be used only as a fee payer's key: name another Secret"}
		default:
			return nil
		}
	}
	if !p.RequireLabel || slices.Contains(p.Usable, n.Namespace+"/"+n.Name) {
		return nil
	}
	received := "another value"
	switch n.Labels[v1alpha1.LabelUsableBy] {
	case n.Pool, v1alpha1.UsableByAny:
		return nil
	case "":
		received = "none"
	}
	return &Refusal{false, fmt.Sprintf("may not be used by this RelayPool: expected its label %s to be %s or %s, received %s; its owner can allow it with kubectl label %s %s -n %s --overwrite %s=%s, or the operator's administrator with %s",
		v1alpha1.LabelUsableBy, n.Pool, v1alpha1.UsableByAny, received,
		strings.ToLower(n.Kind), n.Name, n.Namespace, v1alpha1.LabelUsableBy, n.Pool, commandline.Setting(FlagUsable))}
}

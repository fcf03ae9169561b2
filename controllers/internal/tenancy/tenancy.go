// Package tenancy limits what users can do in a cluster by making RelayPools: which images
// run, which fields of the pods' template are set, how the fleet is exposed, and which Secrets and
// ConfigMaps are mounted. The operator makes pods with its own permissions, so without these limits the
// right to make RelayPools amounts to the right to make pods.
package tenancy

import (
	"github.com/relaypool/relaypool/api/v1alpha1"
)

// These are the flags that set the policy.
const (
	FlagImages         = "tenant-images"
	FlagTemplateFields = "tenant-template-fields"
	FlagAPIFields      = "tenant-api-fields"
	FlagUsable         = "tenant-usable"
)

// Policy limits RelayPools. Its zero value is for a cluster with one tenant: everything
// is allowed except the use of another RelayPool's generated keys.
type Policy struct {
	// Images are the repositories that spec.image and the containers of podTemplate may name, as
	// ParseRepository returns them. If empty, every image is allowed.
	Images []string
	// Withheld are the fields of spec.template that no RelayPool may set.
	Withheld []string
	// WithheldAPI are the fields of spec.api that no RelayPool may set.
	WithheldAPI []string
	// RequireLabel allows only Secrets and ConfigMaps that have the label
	// v1alpha1.LabelUsableBy or are in Usable.
	RequireLabel bool
	// Usable lists Secrets and ConfigMaps, as NAMESPACE/NAME. Every RelayPool of that namespace
	// may use them without a label.
	Usable []string
}

// Faults returns a message for each field that a spec sets but may not set. It does not check the
// objects that the spec names. ownImage is the image for RelayPools that do not set spec.image.
func (p Policy) Faults(spec *v1alpha1.RelayPoolSpec, ownImage string) []string {
	var out []string
	if fault := p.imageFault(spec.Image, ownImage); fault != "" {
		out = append(out, "spec.image: "+fault)
	}
	out = append(out, p.templateFaults(&spec.Template)...)
	out = append(out, p.apiFaults(&spec.API)...)
	return append(out, p.podTemplateFaults(spec, ownImage)...)
}

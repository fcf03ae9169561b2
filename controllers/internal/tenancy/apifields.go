package tenancy

import (
	"slices"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// apiFields are the fields of spec.api that can be withheld from RelayPools, by their names in the
// resource. By these, a user opens ports of nodes, orders load balancers, and takes host names. The
// other fields concern only the fleet itself.
var apiFields = []struct {
	name  string
	isSet func(*v1alpha1.API) bool
}{
	{"service", func(a *v1alpha1.API) bool { return a.Service != nil }},
	{"ingress", func(a *v1alpha1.API) bool { return a.Ingress != nil }},
	{"gateway", func(a *v1alpha1.API) bool { return a.Gateway != nil }},
}

// APIFields returns the names of the fields of spec.api that can be withheld.
func APIFields() []string {
	out := make([]string, len(apiFields))
	for i, f := range apiFields {
		out[i] = f.name
	}
	return out
}

// apiFaults returns a message for each field of spec.api that is set but withheld.
func (p Policy) apiFaults(api *v1alpha1.API) (faults []string) {
	for _, f := range apiFields {
		if f.isSet(api) && slices.Contains(p.WithheldAPI, f.name) {
			faults = append(faults, withheldFault("spec.api", f.name, APIFields(), p.WithheldAPI, FlagAPIFields))
		}
	}
	return faults
}

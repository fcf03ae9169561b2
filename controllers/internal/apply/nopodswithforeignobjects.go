package apply

import (
	"slices"

	"github.com/relaypool/relaypool/controllers/internal/build"
)

// withholds reports whether the object is not written in this pass: a Deployment whose pods would
// use an object of another owner.
func (p *pass) withholds(ref Ref) bool {
	return ref.Kind == build.KindDeployment && slices.ContainsFunc(p.result.Foreign, usedByPods)
}

// usedByPods reports whether the fleet's pods use the object. If such an object belongs to another
// owner, Apply withholds the Deployment. Without this rule, a tenant could name a RelayPool after
// a service account of the namespace, and so run pods as that account.
func usedByPods(ref Ref) bool {
	return ref.Kind == build.KindServiceAccount || ref.Kind == build.KindConfigMap
}

// Package v1alpha1 defines the RelayPool resource: the fleet of relays for one
// shielded pool that a platform team declares, and the status that the operator
// observes. It has the types and the names of conditions, reasons and events,
// and makes no call to a cluster.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +groupName=relaypool.dev
package v1alpha1

//go:generate go tool -modfile=../../hack/tools/controller-gen/go.mod controller-gen object applyconfiguration crd paths=. output:crd:dir=../../config/crd

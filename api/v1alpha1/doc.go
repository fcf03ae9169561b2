// Package v1alpha1 defines the RelayPool resource. In its spec, a platform team
// declares a fleet of relays for one shielded pool. In its status, the operator
// reports what it observes. The package has the types and the names of conditions,
// reasons and events, and makes no call to a cluster.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +groupName=relaypool.dev
package v1alpha1

//go:generate go tool -modfile=../../hack/tools/controller-gen/go.mod controller-gen object applyconfiguration crd paths=. output:crd:dir=../../config/crd

// Package v1alpha1 is the RelayPool resource: a fleet of relays for one
// shielded pool, as a platform team declares it, and what the operator found.
// The package holds types, the names of conditions, reasons and events, and
// nothing that reaches a cluster.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +groupName=relaypool.dev
package v1alpha1

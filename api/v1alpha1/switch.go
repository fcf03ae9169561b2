package v1alpha1

// Switch says whether the operator makes an optional object.
//
// +kubebuilder:validation:Enum=Enabled;Disabled
type Switch string

// The switches.
const (
	// Enabled: the operator makes the object.
	Enabled Switch = "Enabled"
	// Disabled: the operator does not make the object, and deletes one that it made earlier.
	Disabled Switch = "Disabled"
)

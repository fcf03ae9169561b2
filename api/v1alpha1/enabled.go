package v1alpha1

// Switch turns a part on or off.
//
// +kubebuilder:validation:Enum=Enabled;Disabled
type Switch string

// The switches.
const (
	// Enabled makes the part.
	Enabled Switch = "Enabled"
	// Disabled leaves the part out, and deletes what was made of it.
	Disabled Switch = "Disabled"
)

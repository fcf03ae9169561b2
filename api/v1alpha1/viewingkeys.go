package v1alpha1

// ViewingKeys says how viewing keys are registered, and to which key they are sealed.
type ViewingKeys struct {
	// CompliancePublicKey is the public key to which viewing keys are sealed: 64
	// hexadecimal digits, made by `relay compliance keygen` on the compliance officer's own
	// machine. The private key never enters the cluster.
	// Example: 5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb
	// +required
	// +kubebuilder:validation:Pattern=`^[0-9a-fA-F]{64}$`
	// +kubebuilder:validation:MaxLength=64
	CompliancePublicKey string `json:"compliancePublicKey"`
	// Messages are the sign-in texts. Default: the profile's. Example: [Sign in to the pool]
	// A wallet signs one of them to register its viewing key.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	Messages []string `json:"messages,omitempty"`
}

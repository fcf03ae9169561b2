package v1alpha1

// SecretKeyReference names one value of a Secret in the RelayPool's namespace.
type SecretKeyReference struct {
	// Name is the Secret's name. Example: relay-credentials
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// Key is the value's name in the Secret. Example: url
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key"`
}

// ConfigMapKeyReference names one value of a ConfigMap in the RelayPool's namespace.
type ConfigMapKeyReference struct {
	// Name is the ConfigMap's name. Example: shield-pool
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// Key is the value's name in the ConfigMap. Example: verification_key.json
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key"`
}

// CertificatesSource names the value with certificates, in PEM.
//
// +kubebuilder:validation:ExactlyOneOf=secretRef;configMapRef
type CertificatesSource struct {
	// SecretRef is the Secret with them. Default: none; either secretRef or configMapRef is set.
	// +optional
	SecretRef *SecretKeyReference `json:"secretRef,omitempty"`
	// ConfigMapRef is the ConfigMap with them. Default: none; either secretRef or configMapRef
	// is set.
	// +optional
	ConfigMapRef *ConfigMapKeyReference `json:"configMapRef,omitempty"`
}

// SecretReference names a Secret in the RelayPool's namespace.
type SecretReference struct {
	// Name is the Secret's name. Example: relay-credentials
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
}

// LabelUsableBy is a label of Secrets and ConfigMaps. Its value is the name of the
// RelayPool in the same namespace that may use the object, or UsableByAny. The label
// counts only if the operator's settings require it.
const LabelUsableBy = Group + "/usable-by"

// UsableByAny is the value of LabelUsableBy that lets every RelayPool of the
// namespace use the object.
const UsableByAny = "any"

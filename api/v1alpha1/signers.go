package v1alpha1

// Signer is a fee payer whose key stays in a key service, which signs for the fleet.
//
// +kubebuilder:validation:ExactlyOneOf=vaultTransit;awsKMS;gcpKMS
type Signer struct {
	// Name identifies the signer in logs, metrics and status: lower-case letters, digits and
	// dashes. Example: vault
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=32
	Name string `json:"name"`
	// Address is the address to fund, in base58. The service's key must have it.
	// Example: 9wfXhaoTA134sVJB2jJjFCia6x4YY7fmbNhh4qB9K52c
	// +required
	// +kubebuilder:validation:Pattern=`^[1-9A-HJ-NP-Za-km-z]{32,44}$`
	// +kubebuilder:validation:MaxLength=44
	Address string `json:"address"`
	// VaultTransit is a key of Vault or OpenBao: url, key, keyVersion, and tokenSecretRef or
	// kubernetes.role. Default: none; a signer has one service.
	// +optional
	VaultTransit *VaultTransit `json:"vaultTransit,omitempty"`
	// AWSKMS is a key of AWS: keyID. Default: none; a signer has one service.
	// +optional
	AWSKMS *AWSKMS `json:"awsKMS,omitempty"`
	// GCPKMS is a key of Google Cloud: keyVersion. Default: none; a signer has one service.
	// +optional
	GCPKMS *GCPKMS `json:"gcpKMS,omitempty"`
}

// VaultTransit is an ed25519 key of the secrets engine Transit.
//
// +kubebuilder:validation:ExactlyOneOf=tokenSecretRef;kubernetes
// +kubebuilder:validation:XValidation:rule="self.url.matches('^https://[^ @?]+$')",fieldPath=".url",message="url does not begin with https://, or has a space, a user or a query: expected Vault's address, such as https://vault.example:8200"
type VaultTransit struct {
	// URL of Vault. Example: https://vault.example:8200
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	URL string `json:"url"`
	// Key is its name in Vault. Example: payer
	// +required
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
	// KeyVersion that has the address. Example: 1
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	KeyVersion int32 `json:"keyVersion"`
	// Mount of the engine. Default: transit. Example: team/transit
	// +optional
	// +kubebuilder:validation:Pattern=`^[-._/a-zA-Z0-9]+$`
	// +kubebuilder:validation:MaxLength=253
	Mount string `json:"mount,omitempty"`
	// Namespace of Vault. Default: none. Example: payments
	// +optional
	// +kubebuilder:validation:Pattern=`^[-._/a-zA-Z0-9]+$`
	// +kubebuilder:validation:MaxLength=253
	Namespace string `json:"namespace,omitempty"`
	// CAFrom has the authorities of Vault's certificate, in PEM: secretRef or configMapRef.
	// Default: the system's.
	// +optional
	CAFrom *CertificatesSource `json:"caFrom,omitempty"`
	// TokenSecretRef is the Secret of a token. Default: none; kubernetes is set.
	// +optional
	TokenSecretRef *SecretKeyReference `json:"tokenSecretRef,omitempty"`
	// Kubernetes logs in with the pods' service account. Default: none; tokenSecretRef is set.
	// +optional
	Kubernetes *VaultKubernetesLogin `json:"kubernetes,omitempty"`
}

// VaultKubernetesLogin is a login by Vault's auth method for Kubernetes.
type VaultKubernetesLogin struct {
	// Role to log in as. Example: relaypool
	// +required
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	// +kubebuilder:validation:MaxLength=253
	Role string `json:"role"`
	// Mount of the auth method. Default: kubernetes. Example: team/kubernetes
	// +optional
	// +kubebuilder:validation:Pattern=`^[-._/a-zA-Z0-9]+$`
	// +kubebuilder:validation:MaxLength=253
	Mount string `json:"mount,omitempty"`
	// Audience of the pods' token. Default: vault. Example: https://vault.example
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Audience string `json:"audience,omitempty"`
}

// AWSKMS is an ed25519 key of AWS Key Management Service.
//
// +kubebuilder:validation:XValidation:rule="!has(self.endpoint) || self.endpoint.matches('^https://[^ @?]+$')",fieldPath=".endpoint",message="endpoint does not begin with https://, or has a space, a user or a query: expected the address of AWS KMS"
type AWSKMS struct {
	// KeyID is the key's id, ARN or alias. Example: alias/payer
	// +required
	// +kubebuilder:validation:Pattern=`^[-_/:.a-zA-Z0-9]+$`
	// +kubebuilder:validation:MaxLength=2048
	KeyID string `json:"keyID"`
	// Region of the key. Default: the environment's. Example: eu-central-1
	// +optional
	// +kubebuilder:validation:Pattern=`^[-a-z0-9]+$`
	// +kubebuilder:validation:MaxLength=64
	Region string `json:"region,omitempty"`
	// Endpoint of the service. Default: the region's. Example: https://kms.example
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Endpoint string `json:"endpoint,omitempty"`
	// CredentialsSecretRef is the Secret of a shared credentials file. Default: none; the
	// identity of the pods' service account is used.
	// +optional
	CredentialsSecretRef *SecretKeyReference `json:"credentialsSecretRef,omitempty"`
}

// GCPKMS is a version of an ed25519 key of Google Cloud Key Management Service.
//
// +kubebuilder:validation:XValidation:rule="!has(self.endpoint) || self.endpoint.matches('^https://[^ @?]+$')",fieldPath=".endpoint",message="endpoint does not begin with https://, or has a space, a user or a query: expected the address of Cloud KMS"
type GCPKMS struct {
	// KeyVersion is the resource name of the key's version.
	// Example: projects/p/locations/global/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1
	// +required
	// +kubebuilder:validation:Pattern=`^projects/[^/\s]+/locations/[^/\s]+/keyRings/[^/\s]+/cryptoKeys/[^/\s]+/cryptoKeyVersions/[0-9]+$`
	// +kubebuilder:validation:MaxLength=512
	KeyVersion string `json:"keyVersion"`
	// Endpoint of the service. Default: Google's. Example: https://kms.example
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Endpoint string `json:"endpoint,omitempty"`
	// CredentialsSecretRef is the Secret of a credentials file. Default: none; the identity of
	// the pods' service account is used.
	// +optional
	CredentialsSecretRef *SecretKeyReference `json:"credentialsSecretRef,omitempty"`
}

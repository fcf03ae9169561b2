package v1alpha1

// Database is the fleet's Postgres. The operator never connects to it.
type Database struct {
	// URLSecretRef is the Secret with the database's URL,
	// postgres://user:password@host:port/name.
	// +required
	URLSecretRef SecretKeyReference `json:"urlSecretRef"`
	// CAFrom is the source, secretRef or configMapRef, of the only authorities of the database's
	// certificate, in PEM. Every connection then uses TLS, and the certificate has to name the
	// URL's host, whatever the URL's sslmode is. Default: none; the URL decides on TLS.
	// +optional
	CAFrom *CertificatesSource `json:"caFrom,omitempty"`
	// ClientCertificateSecretRef is the Secret with the relays' certificate for the database,
	// tls.crt, and its key, tls.key. Every connection then uses TLS, as with caFrom.
	// Default: none.
	// +optional
	ClientCertificateSecretRef *SecretReference `json:"clientCertificateSecretRef,omitempty"`
	// MaxConnections is the most connections that one pod opens. Default: 40.
	// +optional
	// +kubebuilder:default=40
	// +kubebuilder:validation:Minimum=4
	// +kubebuilder:validation:Maximum=1000
	MaxConnections int32 `json:"maxConnections,omitempty"`
}

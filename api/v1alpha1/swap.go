package v1alpha1

// Swap turns swaps on.
type Swap struct {
	// Router finds the routes: a server of Jupiter's swap API, version 2 or 1.
	// +required
	Router Router `json:"router"`
	// FallbackRouters are further routers, with the same API and program. Relays ask them in
	// this order, each when the router before it gave no route that can be executed.
	// Default: none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=4
	FallbackRouters []FallbackRouter `json:"fallbackRouters,omitempty"`
	// SlippageBps is how much worse the price may get, in hundredths of a percent,
	// between a quote and its execution. Default: 50, which is 0.5 %. No execution pays less
	// than the user's minimum.
	// +optional
	// +kubebuilder:default=50
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	SlippageBps int32 `json:"slippageBps,omitempty"`
	// Concurrency is how many swaps one pod executes at once.
	// Default: 64.
	// +optional
	// +kubebuilder:default=64
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	Concurrency int32 `json:"concurrency,omitempty"`
}

// Router is the swap router.
//
// +kubebuilder:validation:ExactlyOneOf=url;urlSecretRef
// +kubebuilder:validation:XValidation:rule="!has(self.url) || self.url.matches('^https?://[^ ]+$')",fieldPath=".url",message="url does not begin with http:// or https://, or has a space: expected the base URL of a swap API"
// +kubebuilder:validation:XValidation:rule="!has(self.url) || !self.url.contains('@') && !self.url.contains('?')",fieldPath=".url",message="url has a user or a query, which may contain credentials: put the URL into a Secret and name the Secret in urlSecretRef, or the key in apiKeySecretRef"
// +kubebuilder:validation:XValidation:rule="!has(self.caFrom) || !has(self.url) || self.url.startsWith('https://')",fieldPath=".caFrom",message="caFrom is set, and url does not begin with https://: only a server with TLS has a certificate; correct url, or remove caFrom"
type Router struct {
	// URL is the router's base URL, if it contains no credentials. Default: none; either url
	// or urlSecretRef is set. If the path ends with /v2, relays use v2 of Jupiter's swap API,
	// with one call for a quote and its instructions. Otherwise they use v1, with two calls.
	// Example: https://api.jup.ag/swap/v2
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url,omitempty"`
	// URLSecretRef is the Secret with a base URL that contains credentials. Default: none;
	// either url or urlSecretRef is set.
	// +optional
	URLSecretRef *SecretKeyReference `json:"urlSecretRef,omitempty"`
	// CAFrom is the source, secretRef or configMapRef, of the only authorities of the router's
	// certificate, in PEM. Default: the system's.
	// +optional
	CAFrom *CertificatesSource `json:"caFrom,omitempty"`
	// APIKeySecretRef is the Secret of the router's API key. Default: none is sent.
	// +optional
	APIKeySecretRef *SecretKeyReference `json:"apiKeySecretRef,omitempty"`
	// ProgramID is the router's program on the chain, in base58.
	// Default: Jupiter's. Example: JUP6LkbZbjS1jKKwapdHNy74zcZ3tLUZoi5QNyVTaV4
	// +optional
	// +kubebuilder:validation:Pattern=`^[1-9A-HJ-NP-Za-km-z]{32,44}$`
	// +kubebuilder:validation:MaxLength=44
	ProgramID string `json:"programID,omitempty"`
	// TimeoutMilliseconds is the longest time for one call to a router, in milliseconds.
	// Default: 5000.
	// +optional
	// +kubebuilder:default=5000
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=30000
	TimeoutMilliseconds int32 `json:"timeoutMilliseconds,omitempty"`
	// RequestsPerSecond is the most requests a second that the fleet sends to the router.
	// Default: 0, which is no limit. Example: 10
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	RequestsPerSecond *int32 `json:"requestsPerSecond,omitempty"`
}

// FallbackRouter is a swap router that relays ask when the routers before it have given no
// route.
//
// +kubebuilder:validation:ExactlyOneOf=url;urlSecretRef
// +kubebuilder:validation:XValidation:rule="!has(self.url) || self.url.matches('^https?://[^ ]+$')",fieldPath=".url",message="url does not begin with http:// or https://, or has a space: expected the base URL of a swap API"
// +kubebuilder:validation:XValidation:rule="!has(self.url) || !self.url.contains('@') && !self.url.contains('?')",fieldPath=".url",message="url has a user or a query, which may contain credentials: put the URL into a Secret and name the Secret in urlSecretRef, or the key in apiKeySecretRef"
// +kubebuilder:validation:XValidation:rule="!has(self.caFrom) || !has(self.url) || self.url.startsWith('https://')",fieldPath=".caFrom",message="caFrom is set, and url does not begin with https://: only a server with TLS has a certificate; correct url, or remove caFrom"
type FallbackRouter struct {
	// Name identifies the router in logs and metrics: lower-case letters, digits and dashes;
	// preferred is reserved for spec.swap.router. Example: second
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self != 'preferred'",message="name is preferred, which is the name of spec.swap.router in metrics: choose another one"
	Name string `json:"name"`
	// URL is the router's base URL, if it contains no credentials. Default: none;
	// either url or urlSecretRef is set. Example: https://swap.example/v2
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url,omitempty"`
	// URLSecretRef is the Secret with a base URL that contains credentials. Default: none;
	// either url or urlSecretRef is set.
	// +optional
	URLSecretRef *SecretKeyReference `json:"urlSecretRef,omitempty"`
	// CAFrom is the source, secretRef or configMapRef, of the only authorities of the router's
	// certificate, in PEM. Default: the system's.
	// +optional
	CAFrom *CertificatesSource `json:"caFrom,omitempty"`
	// APIKeySecretRef is the Secret of the router's API key. Default: none is sent.
	// +optional
	APIKeySecretRef *SecretKeyReference `json:"apiKeySecretRef,omitempty"`
	// RequestsPerSecond is the most requests a second that the fleet sends to the router.
	// Default: 0, which is no limit. Example: 10
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	RequestsPerSecond int32 `json:"requestsPerSecond,omitempty"`
}

package v1alpha1

// Swap turns swaps on.
type Swap struct {
	// Router finds the routes: a server of Jupiter's swap API, version 2 or 1.
	// +required
	Router Router `json:"router"`
	// FallbackRouters are asked one after another, in this order, when the router before
	// gave no route that can be executed. They speak the same API, for the same program.
	// Default: none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=4
	FallbackRouters []FallbackRouter `json:"fallbackRouters,omitempty"`
	// SlippageBps is how much worse the price may get, in hundredths of a percent,
	// between a quote and its execution. The user's minimum holds in any case.
	// Default: 50, which is 0.5 %.
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
type Router struct {
	// URL is the router's base URL, when it holds no credentials. Default: none;
	// either url or urlSecretRef is set. A path that ends with /v2 means v2 of Jupiter's
	// swap API, which takes one call for a swap; any other v1, which takes two.
	// Example: https://api.jup.ag/swap/v2
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url,omitempty"`
	// URLSecretRef is the Secret of a base URL that holds credentials. Default: none;
	// either url or urlSecretRef is set.
	// +optional
	URLSecretRef *SecretKeyReference `json:"urlSecretRef,omitempty"`
	// APIKeySecretRef is the Secret of the router's API key. Default: none is sent.
	// +optional
	APIKeySecretRef *SecretKeyReference `json:"apiKeySecretRef,omitempty"`
	// ProgramID is the router's program on the chain, in base58.
	// Default: Jupiter's. Example: JUP6LkbZbjS1jKKwapdHNy74zcZ3tLUZoi5QNyVTaV4
	// +optional
	// +kubebuilder:validation:Pattern=`^[1-9A-HJ-NP-Za-km-z]{32,44}$`
	// +kubebuilder:validation:MaxLength=44
	ProgramID string `json:"programID,omitempty"`
	// TimeoutMilliseconds bounds a call of the router, in milliseconds.
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

// FallbackRouter is a swap router that is asked when those before it gave no route.
//
// +kubebuilder:validation:ExactlyOneOf=url;urlSecretRef
// +kubebuilder:validation:XValidation:rule="!has(self.url) || self.url.matches('^https?://[^ ]+$')",fieldPath=".url",message="url does not begin with http:// or https://, or has a space: expected the base URL of a swap API"
// +kubebuilder:validation:XValidation:rule="!has(self.url) || !self.url.contains('@') && !self.url.contains('?')",fieldPath=".url",message="url has a user or a query, which may contain credentials: put the URL into a Secret and name the Secret in urlSecretRef, or the key in apiKeySecretRef"
type FallbackRouter struct {
	// Name identifies the router in logs and metrics, which never show its URL:
	// lower-case letters, digits and dashes, but not preferred, which is spec.swap.router.
	// Example: second
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self != 'preferred'",message="name is preferred, which is the name of spec.swap.router in metrics: choose another one"
	Name string `json:"name"`
	// URL is the router's base URL, when it holds no credentials. Default: none;
	// either url or urlSecretRef is set. Example: https://swap.example/v2
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url,omitempty"`
	// URLSecretRef is the Secret of a base URL that holds credentials. Default: none;
	// either url or urlSecretRef is set.
	// +optional
	URLSecretRef *SecretKeyReference `json:"urlSecretRef,omitempty"`
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

package v1alpha1

// Gate says what happens to the fleet while the pool is not initialised.
//
// +kubebuilder:validation:Enum=Hold;Warn
type Gate string

// The gates.
const (
	// GateHold starts no pod until the pool is initialised.
	GateHold Gate = "Hold"
	// GateWarn starts the fleet at once, with a condition.
	GateWarn Gate = "Warn"
)

// ProofAEncoding is the sign in which clients send a proof's A.
//
// +kubebuilder:validation:Enum=Auto;Plain;Negated
type ProofAEncoding string

// The encodings.
const (
	// ProofAAuto takes either sign until a finalized transaction has shown one.
	ProofAAuto ProofAEncoding = "Auto"
	// ProofAPlain takes A as the prover wrote it.
	ProofAPlain ProofAEncoding = "Plain"
	// ProofANegated takes the negation of it.
	ProofANegated ProofAEncoding = "Negated"
)

// Pool says which shielded pool the fleet serves. The program is never
// initialised by the operator.
type Pool struct {
	// Profile is what is known of the pool program: its tags, seeds, account
	// orders, fees and errors. It cannot change once the pool is initialised.
	// +required
	Profile Profile `json:"profile"`
	// ProgramID is the program's address in base58. Default: the profile's. It
	// cannot change once the pool is initialised.
	// Example: c1oak6tetxYnNfvXKFkpn1d98FxtK7B68vBQLYQpWKp
	// +optional
	// +kubebuilder:validation:Pattern=`^[1-9A-HJ-NP-Za-km-z]{32,44}$`
	// +kubebuilder:validation:MaxLength=44
	ProgramID string `json:"programID,omitempty"`
	// RootHistorySize is how many roots the program remembers. Default: the profile's.
	// Example: 100
	// +optional
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=300000
	RootHistorySize int32 `json:"rootHistorySize,omitempty"`
	// Mints are the assets that the pool takes. Default: the profile's.
	// +optional
	// +listType=map
	// +listMapKey=address
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Mints []Mint `json:"mints,omitempty"`
	// VerifyingKeyConfigMapRef is snarkjs' verification_key.json of the pool's
	// circuit.
	// +required
	VerifyingKeyConfigMapRef ConfigMapKeyReference `json:"verifyingKeyConfigMapRef"`
	// ProofAEncoding is the sign in which clients send the proof's A: Plain,
	// Negated, or Auto, which takes either until a finalized transaction has shown
	// which one the program takes. Default: Auto.
	// +optional
	// +kubebuilder:default=Auto
	ProofAEncoding ProofAEncoding `json:"proofAEncoding,omitempty"`
	// OffCurveRecipients says whether recipients without a private key, such as
	// multisig vaults, are paid: Refuse or Allow. Default: Refuse.
	// +optional
	// +kubebuilder:default=Refuse
	// +kubebuilder:validation:Enum=Refuse;Allow
	OffCurveRecipients string `json:"offCurveRecipients,omitempty"`
	// Gate says what happens while the pool is not initialised: Hold starts no pod
	// until it is, Warn starts them at once. Once open, the gate never closes.
	// Default: Hold.
	// +optional
	// +kubebuilder:default=Hold
	Gate Gate `json:"gate,omitempty"`
	// CheckIntervalSeconds is how often the pool is checked on the chain, in
	// seconds, give or take a tenth. While a fee payer is short it is 15 at most.
	// Default: 60.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=3600
	CheckIntervalSeconds int32 `json:"checkIntervalSeconds,omitempty"`
}

// Profile names a program profile: one of the relay's own, or one in a
// ConfigMap.
//
// +kubebuilder:validation:ExactlyOneOf=name;configMapRef
type Profile struct {
	// Name is a built-in profile: shield-pool-v1, or development, which is for
	// the local chain alone. Default: none; either name or configMapRef is set.
	// Example: shield-pool-v1
	// +optional
	// +kubebuilder:validation:Enum=shield-pool-v1;development
	Name string `json:"name,omitempty"`
	// ConfigMapRef is a profile as YAML, as relay probe --profile-file reads it.
	// Default: none; either name or configMapRef is set.
	// +optional
	ConfigMapRef *ConfigMapKeyReference `json:"configMapRef,omitempty"`
}

// Mint is one asset of the pool.
type Mint struct {
	// Address is the mint's, in base58.
	// Example: EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v
	// +required
	// +kubebuilder:validation:Pattern=`^[1-9A-HJ-NP-Za-km-z]{32,44}$`
	// +kubebuilder:validation:MaxLength=44
	Address string `json:"address"`
	// Field is the field element that stands for the mint in public inputs: 64
	// hexadecimal digits, lower case.
	// Example: 0000000000000000000000000000000000000000000000000000000000000001
	// +required
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	// +kubebuilder:validation:MaxLength=64
	Field string `json:"field"`
}

// Swap turns swaps on.
type Swap struct {
	// Router finds the routes: a server of the Jupiter swap API, version 1.
	// +required
	Router Router `json:"router"`
	// SlippageBps is by how many hundredths of a percent the price may get worse
	// between a quote and its execution. The user's minimum holds in any case.
	// Default: 50, which is 0.5 %.
	// +optional
	// +kubebuilder:default=50
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	SlippageBps int32 `json:"slippageBps,omitempty"`
	// Concurrency is how many swaps one pod brings to their end at once.
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
// +kubebuilder:validation:XValidation:rule="!has(self.url) || !self.url.contains('@') && !self.url.contains('?')",fieldPath=".url",message="url has a user or a query, where credentials are: put the URL into a Secret and name that in urlSecretRef, or the key in apiKeySecretRef"
type Router struct {
	// URL is the router's base URL, when it holds no credentials. Default: none;
	// either url or urlSecretRef is set. Example: https://api.jup.ag/swap/v1
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
	// RequestsPerSecond is the router's plan, in requests a second and pod.
	// Default: 0, which is no limit. Example: 10
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	RequestsPerSecond *int32 `json:"requestsPerSecond,omitempty"`
}

// ViewingKeys says how viewing keys are registered and sealed.
type ViewingKeys struct {
	// CompliancePublicKey is what viewing keys are sealed to: 64 hexadecimal
	// digits, made by relay compliance keygen on the officer's own machine. The
	// private half never enters the cluster.
	// Example: 5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb
	// +required
	// +kubebuilder:validation:Pattern=`^[0-9a-fA-F]{64}$`
	// +kubebuilder:validation:MaxLength=64
	CompliancePublicKey string `json:"compliancePublicKey"`
	// Messages are the texts whose signature by a wallet admits its viewing key.
	// Default: the profile's. Example: [Sign in to the pool]
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	Messages []string `json:"messages,omitempty"`
}

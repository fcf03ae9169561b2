package v1alpha1

// Gate says what happens to the fleet while the pool is not initialised.
//
// +kubebuilder:validation:Enum=Hold;Warn
type Gate string

// The gates.
const (
	// GateHold starts no pod until the pool is initialised.
	GateHold Gate = "Hold"
	// GateWarn starts the fleet at once. The condition PoolInitialised reports that the
	// pool is not initialised.
	GateWarn Gate = "Warn"
)

// ProofAEncoding is how clients encode point A of a proof.
//
// +kubebuilder:validation:Enum=Auto;Plain;Negated
type ProofAEncoding string

// The encodings.
const (
	// ProofAAuto accepts both encodings until a finalized transaction shows which one the
	// program accepts.
	ProofAAuto ProofAEncoding = "Auto"
	// ProofAPlain accepts A as the prover wrote it.
	ProofAPlain ProofAEncoding = "Plain"
	// ProofANegated accepts the negation of A.
	ProofANegated ProofAEncoding = "Negated"
)

// Pool says which shielded pool the fleet serves. The operator never initialises
// the pool.
type Pool struct {
	// Profile is the description of the pool program: its tags, seeds, account
	// orders, fees and errors. The profile cannot change once the pool is initialised.
	// +required
	Profile Profile `json:"profile"`
	// ProgramID is the program's address in base58. Default: the profile's. The address
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
	// VerifyingKeyConfigMapRef is the ConfigMap with snarkjs' verification_key.json
	// for the pool's circuit.
	// +required
	VerifyingKeyConfigMapRef ConfigMapKeyReference `json:"verifyingKeyConfigMapRef"`
	// ProofAEncoding is how clients encode point A of a proof: Plain, Negated or
	// Auto. Auto accepts both encodings until a finalized transaction shows which one
	// the program accepts. Default: Auto.
	// +optional
	// +kubebuilder:default=Auto
	ProofAEncoding ProofAEncoding `json:"proofAEncoding,omitempty"`
	// OffCurveRecipients says whether recipients without a private key, such as
	// multisig vaults, are paid: Refuse or Allow. Default: Refuse.
	// +optional
	// +kubebuilder:default=Refuse
	// +kubebuilder:validation:Enum=Refuse;Allow
	OffCurveRecipients string `json:"offCurveRecipients,omitempty"`
	// Gate says what happens while the shielded pool is not initialised: Hold starts no
	// pod, Warn starts the pods at once. Default: Hold. Once the operator has found the
	// shielded pool initialised, the gate stays open.
	// +optional
	// +kubebuilder:default=Hold
	Gate Gate `json:"gate,omitempty"`
	// CheckIntervalSeconds is the time between checks of the pool on the chain, in
	// seconds, plus or minus a tenth. Default: 60. While a fee payer has less than its
	// minimum balance, the time is 15 seconds at most.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=3600
	CheckIntervalSeconds int32 `json:"checkIntervalSeconds,omitempty"`
}

// Profile names a program profile: either a built-in one, or one in a ConfigMap.
//
// +kubebuilder:validation:ExactlyOneOf=name;configMapRef
type Profile struct {
	// Name is a built-in profile: shield-pool-v1, or development, which is only for
	// the local chain. Default: none; either name or configMapRef is set.
	// Example: shield-pool-v1
	// +optional
	// +kubebuilder:validation:Enum=shield-pool-v1;development
	Name string `json:"name,omitempty"`
	// ConfigMapRef is the ConfigMap with a profile in YAML, in the format of
	// `relay probe --profile-file`.
	// Default: none; either name or configMapRef is set.
	// +optional
	ConfigMapRef *ConfigMapKeyReference `json:"configMapRef,omitempty"`
}

// Mint is one asset of the pool.
type Mint struct {
	// Address is the mint's address, in base58.
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

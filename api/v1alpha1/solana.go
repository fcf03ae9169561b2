package v1alpha1

// Role is a kind of request that relays send to an RPC endpoint.
//
// +kubebuilder:validation:Enum=Read;Submit;Archive
type Role string

// The roles.
const (
	// RoleRead: the endpoint is asked for accounts, blockhashes and statuses.
	RoleRead Role = "Read"
	// RoleSubmit: the endpoint receives transactions.
	RoleSubmit Role = "Submit"
	// RoleArchive: for blocks and histories that may be old, this endpoint is asked before the
	// others.
	RoleArchive Role = "Archive"
)

// Commitment is one of Solana's commitment levels.
//
// +kubebuilder:validation:Enum=Confirmed;Finalized
type Commitment string

// The levels.
const (
	// CommitmentConfirmed: most of the stake has voted for the block.
	CommitmentConfirmed Commitment = "Confirmed"
	// CommitmentFinalized: the block can no longer be dropped.
	CommitmentFinalized Commitment = "Finalized"
)

// TransactionFormat says in which format relays send transactions.
//
// +kubebuilder:validation:Enum=Legacy;Auto;Version1
type TransactionFormat string

// The formats.
const (
	// FormatLegacy: legacy transactions, or version 0 if lookupTable is set.
	FormatLegacy TransactionFormat = "Legacy"
	// FormatAuto: version 1 for transactions that are too large for the older formats, and
	// for executions of swaps.
	FormatAuto TransactionFormat = "Auto"
	// FormatVersion1: version 1 for all transactions.
	FormatVersion1 TransactionFormat = "Version1"
)

// TipUse says which transactions pay a tip.
//
// +kubebuilder:validation:Enum=Urgent;Always
type TipUse string

// The uses.
const (
	// TipUrgent: a transaction pays the tip if an earlier attempt expired, or if little time
	// is left.
	TipUrgent TipUse = "Urgent"
	// TipAlways: all transactions pay the tip.
	TipAlways TipUse = "Always"
)

// Solana says how the chain is reached.
type Solana struct {
	// Cluster is the chain's genesis hash in base58, or the name of a public cluster:
	// mainnet-beta, devnet or testnet. The fleet never sends to a chain with another
	// genesis hash. Example: mainnet-beta
	// +required
	// +kubebuilder:validation:Pattern=`^(mainnet-beta|devnet|testnet|[1-9A-HJ-NP-Za-km-z]{32,44})$`
	// +kubebuilder:validation:MaxLength=44
	Cluster string `json:"cluster"`
	// Endpoints are Solana JSON-RPC servers. At least one has the
	// role Read, and at least one the role Submit; those with a tip do not count.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.exists(e, !has(e.tip) && (!has(e.roles) || e.roles.exists(r, r == 'Read')))",message="no endpoint has the role Read: give it to at least one without a tip, or leave roles out for all three"
	// +kubebuilder:validation:XValidation:rule="self.exists(e, !has(e.tip) && (!has(e.roles) || e.roles.exists(r, r == 'Submit')))",message="no endpoint has the role Submit: give it to at least one without a tip, or leave roles out for all three"
	Endpoints []Endpoint `json:"endpoints"`
	// Commitment is the level at which the operator reads the pool: Confirmed or
	// Finalized. Default: Confirmed. Relays always track transactions until they are
	// finalized.
	// +optional
	// +kubebuilder:default=Confirmed
	Commitment Commitment `json:"commitment,omitempty"`
	// PriorityFee is what is paid beyond the signature's fee, so that transactions
	// land when blocks are full.
	// +optional
	// +kubebuilder:default={}
	PriorityFee PriorityFee `json:"priorityFee,omitzero"`
	// LookupTable is the address, in base58, of an address lookup table with the
	// pool's accounts, which leaves more room for notes.
	// Default: none, and legacy transactions.
	// Example: 4wmSnQ6Sm1CzVGzsUmX6CKRwnzuG4NEsyRYJpYQwRk4W
	// +optional
	// +kubebuilder:validation:Pattern=`^[1-9A-HJ-NP-Za-km-z]{32,44}$`
	// +kubebuilder:validation:MaxLength=44
	LookupTable string `json:"lookupTable,omitempty"`
	// TransactionFormat is Legacy (or version 0 with a lookup table), Auto (version 1 for
	// longer notes and for swaps) or Version1 (for all). Relays use version 1 only once the
	// network has activated it. Default: Legacy.
	// +optional
	// +kubebuilder:default=Legacy
	TransactionFormat TransactionFormat `json:"transactionFormat,omitempty"`
}

// The validation rules for URLs are on the types, not on the fields. The API server's
// message for a field's rule repeats the field's value, which may contain a credential.

// Endpoint is one RPC server.
//
// +kubebuilder:validation:ExactlyOneOf=url;urlSecretRef
// +kubebuilder:validation:XValidation:rule="!has(self.url) || self.url.matches('^https?://[^ ]+$')",fieldPath=".url",message="url does not begin with http:// or https://, or has a space: give the HTTP URL, from which the relay derives the ws:// or wss:// URL of notifications"
// +kubebuilder:validation:XValidation:rule="!has(self.url) || !self.url.contains('@') && !self.url.contains('?')",fieldPath=".url",message="url has a user or a query, which may contain credentials: put the URL into a Secret and name the Secret in urlSecretRef"
// +kubebuilder:validation:XValidation:rule="!has(self.caFrom) || !has(self.url) || self.url.startsWith('https://')",fieldPath=".caFrom",message="caFrom is set, and url does not begin with https://: only a server with TLS has a certificate; correct url, or remove caFrom"
// +kubebuilder:validation:XValidation:rule="!has(self.tip) || has(self.roles) && self.roles == ['Submit']",fieldPath=".roles",message="endpoint has a tip, so it only receives transactions: set roles to [Submit]"
type Endpoint struct {
	// Name identifies the endpoint in logs, metrics and conditions: lower-case letters, digits
	// and dashes. Example: paid
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=32
	Name string `json:"name"`
	// URL is the server's URL, if it contains no credentials. Default: none; either url
	// or urlSecretRef is set. Example: https://api.mainnet-beta.solana.com
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url,omitempty"`
	// URLSecretRef is the Secret with a URL that contains credentials. Default: none;
	// either url or urlSecretRef is set.
	// +optional
	URLSecretRef *SecretKeyReference `json:"urlSecretRef,omitempty"`
	// CAFrom is the source, secretRef or configMapRef, of the only authorities of the server's
	// certificate, in PEM. The operator trusts them, too. Default: the system's.
	// +optional
	CAFrom *CertificatesSource `json:"caFrom,omitempty"`
	// WebSocket says whether relays subscribe to the endpoint's notifications: Enabled or
	// Disabled. Default: Enabled. Relays use the server's URL with ws:// in place of
	// http://, or with wss:// in place of https://.
	// +optional
	// +kubebuilder:default=Enabled
	// +kubebuilder:validation:Enum=Enabled;Disabled
	WebSocket string `json:"webSocket,omitempty"`
	// Roles are what relays ask the endpoint for: Read, Submit and Archive (old blocks and
	// histories). Default: all three; with a tip, [Submit] is required.
	// Example: [Read, Submit]
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	Roles []Role `json:"roles,omitempty"`
	// RequestsPerSecond is the most requests a second that one pod sends to the endpoint.
	// Default: no limit. Example: 50
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	RequestsPerSecond int32 `json:"requestsPerSecond,omitempty"`
	// Tip is for a service that puts transactions on the chain for a tip. The endpoint
	// is sent transactions that pay the tip to one of the accounts, and asked nothing.
	// Default: none.
	// +optional
	Tip *Tip `json:"tip,omitempty"`
}

// Tip is what transactions pay to an endpoint's service.
//
// +kubebuilder:validation:XValidation:rule="self.minLamports <= self.maxLamports",message="tip.minLamports is above tip.maxLamports: lower the one or raise the other"
type Tip struct {
	// Accounts are the service's tip accounts, in base58.
	// Example: [4ACfpUFoaSD9bfPdeu6DBt89gB6ENTeHBXCAi87NhDEE]
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:Pattern=`^[1-9A-HJ-NP-Za-km-z]{32,44}$`
	// +kubebuilder:validation:items:MaxLength=44
	Accounts []string `json:"accounts"`
	// MinLamports is a submission's first tip, in lamports; each tip in vain doubles it.
	// Example: 5000
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000000
	MinLamports int64 `json:"minLamports"`
	// MaxLamports is the highest tip, in lamports. Example: 100000
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000000
	MaxLamports int64 `json:"maxLamports"`
	// Use is Urgent (only transactions short of time, or after an attempt in vain, pay) or
	// Always. Default: Urgent.
	// +optional
	// +kubebuilder:default=Urgent
	Use TipUse `json:"use,omitempty"`
}

// PriorityFee is paid for each compute unit, in micro-lamports.
//
// +kubebuilder:validation:XValidation:rule="!has(self.floorMicroLamports) || !has(self.capMicroLamports) || self.floorMicroLamports <= self.capMicroLamports",message="priorityFee.floorMicroLamports is above priorityFee.capMicroLamports: lower the floor or raise the cap"
type PriorityFee struct {
	// Percentile of recent fees to pay, from 0 to 100. Default: 40.
	// +optional
	// +kubebuilder:default=40
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Percentile *int32 `json:"percentile,omitempty"`
	// FloorMicroLamports is the lowest fee, in micro-lamports a compute unit. Default: 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000
	FloorMicroLamports *int64 `json:"floorMicroLamports,omitempty"`
	// CapMicroLamports is the highest fee, in micro-lamports a compute unit. Default: 1000000.
	// +optional
	// +kubebuilder:default=1000000
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000
	CapMicroLamports *int64 `json:"capMicroLamports,omitempty"`
	// MaxEarlyFeesLamports is the most that a submission's transactions may cost in vain, in
	// lamports, when it is signed again, at a higher fee, before the earlier one is dead. 0
	// waits until it is dead. Default: 50000. Example: 20000.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	MaxEarlyFeesLamports *int64 `json:"maxEarlyFeesLamports,omitempty"` // defaulted by the relay: a default here would replace the pods of running fleets
}

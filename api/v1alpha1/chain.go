package v1alpha1

// Role is what an RPC endpoint is asked for.
//
// +kubebuilder:validation:Enum=read;submit;archive
type Role string

// The roles.
const (
	RoleRead    Role = "read"
	RoleSubmit  Role = "submit"
	RoleArchive Role = "archive"
)

// Solana says how the chain is reached.
type Solana struct {
	// Cluster is the genesis hash that the chain must have, in base58, or
	// mainnet-beta, devnet or testnet for that of a public cluster. A fleet never
	// sends to another.
	// +required
	// +kubebuilder:validation:Pattern=`^(mainnet-beta|devnet|testnet|[1-9A-HJ-NP-Za-km-z]{32,44})$`
	// +kubebuilder:validation:MaxLength=44
	Cluster string `json:"cluster"`
	// Endpoints are Solana JSON-RPC servers. At least one reads and one submits.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.exists(e, !has(e.roles) || e.roles.exists(r, r == 'read'))",message="no endpoint has the role read: give it to at least one, or leave roles out for all three"
	// +kubebuilder:validation:XValidation:rule="self.exists(e, !has(e.roles) || e.roles.exists(r, r == 'submit'))",message="no endpoint has the role submit: give it to at least one, or leave roles out for all three"
	Endpoints []Endpoint `json:"endpoints"`
	// Commitment is the level at which the operator reads the pool. Relays follow
	// each transaction from confirmed to finalized in any case.
	// +optional
	// +kubebuilder:default=confirmed
	// +kubebuilder:validation:Enum=confirmed;finalized
	Commitment string `json:"commitment,omitempty"`
	// PriorityFee is what is paid beyond the signature's fee.
	// +optional
	PriorityFee PriorityFee `json:"priorityFee,omitempty"`
	// LookupTable is the address, in base58, of an address lookup table with the
	// pool's accounts; transactions that use it leave more room for notes.
	// Default: none, and legacy transactions.
	// +optional
	// +kubebuilder:validation:Pattern=`^[1-9A-HJ-NP-Za-km-z]{32,44}$`
	// +kubebuilder:validation:MaxLength=44
	LookupTable string `json:"lookupTable,omitempty"`
}

// Endpoint is one RPC server.
//
// +kubebuilder:validation:ExactlyOneOf=url;urlFrom
type Endpoint struct {
	// Name is the endpoint's in logs, metrics and conditions, which never show its URL.
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=40
	Name string `json:"name"`
	// URL is the server's, when it holds no credentials.
	// Example: https://api.mainnet-beta.solana.com
	// +optional
	// +kubebuilder:validation:Pattern=`^https?://[^\s@]+$`
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url,omitempty"`
	// URLFrom is the Secret of the URL.
	// +optional
	URLFrom *SecretKey `json:"urlFrom,omitempty"`
	// WebSocket says whether notifications are subscribed to, at the same address.
	// +optional
	// +kubebuilder:default=Enabled
	// +kubebuilder:validation:Enum=Enabled;Disabled
	WebSocket string `json:"webSocket,omitempty"`
	// Roles are what the endpoint is asked for. Default: all three.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	Roles []Role `json:"roles,omitempty"`
	// RequestsPerSecond is the server's plan, for each pod. Default: no limit.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	RequestsPerSecond int32 `json:"requestsPerSecond,omitempty"`
}

// PriorityFee is paid by the compute unit, in micro-lamports.
//
// +kubebuilder:validation:XValidation:rule="!has(self.floor) || !has(self.cap) || self.floor <= self.cap",message="priorityFee.floor is above priorityFee.cap: lower the floor or raise the cap"
type PriorityFee struct {
	// Percentile of recent fees to pay.
	// +optional
	// +kubebuilder:default=50
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Percentile *int32 `json:"percentile,omitempty"`
	// Floor is the least, in micro-lamports a compute unit.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000
	Floor *int64 `json:"floor,omitempty"`
	// Cap is the most, in micro-lamports a compute unit.
	// +optional
	// +kubebuilder:default=1000000
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000
	Cap *int64 `json:"cap,omitempty"`
}

// Database is the fleet's Postgres. The operator never connects to it.
type Database struct {
	// URLFrom is the Secret of the URL, postgres://user:password@host:port/name.
	// +required
	URLFrom SecretKey `json:"urlFrom"`
	// MaxConnections is the most that one pod opens.
	// +optional
	// +kubebuilder:default=40
	// +kubebuilder:validation:Minimum=4
	// +kubebuilder:validation:Maximum=1000
	MaxConnections int32 `json:"maxConnections,omitempty"`
}

// FeePayers are the keys that pay network fees and rent: existing Secrets, or
// keys that the operator makes.
//
// +kubebuilder:validation:ExactlyOneOf=secrets;generate
// +kubebuilder:validation:XValidation:rule="!has(self.rotation) || has(self.generate)",message="rotation is for generated keys: to replace keys of your own, change the list of secrets, or use feePayers.generate"
// +kubebuilder:validation:XValidation:rule="!has(self.minimumBalance) || !has(self.targetBalance) || self.minimumBalance <= self.targetBalance",message="minimumBalance is above targetBalance: a payer would be short as soon as it is funded"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.rotation) || has(self.rotation) && self.rotation.revision >= oldSelf.rotation.revision && self.rotation.revision <= oldSelf.rotation.revision + 1",message="rotation.revision goes up by one at a time, never down or away: keys that were retired are not used again"
// +kubebuilder:validation:XValidation:rule="has(oldSelf.rotation) || !has(self.rotation) || !has(oldSelf.generate) || self.rotation.revision <= 1",message="rotation.revision goes up by one at a time: the first rotation is to revision 1"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.generate) || !has(self.generate) || self.generate.count >= oldSelf.generate.count || has(self.rotation) && self.rotation.revision > (has(oldSelf.rotation) ? oldSelf.rotation.revision : 0)",message="generate.count goes down only together with a rotation: raise rotation.revision by one in the same change, which moves the funds"
type FeePayers struct {
	// Secrets hold existing keys: each a JSON array of 64 numbers or base58, as
	// relay keygen writes it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Secrets []SecretKey `json:"secrets,omitempty"`
	// Generate has the operator make keys, in Secrets that nobody owns and that
	// nobody deletes.
	// +optional
	Generate *GeneratedKeys `json:"generate,omitempty"`
	// MinimumBalance is what a payer must hold, in lamports, to be used.
	// +optional
	// +kubebuilder:default=50000000
	// +kubebuilder:validation:Minimum=5000000
	// +kubebuilder:validation:Maximum=1000000000000000
	MinimumBalance *int64 `json:"minimumBalance,omitempty"`
	// TargetBalance is what a payer is to be funded to, in lamports.
	// +optional
	// +kubebuilder:default=1000000000
	// +kubebuilder:validation:Minimum=5000000
	// +kubebuilder:validation:Maximum=1000000000000000
	TargetBalance *int64 `json:"targetBalance,omitempty"`
	// SpendCaps bound what the whole fleet spends.
	// +optional
	SpendCaps SpendCaps `json:"spendCaps,omitempty"`
	// Rotation replaces generated keys by new ones.
	// +optional
	Rotation *Rotation `json:"rotation,omitempty"`
}

// GeneratedKeys are made by the operator.
type GeneratedKeys struct {
	// Count is how many.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=32
	Count int32 `json:"count"`
}

// Rotation replaces the generated keys: new ones are made and funded from the
// old, the fleet uses the new, and once nothing of the old can land any more,
// what is left is swept to the new and the old are retired.
type Rotation struct {
	// Revision of the keys. Raising it by one starts a rotation; it never goes
	// down. Keys of a RelayPool without rotation have revision 0.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Revision int32 `json:"revision"`
}

// SpendCaps bound spending, in lamports; above one, new work is refused.
type SpendCaps struct {
	// Hour is the most that is spent in any 60 minutes. 0 is no cap.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000000000
	Hour int64 `json:"hour,omitempty"`
	// Day is the most that is spent in any 24 hours. 0 is no cap.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000000000
	Day int64 `json:"day,omitempty"`
	// TransfersDay is the most that is spent on transfers, which pay the pool no
	// fee, in any 24 hours. 0 is no cap.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000000000
	TransfersDay int64 `json:"transfersDay,omitempty"`
}

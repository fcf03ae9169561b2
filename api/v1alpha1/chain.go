package v1alpha1

// Role is what an RPC endpoint is asked for.
//
// +kubebuilder:validation:Enum=Read;Submit;Archive
type Role string

// The roles.
const (
	// RoleRead is asked for accounts, blockhashes and statuses.
	RoleRead Role = "Read"
	// RoleSubmit is sent transactions.
	RoleSubmit Role = "Submit"
	// RoleArchive is asked first for what may be old: blocks and histories.
	RoleArchive Role = "Archive"
)

// Commitment is a level of the chain's commitment.
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

// Solana says how the chain is reached.
type Solana struct {
	// Cluster is the genesis hash that the chain must have, in base58, or
	// mainnet-beta, devnet or testnet for that of a public cluster. A fleet never
	// sends to another. Example: mainnet-beta
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
	// +kubebuilder:validation:XValidation:rule="self.exists(e, !has(e.roles) || e.roles.exists(r, r == 'Read'))",message="no endpoint has the role Read: give it to at least one, or leave roles out for all three"
	// +kubebuilder:validation:XValidation:rule="self.exists(e, !has(e.roles) || e.roles.exists(r, r == 'Submit'))",message="no endpoint has the role Submit: give it to at least one, or leave roles out for all three"
	Endpoints []Endpoint `json:"endpoints"`
	// Commitment is the level at which the operator reads the pool: Confirmed or
	// Finalized. Relays follow each transaction from confirmed to finalized in any
	// case. Default: Confirmed.
	// +optional
	// +kubebuilder:default=Confirmed
	Commitment Commitment `json:"commitment,omitempty"`
	// PriorityFee is what is paid beyond the signature's fee, so that transactions
	// land when blocks are full.
	// +optional
	// +kubebuilder:default={}
	PriorityFee PriorityFee `json:"priorityFee,omitzero"`
	// LookupTable is the address, in base58, of an address lookup table with the
	// pool's accounts; transactions that use it leave more room for notes.
	// Default: none, and legacy transactions.
	// Example: 4wmSnQ6Sm1CzVGzsUmX6CKRwnzuG4NEsyRYJpYQwRk4W
	// +optional
	// +kubebuilder:validation:Pattern=`^[1-9A-HJ-NP-Za-km-z]{32,44}$`
	// +kubebuilder:validation:MaxLength=44
	LookupTable string `json:"lookupTable,omitempty"`
}

// The rules of URLs stand at the types rather than at the fields, because there
// the API server's message would repeat the value, which may be a credential.

// Endpoint is one RPC server.
//
// +kubebuilder:validation:ExactlyOneOf=url;urlSecretRef
// +kubebuilder:validation:XValidation:rule="!has(self.url) || self.url.matches('^https?://[^ ]+$')",fieldPath=".url",message="url does not begin with http:// or https://, or has a space: notifications find the address of ws or wss by themselves"
// +kubebuilder:validation:XValidation:rule="!has(self.url) || !self.url.contains('@') && !self.url.contains('?')",fieldPath=".url",message="url has a user or a query, where credentials are: put the URL into a Secret and name that in urlSecretRef"
type Endpoint struct {
	// Name is the endpoint's in logs, metrics and conditions, which never show its
	// URL: lower-case letters, digits and dashes. Example: paid
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=32
	Name string `json:"name"`
	// URL is the server's, when it holds no credentials. Default: none; either url
	// or urlSecretRef is set. Example: https://api.mainnet-beta.solana.com
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url,omitempty"`
	// URLSecretRef is the Secret of a URL that holds credentials. Default: none;
	// either url or urlSecretRef is set.
	// +optional
	URLSecretRef *SecretKeyReference `json:"urlSecretRef,omitempty"`
	// WebSocket says whether notifications are subscribed to, at the same address
	// by ws or wss: Enabled or Disabled. Default: Enabled.
	// +optional
	// +kubebuilder:default=Enabled
	// +kubebuilder:validation:Enum=Enabled;Disabled
	WebSocket string `json:"webSocket,omitempty"`
	// Roles are what the endpoint is asked for: Read, Submit, Archive (blocks and
	// histories of long ago). Default: all three. Example: [Read, Submit]
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	Roles []Role `json:"roles,omitempty"`
	// RequestsPerSecond is the server's plan, in requests a second and pod.
	// Default: no limit. Example: 50
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	RequestsPerSecond int32 `json:"requestsPerSecond,omitempty"`
}

// PriorityFee is paid by the compute unit, in micro-lamports.
//
// +kubebuilder:validation:XValidation:rule="!has(self.floorMicroLamports) || !has(self.capMicroLamports) || self.floorMicroLamports <= self.capMicroLamports",message="priorityFee.floorMicroLamports is above priorityFee.capMicroLamports: lower the floor or raise the cap"
type PriorityFee struct {
	// Percentile of recent fees to pay, from 0 to 100. Default: 50.
	// +optional
	// +kubebuilder:default=50
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Percentile *int32 `json:"percentile,omitempty"`
	// FloorMicroLamports is the least, in micro-lamports a compute unit. Default: 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000
	FloorMicroLamports *int64 `json:"floorMicroLamports,omitempty"`
	// CapMicroLamports is the most, in micro-lamports a compute unit. Default: 1000000.
	// +optional
	// +kubebuilder:default=1000000
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000
	CapMicroLamports *int64 `json:"capMicroLamports,omitempty"`
}

// Database is the fleet's Postgres. The operator never connects to it.
type Database struct {
	// URLSecretRef is the Secret of the URL,
	// postgres://user:password@host:port/name.
	// +required
	URLSecretRef SecretKeyReference `json:"urlSecretRef"`
	// MaxConnections is the most that one pod opens. Default: 40.
	// +optional
	// +kubebuilder:default=40
	// +kubebuilder:validation:Minimum=4
	// +kubebuilder:validation:Maximum=1000
	MaxConnections int32 `json:"maxConnections,omitempty"`
}

// FeePayers are the keys that pay network fees and rent: existing Secrets, or
// keys that the operator makes.
//
// +kubebuilder:validation:ExactlyOneOf=secretRefs;generate
// +kubebuilder:validation:XValidation:rule="!has(self.rotation) || has(self.generate)",message="rotation is for generated keys: to replace keys of your own, change the list secretRefs, or use feePayers.generate"
// +kubebuilder:validation:XValidation:rule="!has(self.minimumBalanceLamports) || !has(self.targetBalanceLamports) || self.minimumBalanceLamports <= self.targetBalanceLamports",message="minimumBalanceLamports is above targetBalanceLamports: a payer would be short as soon as it is funded"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.rotation) || has(self.rotation) && self.rotation.revision >= oldSelf.rotation.revision && self.rotation.revision <= oldSelf.rotation.revision + 1",message="rotation.revision goes up by one at a time, never down or away: keys that were retired are not used again"
// +kubebuilder:validation:XValidation:rule="has(oldSelf.rotation) || !has(self.rotation) || !has(oldSelf.generate) || self.rotation.revision <= 1",message="rotation.revision goes up by one at a time: the first rotation is to revision 1"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.generate) || !has(self.generate) || self.generate.count >= oldSelf.generate.count || has(self.rotation) && self.rotation.revision > (has(oldSelf.rotation) ? oldSelf.rotation.revision : 0)",message="generate.count goes down only together with a rotation: raise rotation.revision by one in the same change, which moves the funds"
type FeePayers struct {
	// SecretRefs are existing keys: each a JSON array of 64 numbers or base58, as
	// relay keygen writes it. Default: none; either secretRefs or generate is set.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	SecretRefs []SecretKeyReference `json:"secretRefs,omitempty"`
	// Generate has the operator make keys, in Secrets that nobody owns and that
	// nobody deletes. Default: none; either secretRefs or generate is set.
	// +optional
	Generate *GeneratedKeys `json:"generate,omitempty"`
	// MinimumBalanceLamports is what a payer must hold, in lamports, to be used.
	// Default: 50000000, which is 0.05 SOL.
	// +optional
	// +kubebuilder:default=50000000
	// +kubebuilder:validation:Minimum=5000000
	// +kubebuilder:validation:Maximum=1000000000000000
	MinimumBalanceLamports *int64 `json:"minimumBalanceLamports,omitempty"`
	// TargetBalanceLamports is what a payer is to be funded to, in lamports.
	// Default: 1000000000, which is 1 SOL.
	// +optional
	// +kubebuilder:default=1000000000
	// +kubebuilder:validation:Minimum=5000000
	// +kubebuilder:validation:Maximum=1000000000000000
	TargetBalanceLamports *int64 `json:"targetBalanceLamports,omitempty"`
	// SpendCaps bound what the whole fleet spends. Default: one on transfers alone.
	// +optional
	SpendCaps SpendCaps `json:"spendCaps,omitzero"`
	// Rotation replaces generated keys by new ones. Once set it stays, and goes
	// up: for keys of your own make another RelayPool. Default: none, and the keys
	// of revision 0.
	// +optional
	Rotation *Rotation `json:"rotation,omitempty"`
}

// GeneratedKeys are made by the operator.
type GeneratedKeys struct {
	// Count is how many keys pay. A fleet spreads its transactions over them; two
	// are enough to go on while one is short. Example: 4
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
	// down. Keys of a RelayPool without rotation have revision 0. Example: 1
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Revision int32 `json:"revision"`
}

// SpendCaps bound spending, in lamports; above one, new work is refused.
//
// +kubebuilder:validation:XValidation:rule="!has(self.hourLamports) || self.hourLamports == 0 || self.hourLamports >= 1786760",fieldPath=".hourLamports",message="spendCaps.hourLamports is below the 1786760 lamports that one transaction costs: raise it, or set 0 for no cap"
// +kubebuilder:validation:XValidation:rule="!has(self.dayLamports) || self.dayLamports == 0 || self.dayLamports >= 1786760",fieldPath=".dayLamports",message="spendCaps.dayLamports is below the 1786760 lamports that one transaction costs: raise it, or set 0 for no cap"
// +kubebuilder:validation:XValidation:rule="!has(self.transfersDayLamports) || self.transfersDayLamports == 0 || self.transfersDayLamports >= 1786760",fieldPath=".transfersDayLamports",message="spendCaps.transfersDayLamports is below the 1786760 lamports that one transaction costs: raise it, or set 0 for no cap"
type SpendCaps struct {
	// HourLamports is the most that is spent in any 60 minutes, in lamports.
	// Default: 0, which is no cap. Example: 2000000000
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000000000
	HourLamports int64 `json:"hourLamports,omitempty"`
	// DayLamports is the most that is spent in any 24 hours, in lamports.
	// Default: 0, which is no cap. Example: 20000000000
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000000000
	DayLamports int64 `json:"dayLamports,omitempty"`
	// TransfersDayLamports is the most that is spent on transfers, which pay the pool no
	// fee, in any 24 hours, in lamports; 0 is no cap. Default: the relay's own,
	// 1000000000, which pays for about 550. Example: 5000000000
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000000000
	TransfersDayLamports *int64 `json:"transfersDayLamports,omitempty"`
}

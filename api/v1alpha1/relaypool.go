package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RelayPool is a fleet of relays that serves one shielded pool: pods that take
// clients' proofs, pay the network's fee and put the transactions on the chain.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=rp,categories=relaypool
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Ready-Pods",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Desired-Pods",type=integer,JSONPath=`.status.desiredReplicas`
// +kubebuilder:printcolumn:name="Backlog",type=integer,JSONPath=`.status.backlog`
// +kubebuilder:printcolumn:name="Initialised",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="PoolInitialised")].status`
// +kubebuilder:printcolumn:name="Funded",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="FeePayersFunded")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.initialisedAt) || !has(oldSelf.spec.pool.profile.name) && !has(oldSelf.spec.pool.profile.configMapRef) || self.spec.pool.profile == oldSelf.spec.pool.profile",message="spec.pool.profile cannot change once the pool is initialised: make another RelayPool for another program"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.initialisedAt) || has(self.spec.pool.programID) == has(oldSelf.spec.pool.programID) && (!has(self.spec.pool.programID) || self.spec.pool.programID == oldSelf.spec.pool.programID)",message="spec.pool.programID cannot change once the pool is initialised: make another RelayPool for another program"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 40",message="metadata.name has more than 40 characters: names of owned objects are made from it"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must begin with a letter and hold lower-case letters, digits and dashes only: a Service has the same name"
type RelayPool struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	// +required
	Spec RelayPoolSpec `json:"spec"`
	// Status is what the operator found. Its default makes tools that use kstatus, such as Flux,
	// wait for the operator's first report.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status RelayPoolStatus `json:"status,omitzero"`
}

// RelayPoolList is a list of RelayPools.
//
// +kubebuilder:object:root=true
type RelayPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RelayPool `json:"items"`
}

// RelayPoolSpec declares a fleet.
//
// +kubebuilder:validation:XValidation:rule="!has(self.swap) || !has(self.networkPolicy) || has(self.networkPolicy.router) && self.networkPolicy.router.size() > 0",message="networkPolicy.router is missing: with swaps on, the pods have to reach the router"
// +kubebuilder:validation:XValidation:rule="!(has(self.replicas) && has(self.autoscaling))",message="replicas and autoscaling exclude each other: leave replicas out and set autoscaling.minReplicas, or remove autoscaling"
type RelayPoolSpec struct {
	// Image is the relay's container image. Default: the image that the operator
	// was installed with. Example: registry.example/relaypool/relay:0.1.0
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`
	// Replicas is the number of relay pods, if autoscaling is not set. Default: 2 for a new
	// fleet; the operator does not change the number later. Example: 3
	// kubectl scale writes this field.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=200
	Replicas *int32 `json:"replicas,omitempty"`
	// Concurrency is how many submissions one pod has in flight. Default: 256.
	// +optional
	// +kubebuilder:default=256
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	Concurrency int32 `json:"concurrency,omitempty"`
	// Paused stops the operator from changing anything that belongs to this
	// RelayPool. The operator still reports the status, and the pods keep working.
	// Default: false.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// Pool says which shielded pool the fleet serves.
	// +required
	Pool Pool `json:"pool"`
	// Solana says how the chain is reached.
	// +required
	Solana Solana `json:"solana"`
	// Database is the fleet's Postgres.
	// +required
	Database Database `json:"database"`
	// FeePayers are the keys that pay network fees and rent.
	// +required
	FeePayers FeePayers `json:"feePayers"`
	// Swap turns swaps on, and says which router finds their routes. Default: no
	// swaps are taken.
	// +optional
	Swap *Swap `json:"swap,omitempty"`
	// ViewingKeys says how viewing keys are registered, and to which key they are sealed.
	// +required
	ViewingKeys ViewingKeys `json:"viewingKeys"`
	// API says how clients are served.
	// +optional
	// +kubebuilder:default={}
	API API `json:"api,omitzero"`
	// Autoscaling sizes the fleet by its backlog. Default: none, and replicas applies.
	// +optional
	Autoscaling *Autoscaling `json:"autoscaling,omitempty"`
	// Monitoring makes objects for the Prometheus operator, where its CRDs exist.
	// +optional
	// +kubebuilder:default={}
	Monitoring Monitoring `json:"monitoring,omitzero"`
	// NetworkPolicy confines the pods' traffic. Default: no policy is made.
	// +optional
	NetworkPolicy *NetworkPolicy `json:"networkPolicy,omitempty"`
	// Template adds settings to the pods, such as labels, resources and tolerations.
	// +optional
	// +kubebuilder:default={}
	Template Template `json:"template,omitzero"`
}

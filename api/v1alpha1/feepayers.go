package v1alpha1

// FeePayers are the keys that pay network fees and rent: keys in existing Secrets, keys that
// the operator makes, and keys in key services. All that are set are used.
//
// +kubebuilder:validation:AtLeastOneOf=secretRefs;generate;signers
// +kubebuilder:validation:XValidation:rule="!has(self.rotation) || has(self.generate)",message="rotation is for generated keys: to replace keys of your own, change the list secretRefs, or use feePayers.generate"
// +kubebuilder:validation:XValidation:rule="!has(self.minimumBalanceLamports) || !has(self.targetBalanceLamports) || self.minimumBalanceLamports <= self.targetBalanceLamports",message="minimumBalanceLamports is above targetBalanceLamports: a payer would be short as soon as it is funded"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.rotation) || has(self.rotation) && self.rotation.revision >= oldSelf.rotation.revision && self.rotation.revision <= oldSelf.rotation.revision + 1",message="rotation.revision can only be raised by one, and cannot be lowered or removed: keys that were retired are not used again"
// +kubebuilder:validation:XValidation:rule="has(oldSelf.rotation) || !has(self.rotation) || !has(oldSelf.generate) || self.rotation.revision <= 1",message="rotation.revision can only be raised by one: the first rotation is to revision 1"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.generate) || !has(self.generate) || self.generate.count >= oldSelf.generate.count || has(self.rotation) && self.rotation.revision > (has(oldSelf.rotation) ? oldSelf.rotation.revision : 0)",message="generate.count goes down only together with a rotation: raise rotation.revision by one in the same change, which moves the funds"
type FeePayers struct {
	// SecretRefs are the Secrets of existing keys: JSON arrays of 64 numbers, as
	// `relay keygen` writes them, or base58. Default: none; generate or signers is set.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	SecretRefs []SecretKeyReference `json:"secretRefs,omitempty"`
	// Generate makes the operator create keys. Their Secrets have no owner, and the
	// operator never deletes them. Default: none; secretRefs or signers is set.
	// +optional
	Generate *GeneratedKeys `json:"generate,omitempty"`
	// Signers are fee payers whose keys stay in key services. Default: none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Signers []Signer `json:"signers,omitempty"`
	// MinimumBalanceLamports is what a payer must hold, in lamports, to be used.
	// Default: 50000000, which is 0.05 SOL.
	// +optional
	// +kubebuilder:default=50000000
	// +kubebuilder:validation:Minimum=5000000
	// +kubebuilder:validation:Maximum=1000000000000000
	MinimumBalanceLamports *int64 `json:"minimumBalanceLamports,omitempty"`
	// TargetBalanceLamports is the balance to which a payer is to be funded, in lamports.
	// Default: 1000000000, which is 1 SOL.
	// +optional
	// +kubebuilder:default=1000000000
	// +kubebuilder:validation:Minimum=5000000
	// +kubebuilder:validation:Maximum=1000000000000000
	TargetBalanceLamports *int64 `json:"targetBalanceLamports,omitempty"`
	// SpendCaps limit what the whole fleet spends. Default: a cap on transfers only.
	// +optional
	SpendCaps SpendCaps `json:"spendCaps,omitzero"`
	// Rotation replaces generated keys by new ones. Once set, it cannot be removed, and
	// its revision only goes up. To use keys of your own instead, make another RelayPool.
	// Default: none, and the keys of revision 0.
	// +optional
	Rotation *Rotation `json:"rotation,omitempty"`
}

// GeneratedKeys are keys that the operator makes.
type GeneratedKeys struct {
	// Count is the number of keys. With two or more, the fleet continues while one lacks SOL.
	// Example: 4. The fleet spreads its transactions over them.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=32
	Count int32 `json:"count"`
	// Backup says how copies of the keys are asked for. Somebody who has copied a key's Secret
	// acknowledges it by the annotation relaypool.dev/backed-up, whose value is the key's address.
	// The condition KeysBackedUp names the Secrets without it. Default: none, and no condition.
	// +optional
	Backup *KeyBackup `json:"backup,omitempty"`
}

// KeyBackup asks for copies of generated keys.
type KeyBackup struct {
	// Required keeps keys unfunded until a copy is acknowledged: a rotation waits, and the
	// condition FeePayersFunded asks for the copy before the lamports. Default: false.
	// +optional
	Required bool `json:"required,omitempty"`
}

// Rotation replaces the generated keys. The operator makes new keys, funds them from
// the old keys, and lets the fleet use them. Once no transaction of the old keys can
// land any more, it sweeps their remaining funds to the new keys and retires the old
// keys.
type Rotation struct {
	// Revision of the keys. Raising it by one starts a rotation; it never goes
	// down. Example: 1. Keys of a RelayPool without rotation have revision 0.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Revision int32 `json:"revision"`
}

// SpendCaps limit spending, in lamports. Once a cap is reached, relays refuse new work.
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
	// TransfersDayLamports is the most that is spent on transfers in any 24 hours, in
	// lamports; 0 is no cap. Default: the relay's, 1000000000, for about 760 transfers.
	// Example: 5000000000. Transfers pay the pool no fee.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000000000
	TransfersDayLamports *int64 `json:"transfersDayLamports,omitempty"`
}

// Package onchain defines values that are read from and written to the chain. It does no
// I/O, so that domain packages need not import the client.
package onchain

import (
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Commitment is a commitment level of Solana: processed, confirmed or finalized.
type Commitment string

// The commitment levels, from the least final to the one that no fork rolls back.
const (
	Processed Commitment = "processed"
	Confirmed Commitment = "confirmed"
	Finalized Commitment = "finalized"
)

// AtLeast reports whether c is at least as final as least. An unknown commitment is less final
// than all three levels.
func (c Commitment) AtLeast(least Commitment) bool { return c.rank() >= least.rank() }

func (c Commitment) rank() int {
	switch c {
	case Processed:
		return 1
	case Confirmed:
		return 2
	case Finalized:
		return 3
	default:
		return 0
	}
}

// Account is an account that exists.
type Account struct {
	Owner    solana.PublicKey
	Lamports uint64
	Data     []byte
	// Executable is true for programs.
	Executable bool
}

// Blockhash is a recent blockhash: it was the newest at Slot, and a transaction that names
// it can land up to block height LastValidBlockHeight.
type Blockhash struct {
	Hash                       solana.Hash
	Slot, LastValidBlockHeight uint64
}

// Tip is the newest block of a commitment.
type Tip struct{ Slot, Height uint64 }

// Status is the status of a signature that the chain knows: the slot of the transaction,
// its commitment level, and its error (nil when it succeeded). A failed transaction is on
// the chain too, and paid its fee.
type Status struct {
	Slot         uint64
	Confirmation Commitment
	Err          *shieldpool.TransactionError
	// Unverified reports that no second endpoint confirms the status, although several are
	// configured. Nothing may be concluded from such a status.
	Unverified bool
}

// Decisive reports whether an outcome follows from the status: a success that is confirmed, or a
// failure that is finalized.
func (s *Status) Decisive() bool {
	return s != nil && !s.Unverified && (s.Err == nil && s.Confirmation.AtLeast(Confirmed) || s.Err != nil && s.Confirmation.AtLeast(Finalized))
}

// SearchResult is what endpoints know about some signatures, and which blockhashes had expired
// before the endpoints were asked. A transaction cannot land after its blockhash has expired. So a
// transaction with an unknown signature has expired if its blockhash has, and the searched history
// goes back far enough. SearchResult.Fate decides this.
type SearchResult struct {
	// Statuses are in the order of the signatures; nil for one that is not known.
	Statuses []*Status
	// Slot is the endpoint's slot when it answered; never below FinalizedSlot.
	Slot uint64
	// FinalizedSlot and FinalizedHeight are the slot and block height of the newest finalized
	// block. With several endpoints, two must have reached that block. The height is 0 when no
	// second endpoint confirms it.
	FinalizedSlot, FinalizedHeight uint64
	// All blockhashes of slots up to ExpiredSlot have expired: two endpoints have reported more
	// than 150 finalized blocks after that slot. This does not depend on recorded last valid
	// heights. 0 when no such slot is known.
	ExpiredSlot uint64
	// All blockhashes that were fetched before ExpiredBefore, by the relay's clock, have expired.
	// This does not depend on recorded slots. Zero when unknown.
	ExpiredBefore time.Time
	// FirstAvailable is the oldest slot that the endpoint's history contains.
	FirstAvailable uint64
}

// Creation is the transaction that created a nullifier's account, and so spent the note.
type Creation struct {
	Signature solana.Signature
	Slot      uint64
	// Confirmation is at least Confirmed.
	Confirmation Commitment
	FeePayer     solana.PublicKey
	// Call is the pool's instruction, decoded.
	Call *shieldpool.Call
}

// SwapEnd is the transaction that ended a swap.
type SwapEnd struct {
	// How says whether the swap was executed or refunded.
	How       shieldpool.SwapEnding
	Signature solana.Signature
	Slot      uint64
	// Confirmation is at least Confirmed.
	Confirmation Commitment
	// FeePayer is the sender, which may be anybody.
	FeePayer solana.PublicKey
}

// Payment is the effect of one transaction on an account's lamports; of a finalized one, unless it is from a
// BlockTransaction. Processes share it as JSON in the database: rename a field whose meaning changes.
type Payment struct {
	Signature solana.Signature
	Slot      uint64
	// At is the block's time; zero when the endpoint does not report it.
	At       time.Time
	FeePayer solana.PublicKey
	Failed   bool
	// Fee is the network's fee, priority fee included; SignatureFees is its part for the
	// signatures.
	Fee, SignatureFees uint64
	// Created is how many lamports the account paid for other accounts that the transaction
	// created. CreatedSizes are the data sizes of the created accounts, in bytes and in ascending
	// order.
	Created      uint64
	CreatedSizes []uint64
	// Before and After are the account's lamports.
	Before, After uint64
}

// Simulation is what a transaction would do at Slot; Err is nil when it would succeed.
type Simulation struct {
	Err           *shieldpool.TransactionError
	UnitsConsumed uint64
	// LoadedData is the account data that the transaction loads, in bytes: for each account that
	// exists, its data plus 64. 0 when the endpoint does not report it.
	LoadedData uint64
	Slot       uint64
	// Unverified reports that no second endpoint reports the same failure, although several
	// are configured.
	Unverified bool
	// Endpoint is the name of the endpoint that ran the transaction.
	Endpoint string
}

// Sending says how a signed transaction is sent.
type Sending struct {
	// First is true for the first send of a transaction: endpoints simulate it before they forward it.
	First bool
	// SimulatedBy is the name of the endpoint that has just simulated the transaction, and need not do
	// so again; empty for none.
	SimulatedBy string
}

// SignatureInfo is one transaction of an address's history.
type SignatureInfo struct {
	Signature solana.Signature
	Slot      uint64
	// Confirmation is empty when the endpoint does not report it.
	Confirmation Commitment
	Failed       bool
}

// Block is a block, with only those of its transactions that name one account, in the order in
// which they ran.
type Block struct {
	Slot, Parent     uint64
	Hash, ParentHash solana.Hash
	Transactions     []BlockTransaction
	// UnknownVersions counts transactions of a version that the relay cannot decode, if their bytes
	// do not contain the account's address. A transaction whose bytes contain the address makes the
	// read of the block fail.
	UnknownVersions uint64
}

// BlockTransaction is one transaction of a block. Instructions are the outer and inner ones in
// the order in which they ran: an inner instruction follows the outer one that called it. A
// failed transaction lists them too, although they had no effect.
type BlockTransaction struct {
	Signature    solana.Signature
	FeePayer     solana.PublicKey
	Failed       bool
	Instructions []Instruction
	// Payment is what the transaction did to the fee payer's lamports; nil if the endpoint's block does not
	// show it. Unlike other payments, it may not be finalized.
	Payment *Payment
}

// Instruction is one call of a program. Its addresses are resolved, also from lookup tables.
type Instruction struct {
	ProgramID solana.PublicKey
	Accounts  []solana.PublicKey
	Data      []byte
}

// Root is the tree's newest root on the chain, for clients to prove against.
type Root struct {
	Root [32]byte
	// Tree is the address of the tree account.
	Tree solana.PublicKey
	// NextIndex is the number of leaves; Slot is the slot at which the account was read.
	NextIndex, Slot uint64
}

// Snapshot is the tree account as it was at Slot, read at the time At. It is shared and
// never changed. Checked is false when the account is inconsistent: its roots then prove
// nothing, and only the program can tell whether it accepts a root.
type Snapshot struct {
	Tree    *shieldpool.TreeAccount
	Slot    uint64
	At      time.Time
	Checked bool
	// Doubtful reports that no other endpoint confirms that the chain has reached the slot.
	Doubtful bool
	// Behind reports that the slot may be old: the chain may have a root that this tree lacks.
	Behind bool
	// Corroborated reports that two endpoints show the tree: the root history of a second one
	// contains the tree's root. The tree's own root history then has only roots that two of them show.
	Corroborated bool
	// Provisional reports that only one of several endpoints shows the tree, although another one answers, or did
	// less than ten seconds ago: this one may have made it up.
	Provisional bool
	// Contested reports that two endpoints have the tree's root in their histories and differ after it: the
	// chain may have more leaves.
	Contested bool
}

// Inspection is the chain's state for a submission before it is accepted, all read at one
// Slot. Spent reports for each nullifier whether the program owns its account; it is false
// for a zero nullifier. Without a recipient the Recipient fields are zero. RecipientOwner is the
// program that owns the recipient's account.
type Inspection struct {
	Spent             [2]bool
	RecipientLamports uint64
	RecipientExists   bool
	RecipientOwner    solana.PublicKey
	Slot              uint64
}

// Tokens are a mint and one of its token accounts, both read at Slot. An account that does not
// exist is nil.
type Tokens struct {
	Mint, Account *Account
	Slot          uint64
}

// Consensus is the rules by which blocks become final.
type Consensus string

// The consensus rules. Under Alpenglow a confirmed block is final.
const (
	ConsensusUnknown Consensus = ""
	TowerBFT         Consensus = "tower_bft"
	Alpenglow        Consensus = "alpenglow"
)

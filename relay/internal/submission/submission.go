// Package submission brings each client's proof to exactly one outcome on the chain. A submission
// is a row in the database. The row's state, due time, lease and epoch are authoritative, so any
// pod can finish the work of any other.
package submission

import (
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// State is a submission's state, as the HTTP interface names it.
type State string

// The states. Completed means confirmed on the chain; Submission.Finalized reports finality.
// A completed submission returns to processing when its fork dies.
const (
	Pending    State = "pending"
	Processing State = "processing"
	Completed  State = "completed"
	Failed     State = "failed"
)

// Request is a submission as the client sent it, decoded but not yet validated.
type Request struct {
	// Proof is a Groth16 proof of 256 bytes. PublicInputs has 264 bytes.
	Proof, PublicInputs []byte
	// Recipient is the base58 wallet of a withdrawal. A transfer needs none, and ignores it.
	Recipient string
	// Notes are the opaque encrypted notes, at most two.
	Notes [][]byte
	// IdempotencyKey is the client's header; empty when it sent none.
	IdempotencyKey string
	// Client is the hash of the client's API key; zero when none is required.
	Client [32]byte
	// WithdrawalOnly is true if the route accepts no transfer, which is a request with the public
	// amount 0. The refusal is withdrawal_required.
	WithdrawalOnly bool
	// Wait is how long the request may wait to be accepted while the chain is unavailable for a
	// moment. If it is 0, the request does not wait.
	Wait time.Duration
	// Swap is set if the request is a swap, and has its terms. A swap is also a withdrawal.
	Swap *SwapRequest
}

// SwapRequest has a swap's terms as the client sent them. The request's Recipient may be empty if
// the token account RecipientATA exists. The owner of that account is then the recipient.
type SwapRequest struct {
	// OutputMint and RecipientATA are base58.
	OutputMint, RecipientATA string
	// MinOutput is in the output mint's smallest unit.
	MinOutput uint64
}

// Submission is one accepted request and its outcome.
type Submission struct {
	ID   uuid.UUID
	Pool solana.PublicKey
	Kind shieldpool.Kind

	State State
	// Call is the call to put on the chain.
	Call *shieldpool.Call
	// ProofAEncoding is the encoding of A with which the proof verified: "plain" or
	// "negated".
	ProofAEncoding string

	// RootSeq is the number of leaves that the tree had when the proof's root was its newest
	// root; 0 when that is not known. The root with the lowest RootSeq is evicted from the root
	// history first.
	RootSeq uint64
	// Epoch counts the submission's leases. Owner is the worker with the present lease. Every
	// write of an attempt or an outcome names the epoch and the owner.
	Epoch int64
	Owner uuid.UUID
	// Tries counts the failed steps since the last progress, for the backoff. Steps that ended
	// with the submission held do not count. Hold is the reason for which the submission is held;
	// "" if it is not.
	Tries int
	Hold  string

	// Signature, Slot, LeafIndices and Root are set once the submission is completed. LeafIndices
	// is set later if the commitment index has not read the slot yet, at the latest when the
	// submission is finalized. Root is the tree's root when the relay observed the confirmed
	// transaction.
	Signature   *solana.Signature
	Slot        uint64
	LeafIndices []uint64
	Root        *[32]byte
	Finalized   bool

	// Parent is the id of the swap that a second leg belongs to; nil for clients' submissions.
	Parent *uuid.UUID
	// Swap is the state of the second leg, once a swap's first leg has landed; nil before, and for
	// transfers and withdrawals.
	Swap *Swap

	// Failure is why a failed submission failed. RolledBack is true if the submission had been
	// completed on a fork that died.
	Failure    *refusal.Refusal
	RolledBack bool

	CreatedAt   time.Time
	CompletedAt *time.Time

	// Repeated is true if a request was answered with this submission because of the same
	// content, not because of an Idempotency-Key. Once the submission has landed, anybody can
	// read its content on the chain, so the sender of such a request does not get its id.
	Repeated bool
}

// KindSwapExecution is the second leg of a swap: a row of its own, created when the first
// leg lands, that executes the swap or refunds it. It spends no note.
const KindSwapExecution shieldpool.Kind = "swap_execution"

// Phase is a swap's state after its first leg has landed.
type Phase string

// The phases. A quoted swap returns to PhaseFunded when its execution expires or fails.
const (
	// PhaseFunded: the first leg landed, and the swap state holds the lamports.
	PhaseFunded Phase = "funded"
	// PhaseQuoted: an execution is signed, with a quote that meets the minimum.
	PhaseQuoted Phase = "quoted"
	// PhaseExecuted and PhaseRefunded are the two outcomes.
	PhaseExecuted Phase = "executed"
	PhaseRefunded Phase = "refunded"
)

// Swap is the state of a swap's second leg.
type Swap struct {
	Phase Phase
	// TimeoutSlot is the slot from which the swap is refunded instead of executed.
	TimeoutSlot uint64
	// HeldBy is the Hold of the second leg; "" when the second leg is not held.
	HeldBy string
	// Signature, Slot, Finalized and EndedAt belong to the transaction that executed
	// or refunded the swap; zero before.
	Signature *solana.Signature
	Slot      uint64
	Finalized bool
	EndedAt   *time.Time
	CreatedAt time.Time
}

// RequestID is the id by which the client knows the submission. For a second leg it is the id of
// the swap.
func (s *Submission) RequestID() uuid.UUID {
	if s.Parent != nil {
		return *s.Parent
	}
	return s.ID
}

// Landed returns the signature and the slot of the submission's landing; zero values before.
func (s *Submission) Landed() (signature solana.Signature, slot uint64) {
	if s.Signature == nil {
		return solana.Signature{}, 0
	}
	return *s.Signature, s.Slot
}

// Lease returns the submission's present lease.
func (s *Submission) Lease() txmgr.Lease {
	return txmgr.Lease{ID: s.ID, Epoch: s.Epoch, Owner: s.Owner}
}

// Job returns the submission as a job of the transaction manager, without attempts.
func (s *Submission) Job() *txmgr.Job {
	return &txmgr.Job{Lease: s.Lease(), Row: s, Kind: s.Kind, Tries: s.Tries, Hold: s.Hold, CreatedAt: s.CreatedAt}
}

// FromJob returns the submission of a job.
func FromJob(j *txmgr.Job) *Submission { return j.Row.(*Submission) }

// Done reports whether the submission is completed or failed, so that the client need not wait.
func (s *Submission) Done() bool { return s.State == Completed || s.State == Failed }

// QueueByRoot counts a pool's submissions that have not landed. Those in flight have an owner, and may
// land in any order. Those that wait are sent in the order of their roots.
type QueueByRoot struct {
	InFlight int
	Waiting  []AtRoot // by Seq
}

// AtRoot is how many submissions wait with the root that the tree had with Seq leaves.
type AtRoot struct {
	Seq         uint64
	Submissions int
}

// Backlog is the work of all relays.
type Backlog struct {
	// Pending and Processing count submissions by state, as in GET /backlog.
	Pending, Processing int64
	// OldestAge is the age of the oldest pending submission; 0 without one.
	OldestAge time.Duration
	// Due counts submissions that more workers could claim: due, without an owner, and not
	// held for any reason. OldestDue is how long the oldest of them has been due.
	Due       int64
	OldestDue time.Duration
	// Held counts held submissions by reason; more workers would not help them.
	Held map[string]int64
	// QueuedJobs are the ids of queued jobs, at most 100. They are not request ids, because a
	// request id gives access to /status.
	QueuedJobs []int64
}

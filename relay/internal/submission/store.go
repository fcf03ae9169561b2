package submission

import (
	"context"
	"errors"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/refusal"
)

// ErrLeaseLost says that another worker has taken the submission over: nothing
// was written, and whatever this worker holds is no longer its own.
var ErrLeaseLost = errors.New("the submission's lease was lost to another worker")

// Lease names a submission as held by one worker: every write says which. It is
// valid as long as epoch and owner are the row's. The epoch alone does not tell:
// a failover of the database that lost a claim hands its number out again.
type Lease struct {
	ID    uuid.UUID
	Epoch int64
	Owner uuid.UUID
}

// Claimed is a submission under lease, with its attempts in the order of their making.
type Claimed struct {
	*Submission
	// Live are the attempts that may still land; Dead those that cannot.
	Live, Dead []Attempt

	// fresh says that admission has just looked at the nullifiers.
	fresh bool
	// since is when this process took it up, or last signed for it.
	since time.Time
	// accepted is when this process accepted it; zero once its first send was timed.
	accepted time.Time
	// reserved are what payers keep for attempts that this process made.
	reserved []reservation
}

// requestID is the id under which the client knows the submission: a settlement's
// is that of the swap.
func (c *Claimed) requestID() uuid.UUID {
	if c.Parent != nil {
		return *c.Parent
	}
	return c.ID
}

// Outcome is a landed submission.
type Outcome struct {
	Signature   solana.Signature
	Slot        uint64
	LeafIndices []uint64
	Root        *[32]byte
	// Phase is how a settlement ended: PhaseExecuted or PhaseRefunded; "" of others.
	Phase Phase
	// Timeout is the slot in which the swap that this landing begins times out; 0 of
	// others.
	Timeout uint64
	// Returned are lamports that payers got back when a swap was executed, counted
	// against the caps once it is final.
	Returned uint64
}

// Landing is an outcome to be written under a lease.
type Landing struct {
	Lease
	Outcome
}

// Worker is a process that holds leases, as the fleet knows it.
type Worker struct {
	// ID is made anew by every process that starts.
	ID uuid.UUID
	// PausedBy says why the worker takes nothing up, a refusal's code; empty when it
	// works. When every worker holds, what is due counts as held and not as backlog.
	PausedBy string
}

// Store is the durable half of the engine. Errors of a lost connection are the
// refusal database_unavailable; a write under a lease that is no longer held
// is ErrLeaseLost and changes nothing. Which write a state allows is said by Next.
//
// A process holds its leases as long as it beats: one row a process is renewed,
// however many submissions it holds. Whoever finds a process that stopped
// beating frees what it held, with a new epoch, so that nothing it still
// believes to hold can be written.
type Store interface {
	// Accept commits row, reservations and idempotency key, or gives back the
	// earlier submission that the request repeats. With a worker the row is its
	// own from the commit on: state processing, epoch 1, its owner, and s is changed
	// to say so. keyHash is nil without an idempotency key. Refusals:
	// nullifier_reserved, idempotency_key_reused.
	Accept(ctx context.Context, s *Submission, keyHash []byte, worker *uuid.UUID) (*Submission, error)
	// FindRepeated finds the earlier submission that the request repeats, by idempotency
	// key or by content; nil when it is new. Refusals as for Accept.
	FindRepeated(ctx context.Context, s *Submission, keyHash []byte) (*Submission, error)
	// Get reads a submission; the refusal not_found when there is none.
	Get(ctx context.Context, id uuid.UUID) (*Submission, error)
	Backlog(ctx context.Context) (Backlog, error)
	// CountAhead counts the pool's submissions that have not landed and whose root
	// leaves the ring no later than that of rootSeq, and has not left it, as those
	// before oldest have; but for those that wait for a history, for an attempt's end,
	// for a spend cap or because the chain keeps failing them, while others go on. It stops counting at limit.
	CountAhead(ctx context.Context, pool solana.PublicKey, oldest, rootSeq uint64, limit int) (int, error)

	// RecordTreeSlot tells the fleet that the pool's tree was seen to change at slot; HighestTreeSlot is
	// the newest slot that any process told of, 0 when none did.
	RecordTreeSlot(ctx context.Context, pool solana.PublicKey, slot uint64) error
	HighestTreeSlot(ctx context.Context, pool solana.PublicKey) (slot uint64, err error)

	// Heartbeat makes the worker known, or keeps its leases for another period; lapsed
	// says that they had run out, so that others may have taken its submissions.
	Heartbeat(ctx context.Context, w Worker, lease time.Duration) (lapsed bool, err error)
	// FreeDeadProcesses frees what workers hold that stopped beating, and forgets them.
	FreeDeadProcesses(ctx context.Context) (freed int, err error)
	// ReleaseAll gives everything back that the worker holds, due at once, and
	// forgets the worker.
	ReleaseAll(ctx context.Context, worker uuid.UUID) (freed int, err error)
	// Leases lists the leases that the worker holds. What the worker does not know
	// of came from a write whose answer was lost, and is given back.
	Leases(ctx context.Context, worker uuid.UUID) ([]Lease, error)
	// NotifyDue tells all workers that something is due.
	NotifyDue(ctx context.Context) error

	// Claim takes up to limit submissions that are due, held by nobody and have
	// not landed, first those whose root is nearest to leaving the ring.
	Claim(ctx context.Context, worker uuid.UUID, limit int) ([]*Claimed, error)
	// Probe is Claim for a worker that holds the queue: it takes what has been taken
	// up before and waits for nothing, because what may be on the chain needs no
	// payer, and of the rest one, the one that has waited longest since its last try.
	Probe(ctx context.Context, worker uuid.UUID, limit int) ([]*Claimed, error)
	// ClaimSwapExecutions is Claim for swaps' second legs, which it leaves out; first
	// those that have been due longest. Their Call is the first leg's, and Swap is set.
	ClaimSwapExecutions(ctx context.Context, worker uuid.UUID, limit int) ([]*Claimed, error)
	// ClaimLanded takes up to limit that landed and are to be watched until finalized.
	ClaimLanded(ctx context.Context, worker uuid.UUID, limit int) ([]*Claimed, error)
	// Release gives the lease back; the submission is due again after delay, and
	// hold says why it waits ("" when it does not: then the try counts).
	Release(ctx context.Context, l Lease, delay time.Duration, hold string) error

	// MarkHeld says what submissions under leases that stay wait for, until their
	// next attempt, outcome or release. Leases that are lost are passed over.
	MarkHeld(ctx context.Context, leases []Lease, reason string) error

	// RecordAttempt commits an attempt before its first send, and counts its cost
	// as spent. It ends a hold and sets tries to 0. An execution brings its swap to
	// PhaseQuoted.
	RecordAttempt(ctx context.Context, l Lease, a Attempt) error
	// MarkAttemptRejected notes that preflight refused an attempt for good: no new owner sends it again.
	MarkAttemptRejected(ctx context.Context, l Lease, signature solana.Signature) error
	// MarkAttemptsDead marks attempts that can no longer land, and takes their cost
	// back but for what they paid: landed ones that failed paid their fee.
	MarkAttemptsDead(ctx context.Context, l Lease, attempts []DeadAttempt) error
	// UpdateSwap writes where a settlement stands, as the chain shows it, and the slot
	// of its timeout.
	UpdateSwap(ctx context.Context, l Lease, phase Phase, timeout uint64) error
	// Complete records landings; the leases stay for the watch until finalized. The
	// landing of a swap's first leg makes its settlement, due at once, in the same
	// transaction, unless there is one from an earlier landing.
	// It returns the leases that were lost, of which nothing was written.
	Complete(ctx context.Context, landings []Landing) (lost []Lease, err error)
	// Finalize ends the watch over landings and pins the proof's sign for the
	// verifying key, in place of the other sign. It corrects each landing's slot, and its leaves when the
	// outcome has any. It returns the leases that were lost.
	Finalize(ctx context.Context, landings []Landing, pins []ProofAPin) (lost []Lease, err error)
	// Reopen takes a completed submission back to processing: its fork died.
	Reopen(ctx context.Context, l Lease) error
	// Fail records the final failure and frees the nullifiers. It is refused
	// with ErrLeaseLost while an attempt is not buried. With a swap's first leg,
	// which had landed on a fork that died, its settlement fails too.
	Fail(ctx context.Context, l Lease, why *refusal.Refusal) error

	// PinnedProofA is the pinned sign of A for a verifying key; "" when none is.
	PinnedProofA(ctx context.Context, keyHash [32]byte) (string, error)
}

// DeadAttempt is an attempt that cannot land any more. Paid is what it cost all the
// same, in lamports: the fee of one that landed and failed, else 0.
type DeadAttempt struct {
	Signature solana.Signature
	Paid      uint64
}

// ProofAPin is what a finalized transaction teaches about the program: which
// sign of A it takes under the verifying key.
type ProofAPin struct {
	KeyHash   [32]byte
	Encoding  string
	Signature solana.Signature
}

package submission

import (
	"context"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/refusal"
)

// Outcome is a landed submission.
type Outcome struct {
	Signature   solana.Signature
	Slot        uint64
	LeafIndices []uint64
	Root        *[32]byte
	// Phase is how a second leg ended: PhaseExecuted or PhaseRefunded; "" of others.
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
	txmgr.Lease
	Outcome
}

// Store is the durable half of submissions, and of the manager's jobs that they are.
// Its errors are as the manager's store's.
type Store interface {
	txmgr.Store

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

	// Claim takes up to limit submissions that are due, held by nobody and have
	// not landed, first those whose root is nearest to leaving the ring.
	Claim(ctx context.Context, worker uuid.UUID, limit int) ([]*txmgr.Job, error)
	// Probe is Claim for a worker that holds the queue: it takes what has been taken
	// up before and waits for nothing, because what may be on the chain needs no
	// payer, and of the rest one, the one that has waited longest since its last try.
	Probe(ctx context.Context, worker uuid.UUID, limit int) ([]*txmgr.Job, error)
	// ClaimSwapExecutions is Claim for swaps' second legs, which it leaves out; first
	// those that have been due longest. Their Call is the first leg's, and Swap is set.
	ClaimSwapExecutions(ctx context.Context, worker uuid.UUID, limit int) ([]*txmgr.Job, error)

	// UpdateSwap writes where a second leg stands, as the chain shows it, and the slot
	// of its timeout.
	UpdateSwap(ctx context.Context, l txmgr.Lease, phase Phase, timeout uint64) error
	// Complete records landings; the leases stay for the watch until finalized. The
	// landing of a swap's first leg makes its second leg, due at once, in the same
	// transaction, unless there is one from an earlier landing.
	// It returns the leases that were lost, of which nothing was written.
	Complete(ctx context.Context, landings []Landing) (lost []txmgr.Lease, err error)
	// Finalize ends the watch over landings and pins the proof's sign for the
	// verifying key, in place of the other sign. It corrects each landing's slot, and its leaves when the
	// outcome has any. It returns the leases that were lost.
	Finalize(ctx context.Context, landings []Landing, pins []ProofAPin) (lost []txmgr.Lease, err error)
	// Fail records the final failure and frees the nullifiers. It is refused
	// with txmgr.ErrLeaseLost while an attempt is not buried. With a swap's first leg,
	// which had landed on a fork that died, its second leg fails too.
	Fail(ctx context.Context, l txmgr.Lease, why *refusal.Refusal) error

	// PinnedProofA is the pinned sign of A for a verifying key; "" when none is.
	PinnedProofA(ctx context.Context, keyHash [32]byte) (string, error)
}

// ProofAPin is what a finalized transaction teaches about the program: which
// sign of A it takes under the verifying key.
type ProofAPin struct {
	KeyHash   [32]byte
	Encoding  string
	Signature solana.Signature
}

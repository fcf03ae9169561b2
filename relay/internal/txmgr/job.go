package txmgr

import (
	"errors"
	"slices"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// ErrLeaseLost says that another worker has taken the job over: nothing was written, and
// this worker must not act on the job any more.
var ErrLeaseLost = errors.New("the submission's lease was lost to another worker")

// Lease is one worker's hold on a job: every write names it. It is valid while epoch and
// owner are the row's. The epoch alone is not enough: a failover of the database that lost
// a claim hands its number out again.
type Lease struct {
	ID    uuid.UUID
	Epoch int64
	Owner uuid.UUID
}

// Row is what a job is for, in its handler's terms.
type Row interface {
	// RequestID is the id under which a client knows it, for logs.
	RequestID() uuid.UUID
	// Landed is where it landed, once it has.
	Landed() (signature solana.Signature, slot uint64)
}

// Job is a row under lease, with its attempts in the order of creation.
type Job struct {
	Lease
	// Row is the handler's; Kind is the shape of its first transaction.
	Row  Row
	Kind shieldpool.Kind
	// Tries counts the steps since the last progress that ended in an error of the job's
	// own, for backoff. Hold is the reason of the last wait, "" for none.
	Tries int
	Hold  string
	// CreatedAt is when the row was made.
	CreatedAt time.Time
	// Live are the attempts that may still land; Dead attempts cannot.
	Live, Dead []Attempt

	// since is when this process claimed it, or last signed for it.
	since time.Time
	// accepted is when this process accepted it; zero once its first send was timed.
	accepted time.Time
	// reserved are the payers' reservations for attempts that this process made.
	reserved []reservation
	// look is the tracker's newest look at all history, for the step that follows.
	look *onchain.Look
	// lane is the lane that the job was claimed for.
	lane *Lane
}

// JustAccepted reports whether the job was admitted a moment ago, and nothing was sent for
// it yet.
func (j *Job) JustAccepted() bool { return !j.accepted.IsZero() }

// Attempts are all attempts of the job, including dead ones.
func (j *Job) Attempts() []Attempt { return slices.Concat(j.Live, j.Dead) }

// Purpose is what an attempt is for.
type Purpose string

// The purposes. All but the first are of swaps' second legs.
const (
	// PurposeTransact puts the client's Transact or TransactSwap on the chain.
	PurposeTransact Purpose = "transact"
	// PurposeExecute swaps, and PurposeRefund gives the lamports back.
	PurposeExecute Purpose = "execute"
	PurposeRefund  Purpose = "refund"
)

// Attempt is one signed transaction of a job. It is committed before its first send.
type Attempt struct {
	Signature solana.Signature
	// Raw is the signed transaction, sent again byte for byte.
	Raw      []byte
	FeePayer solana.PublicKey
	// Blockhash was read at BlockhashSlot and dies after LastValidBlockHeight.
	Blockhash            solana.Hash
	BlockhashSlot        uint64
	LastValidBlockHeight uint64
	// Purpose is what the attempt is for.
	Purpose Purpose
	// Cost is what it takes from the fee payer when it lands, in lamports: fee, priority
	// fee and the rent of the accounts that it makes. Fee is the part that the network
	// takes even when the transaction fails. Paid is what a dead attempt has cost all the
	// same.
	Cost, Fee, Paid uint64
	// SecondLegCost is the cost of a swap's second leg that the caps count with the first, in lamports.
	SecondLegCost uint64
	// Rejected says that preflight refused it for good: it is not sent again.
	Rejected  bool
	CreatedAt time.Time
}

// DeadAttempt is an attempt that cannot land any more. Paid is what it cost all the
// same, in lamports: the fee of one that landed and failed, else 0.
type DeadAttempt struct {
	Signature solana.Signature
	Paid      uint64
}

// Draft is a transaction before it has a payer.
type Draft struct {
	Purpose Purpose
	// Rent is what it takes from the payer in lamports, without fees, for good or until a
	// swap is executed.
	Rent uint64
	// UpfrontCost is what it takes from the payer and returns once it has run, in
	// lamports: the payer must have it.
	UpfrontCost uint64
	// SecondLegRent is the rent of the swap's second leg that follows; the caps count the
	// leg's cost with the first leg. 0 when none follows.
	SecondLegRent uint64
	// EndsWork says that it ends what an earlier transaction began: no cap applies to it,
	// and it may use the payers' least balance.
	EndsWork bool
	Build    Build
}

// Landing is the transaction that accomplished a job.
type Landing struct {
	Signature solana.Signature
	Slot      uint64
	// Purpose is what the transaction was for.
	Purpose Purpose
	// Ours says, once the landing is watched, that it is one of the job's attempts.
	Ours bool
}

// Landed is a job that landed.
type Landed struct {
	*Job
	Landing
}

// Next is the result of a step.
type Next struct {
	// Landing ends the work of the job, once it is recorded.
	Landing *Landing
	// Follow says that an attempt may still land. Without Follow and Landing the job has
	// ended, and the row says how.
	Follow bool
}

// Failure is why a transaction fails, in the simulation of Launch or on the chain.
type Failure struct {
	Err   *shieldpool.TransactionError
	Class shieldpool.Class
	// Slot is the slot of the simulated state; 0 for a transaction that landed.
	Slot uint64
}

// IsPayers reports whether the transaction fails because its payer lacks lamports.
func (f *Failure) IsPayers() bool { return f.Class == shieldpool.ClassFeePayerEmpty }

// Resolution is what one look at the chain says about a job's live attempts.
type Resolution struct {
	// Fates are those of the attempts that were live, in their order.
	Fates []onchain.Fate
	// Landing is set when one landed.
	Landing *Landing
	// Failure is that of an attempt that failed on the chain; nil for none.
	Failure *Failure
	// MinContextSlot is the slot from which accounts reflect these fates.
	MinContextSlot uint64
}

// MayLand reports whether an attempt may still land.
func (r *Resolution) MayLand() bool {
	for _, f := range r.Fates {
		if f == onchain.MayLand {
			return true
		}
	}
	return false
}

// Worker is a process that holds leases, as other processes see it.
type Worker struct {
	// ID is made anew by every process at its start.
	ID uuid.UUID
	// PausedBy says why the worker claims nothing, a refusal's code; empty when it works.
	// When every worker is paused, due jobs count as held and not as backlog.
	PausedBy string
}

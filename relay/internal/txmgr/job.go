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

// ErrLeaseLost says that another worker has taken the job over: nothing was written,
// and whatever this worker holds is no longer its own.
var ErrLeaseLost = errors.New("the submission's lease was lost to another worker")

// Lease names a job as held by one worker: every write says which. It is valid as
// long as epoch and owner are the row's. The epoch alone does not tell: a failover
// of the database that lost a claim hands its number out again.
type Lease struct {
	ID    uuid.UUID
	Epoch int64
	Owner uuid.UUID
}

// Row is what a job does, in its handler's terms.
type Row interface {
	// RequestID is the id under which a client knows it, for logs.
	RequestID() uuid.UUID
	// Landed is where it landed, once it has.
	Landed() (signature solana.Signature, slot uint64)
}

// Job is a row under lease, with its attempts in the order of their making.
type Job struct {
	Lease
	// Row is the handler's; Kind is the shape of its first transaction.
	Row  Row
	Kind shieldpool.Kind
	// Tries counts the steps since the last progress that ended in an error of
	// the job's own, for backoff. Hold is why it waited last, "" for none.
	Tries int
	Hold  string
	// CreatedAt is when the row was made.
	CreatedAt time.Time
	// Live are the attempts that may still land; Dead those that cannot.
	Live, Dead []Attempt

	// since is when this process took it up, or last signed for it.
	since time.Time
	// accepted is when this process accepted it; zero once its first send was timed.
	accepted time.Time
	// reserved are what payers keep for attempts that this process made.
	reserved []reservation
	// look is what the tracker has just found in all history, for the step that follows.
	look *onchain.Look
	// lane is the one that it was claimed for.
	lane *Lane
}

// JustAccepted reports whether admission looked at the job a moment ago, and nothing
// was sent for it yet.
func (j *Job) JustAccepted() bool { return !j.accepted.IsZero() }

// Attempts are all of the job, dead ones too.
func (j *Job) Attempts() []Attempt { return slices.Concat(j.Live, j.Dead) }

// Purpose is what an attempt is to do.
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
	// Purpose is what it is to do.
	Purpose Purpose
	// Cost is what it takes from the fee payer when it lands, in lamports: fee,
	// priority fee and the rent of the accounts that it makes. Fee is the part of
	// it that the network takes even when the transaction fails.
	// Paid is what a dead one took all the same.
	Cost, Fee, Paid uint64
	// SecondLegCost is what of a swap's second leg the caps count with its first, in lamports.
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
	// Rent is what it takes from the payer for good or until a swap is executed, in
	// lamports, fees apart.
	Rent uint64
	// UpfrontCost is what it takes from the payer and gives back when it has run, in
	// lamports: the payer must have it.
	UpfrontCost uint64
	// SecondLegRent is the rent of the swap's second leg that follows, whose cost the
	// caps count with the first; 0 when none follows.
	SecondLegRent uint64
	// EndsWork says that it ends what an earlier transaction began: no cap stands in its
	// way, and the payers' least balance is there for it.
	EndsWork bool
	Build    Build
}

// Landing is the transaction that did what a job is for.
type Landing struct {
	Signature solana.Signature
	Slot      uint64
	// Purpose is what it did.
	Purpose Purpose
	// Ours says, once it is watched, that it is one of the job's attempts.
	Ours bool
}

// Landed is a job that landed.
type Landed struct {
	*Job
	Landing
}

// Next is what follows from a step.
type Next struct {
	// Landing ends the work of the job, once it is recorded.
	Landing *Landing
	// Follow says that an attempt may still land. Without it and Landing the job has
	// ended, and the row says how.
	Follow bool
}

// Failure is why a transaction fails, in the simulation of Launch or on the chain.
type Failure struct {
	Err   *shieldpool.TransactionError
	Class shieldpool.Class
	// Slot is that of the state it was simulated on; 0 of one that landed.
	Slot uint64
}

// IsPayers reports whether the transaction fails for want of its payer's lamports.
func (f *Failure) IsPayers() bool { return f.Class == shieldpool.ClassFeePayerEmpty }

// Resolution is what one look at the chain says of a job's live attempts.
type Resolution struct {
	// Fates are those of the attempts that were live, in their order.
	Fates []onchain.Fate
	// Landing is set when one landed.
	Landing *Landing
	// Failure is of one that failed on the chain; nil for none.
	Failure *Failure
	// MinContextSlot is the slot before which no account tells what follows.
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

// Worker is a process that holds leases, as the fleet knows it.
type Worker struct {
	// ID is made anew by every process that starts.
	ID uuid.UUID
	// PausedBy says why the worker takes nothing up, a refusal's code; empty when it
	// works. When every worker holds, what is due counts as held and not as backlog.
	PausedBy string
}

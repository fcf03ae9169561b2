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

// ErrLeaseLost reports that another worker has claimed the job. Nothing was written, and
// this worker must not act on the job any more.
var ErrLeaseLost = errors.New("the submission's lease was lost to another worker")

// Lease is one worker's right to write a job. Every write names the lease under which it is made. A
// lease is valid while Epoch and Owner equal the row's. The epoch alone is not enough: after a
// failover that lost a claim, the database assigns the same epoch again.
type Lease struct {
	ID    uuid.UUID
	Epoch int64
	Owner uuid.UUID
}

// Row is the handler's record of a job.
type Row interface {
	// RequestID is the id by which a client knows the job, for logs.
	RequestID() uuid.UUID
	// Landed returns the signature and the slot of the job's landing; zero values before the job
	// has landed.
	Landed() (signature solana.Signature, slot uint64)
}

// Job is a row under lease, with its attempts in the order of creation.
type Job struct {
	Lease
	// Row is the handler's record; Kind is the kind of the job's first transaction.
	Row  Row
	Kind shieldpool.Kind
	// Tries counts the failed steps since the last progress, for the backoff. Steps that ended
	// with the job held do not count. Hold is the reason for which the row is held; "" if it is not.
	Tries int
	Hold  string
	// CreatedAt is when the row was made.
	CreatedAt time.Time
	// Live are the attempts that may still land, or whose fate is not known. Dead are the
	// attempts that can no longer succeed.
	Live, Dead []Attempt

	// since is the time at which this process claimed the job, or last signed for it.
	since time.Time
	// accepted is when this process accepted the job. It is zero if the job was claimed from the
	// queue, and after the first send.
	accepted time.Time
	// reserved are the payers' reservations for the attempts that this process signed.
	reserved []reservation
	// earlyAt is the earliest time for an early attempt, after one that was not made.
	earlyAt time.Time
	// prepared is the first transaction, if it was prepared while the job was being accepted.
	prepared *Prepared
	// simulatedBy is the endpoint that simulated the newest attempt; the simulation ended at simulatedAt.
	simulatedBy string
	simulatedAt time.Time
	// searchResult is the result of the tracker's newest search of all history. The next step
	// uses it.
	searchResult *onchain.SearchResult
	// queue is the queue that the job was claimed for.
	queue *Queue
}

// JustAccepted reports whether this process has accepted the job and has sent nothing for it
// yet.
func (j *Job) JustAccepted() bool { return !j.accepted.IsZero() }

// Attempts are all attempts of the job, including dead ones.
func (j *Job) Attempts() []Attempt { return slices.Concat(j.Live, j.Dead) }

// Purpose is what an attempt is for.
type Purpose string

// These are the purposes. All but the first belong to swaps' second legs.
const (
	// PurposeTransact is the client's Transact or TransactSwap.
	PurposeTransact Purpose = "transact"
	// PurposeExecute executes a swap, and PurposeRefund returns its lamports.
	PurposeExecute Purpose = "execute"
	PurposeRefund  Purpose = "refund"
)

// Attempt is one signed transaction of a job. It is committed to the database before its first
// send.
type Attempt struct {
	Signature solana.Signature
	// Raw is the signed transaction, sent again byte for byte.
	Raw      []byte
	FeePayer solana.PublicKey
	// Blockhash was read at BlockhashSlot and expires after LastValidBlockHeight.
	Blockhash            solana.Hash
	BlockhashSlot        uint64
	LastValidBlockHeight uint64
	// Purpose is what the attempt is for.
	Purpose Purpose
	// Lane is the lane that the attempt pays Tip lamports for, if it succeeds; "" and 0 for none.
	Lane string
	Tip  uint64
	// Cost is what the attempt takes from the fee payer when it lands, in lamports: fee, priority
	// fee, tip and the rent of the accounts that it creates. Fee is the part that the
	// network takes even when the transaction fails. Paid is what a dead attempt has cost.
	Cost, Fee, Paid uint64
	// SecondLegCost is the expected cost of a swap's second leg, in lamports. The caps count it
	// with the first leg. It is 0 for an attempt that is not a first leg.
	SecondLegCost uint64
	// Rejected is true if preflight refused the attempt permanently, so that it is not sent again.
	Rejected  bool
	CreatedAt time.Time
}

// Format is the format of the attempt's transaction.
func (a *Attempt) Format() shieldpool.Format { return shieldpool.FormatOf(a.Raw) }

// DeadAttempt is an attempt that can no longer succeed. Paid is what it cost, in lamports: the fee
// if it is known to have failed on the chain, otherwise 0.
type DeadAttempt struct {
	Signature solana.Signature
	Paid      uint64
}

// Draft is a transaction before it has a payer.
type Draft struct {
	Purpose Purpose
	// Format is the format in which the transaction is built.
	Format shieldpool.Format
	// Creates are the accounts whose rent the payer pays, permanently or until a swap is
	// executed.
	Creates shieldpool.NewAccounts
	// Closes are the accounts that the transaction creates and closes: the payer must have
	// their rent, and gets it back.
	Closes shieldpool.NewAccounts
	// SecondLeg are the accounts that the swap's second leg creates, or nil when no second
	// leg follows. The caps count that leg's cost with the first leg.
	SecondLeg *shieldpool.NewAccounts
	// EndsWork is true if the transaction finishes work that has begun, such as a swap's second
	// leg. No cap applies to such a transaction, and it may use the payers' minimum balance.
	EndsWork bool
	// Urgent is true if little time is left for the transaction to land, so that it is worth a
	// lane's tip.
	Urgent bool
	Build  Build
	// Fits reports whether the transaction with this compute is within the network's limit of size.
	// If Fits is nil, Build is called to find out.
	Fits func(compute shieldpool.Compute) bool
}

// Landing is the transaction by which a job landed.
type Landing struct {
	Signature solana.Signature
	Slot      uint64
	// Purpose is what the transaction was for.
	Purpose Purpose
	// Ours is true if the transaction is one of the job's attempts. It is known only in the
	// landings that Finalize gets; in the landings that Complete gets it is always false.
	Ours bool
}

// Landed is a job that landed.
type Landed struct {
	*Job
	Landing
}

// Next is the result of a step.
type Next struct {
	// Landing is set when the job has landed. The job ends once the landing is recorded.
	Landing *Landing
	// Track is true if an attempt may still land. When neither Track nor Landing is set, the job
	// has ended, and its row says how.
	Track bool
}

// Failure is why a transaction failed, in a simulation or on the chain.
type Failure struct {
	Err   *shieldpool.TransactionError
	Class shieldpool.Class
	// Slot is the slot of the simulated state; 0 for a transaction that landed.
	Slot uint64
}

// PayerLacksLamports reports whether the transaction fails because its payer lacks lamports.
func (f *Failure) PayerLacksLamports() bool { return f.Class == shieldpool.ClassFeePayerEmpty }

// Resolution is what one search of the chain shows about a job's live attempts.
type Resolution struct {
	// Fates are the fates of the attempts that were live before the search, in their order.
	Fates []onchain.Fate
	// Landing is set when an attempt landed.
	Landing *Landing
	// Failure says why an attempt failed on the chain; nil when none did.
	Failure *Failure
	// MinContextSlot is the slot from which accounts reflect these fates.
	MinContextSlot uint64
	// Seen is true if an endpoint reports an attempt that may land: it is processed, or only one
	// endpoint reports its outcome.
	Seen bool
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

// Worker is a process that owns leases, as other processes see it.
type Worker struct {
	// ID is new for every start of a process.
	ID uuid.UUID
	// PausedBy is the refusal code that says why the worker's queue is paused; empty while it is
	// not paused. When every worker is paused, due jobs count as held and not as backlog.
	PausedBy string
}

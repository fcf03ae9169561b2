package txmgr

import (
	"context"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/onchain"
)

// Handler decides the steps of a queue's jobs. The manager signs, sends, tracks and resolves
// for it.
type Handler interface {
	// Advance takes a job as far as it can go now. An error defers the job: a *Deferral
	// with its reason and delay, any other error with backoff.
	Advance(ctx context.Context, j *Job) (Next, error)
}

// Outcomes writes the outcomes of landed jobs, for every queue.
type Outcomes interface {
	// Complete writes to the database that jobs landed. The leases stay until the landings are
	// final. It returns the leases that were lost; for their jobs it writes nothing. After an
	// error it is called again.
	Complete(ctx context.Context, landed []Landed) (lost []Lease, err error)
	// Finalize writes to the database that landings are final. It treats lost leases and errors
	// as Complete does. The rows of the jobs are those that TrimRow returned.
	Finalize(ctx context.Context, landed []Landed) (lost []Lease, err error)
	// TrimRow returns the part of a row that Finalize needs. This saves memory, because
	// thousands of rows may wait for finality.
	TrimRow(r Row) Row
}

// Queue has the jobs of one handler, with a capacity of its own.
type Queue struct {
	Handler Handler
	// Claim claims up to limit jobs that are due, have no owner and have not landed, the
	// most urgent first.
	Claim func(ctx context.Context, worker uuid.UUID, limit int) ([]*Job, error)
	// Probe replaces Claim while the queue is paused. It claims jobs that were claimed before
	// and are not held, or only by HoldSecondEndpoint, because their transactions may be on the
	// chain already. Of the other jobs it claims only the one that has been due longest. Probe is
	// nil for a queue that is never paused.
	Probe func(ctx context.Context, worker uuid.UUID, limit int) ([]*Job, error)
	// Capacity is the largest number of jobs that this process has in flight: claimed and not
	// yet landed.
	Capacity int
	// ReleaseWhenSent makes a job release its capacity once its attempt is sent, so that the next
	// job need not wait until the attempt lands or expires.
	ReleaseWhenSent bool

	inUse capacity
	// due wakes the claim loop before its next tick.
	due chan struct{}
}

// pausable reports whether the queue can be paused.
func (l *Queue) pausable() bool { return l.Probe != nil }

// ClaimSoon brings the next claim forward, because a job may be due.
func (l *Queue) ClaimSoon() { signal(l.due) }

// Chain is the part of the RPC that the manager needs. An error that wraps
// onchain.ErrUnavailable leaves the result of the call unknown.
type Chain interface {
	LatestBlockhash(ctx context.Context) (onchain.Blockhash, error)
	// Send sends a signed transaction to the endpoints. It returns nil when an endpoint accepted
	// it, and a *onchain.SendError when all endpoints that were asked refused. A first
	// send has priority over other sends in an endpoint's budget. The end of ctx does not
	// cancel a send that has started; the send times out within seconds.
	Send(ctx context.Context, raw []byte, how onchain.Sending, minContextSlot uint64) error
	// LaneUsable reports whether the lane with that name takes transactions.
	LaneUsable(lane string) bool
	// SendLane also sends it to the lane with that name. Nothing follows from the lane's answer.
	SendLane(ctx context.Context, lane string, raw []byte, first bool)
	// Simulate runs a transaction on a node that has reached minContextSlot.
	Simulate(ctx context.Context, raw []byte, replaceBlockhash bool, minContextSlot uint64) (onchain.Simulation, error)
	// Statuses returns the recent statuses of at most 256 signatures, in their order; nil for
	// an unknown signature. The slot is the one at which the endpoint answered.
	Statuses(ctx context.Context, sigs []solana.Signature) ([]*onchain.Status, uint64, error)
	// Search searches the whole history for at most 256 signatures.
	Search(ctx context.Context, sigs []solana.Signature) (onchain.SearchResult, error)
	PriorityFees(ctx context.Context, writable []solana.PublicKey) ([]uint64, error)
}

// FeePayers pay and sign. Their refusals, fee_payer_empty and chain_unavailable, may be
// shown to clients.
type FeePayers interface {
	// Ready returns a refusal if no payer can spend that many lamports.
	Ready(ctx context.Context, lamports uint64) error
	// Pick chooses the payer of a transaction that costs lamports, and reserves them until
	// Release or Cancel. Set endsWork for a transaction that finishes work that has begun. Such a
	// transaction may also use the minimum balance that the payers keep for this purpose.
	Pick(ctx context.Context, lamports uint64, endsWork bool) (Payer, error)
	// Release ends the reservation of a transaction that landed or expired. Cancel ends a
	// reservation for which nothing was signed.
	Release(payer solana.PublicKey, lamports uint64)
	Cancel(payer solana.PublicKey, lamports uint64)
	// MarkRefused records that the chain refused a transaction because its payer lacks lamports.
	// MarkWorking records that one of the payer's transactions landed.
	MarkRefused(payer solana.PublicKey, cause error)
	MarkWorking(payer solana.PublicKey)
	// Keys are all payers; Owns reports whether a key is one of them.
	Keys() []solana.PublicKey
	Owns(key solana.PublicKey) bool
}

// Payer is one fee payer's key.
type Payer interface {
	PublicKey() solana.PublicKey
	// Sign signs a serialised message. Its error is an ErrSignerUnavailable when the key is in a
	// service that does not sign now; no signature was sent anywhere then, and the service may be asked
	// again.
	Sign(ctx context.Context, message []byte) (solana.Signature, error)
}

// Spending caps what the relay pays. Its refusal is spend_cap_reached.
type Spending interface {
	// Ready checks the caps for work that is about to be accepted. Allow checks them for an
	// attempt, and counts the attempt's cost. In the end the caller must call done: with true if
	// the store may have recorded the attempt, with false if it has not. After done(false) the
	// cost no longer counts.
	Ready(ctx context.Context, transfer bool, lamports uint64) error
	Allow(ctx context.Context, transfer bool, lamports uint64) (done func(recorded bool), err error)
}

// Observer counts events. Its arguments are from fixed sets; no content of a request
// reaches it.
type Observer interface {
	// Stage times one of: verify, admission, queue, simulate, sign, first_send,
	// confirm, execute (a swap's execution or refund, from its funding), finalize.
	Stage(stage string, took time.Duration)
	// Attempt counts: signed, early (signed while earlier ones may land), refused, rebroadcast,
	// expired, failed_on_chain, adopted, reopened, held, panic.
	Attempt(event string)
	// LandedAfter records how many slots lie between the slot at which an attempt's blockhash was
	// read and the slot in which the attempt landed. lane is the attempt's lane, "" for none, and
	// lamports is what it paid for the landing: its fee and its tip.
	LandedAfter(lane string, slots, lamports uint64)
	// LaneExpired counts an attempt of the lane that expired; "" for one without a lane.
	LaneExpired(lane string)
	// Lease counts leases: claimed, lost, reaped, orphaned, handed_over; and lapsed, which
	// counts how often this process's own leases lapsed.
	Lease(event string, n int)
	// Poll counts a poll of the statuses of that many signatures. notified is true if a
	// notification brought the poll forward.
	Poll(signatures int, notified bool)
}

// Store is the durable half of the manager. When the connection to the database is lost, its
// methods return the refusal database_unavailable. A write under a lease that the worker has
// lost returns ErrLeaseLost and changes nothing.
//
// A process keeps its leases while its heartbeat goes on. A heartbeat renews one row per
// process, no matter how many jobs the process owns. When a process stops, another one frees
// its leases with a new epoch, so that writes under the old leases fail.
type Store interface {
	// Heartbeat registers the worker, or renews its leases for another period. It returns true if
	// the leases had run out, so that other workers may have claimed the jobs.
	Heartbeat(ctx context.Context, w Worker, lease time.Duration) (lapsed bool, err error)
	// FreeDeadProcesses frees the leases of workers whose heartbeat stopped, and deletes
	// the workers.
	FreeDeadProcesses(ctx context.Context) (freed int, err error)
	// ReleaseAll releases all leases of the worker, so that the jobs are due immediately, and
	// deletes the worker.
	ReleaseAll(ctx context.Context, worker uuid.UUID) (freed int, err error)
	// Leases lists the worker's leases. The worker releases a lease that it does not track: the
	// answer to the write that made the lease was lost, or the release failed.
	Leases(ctx context.Context, worker uuid.UUID) ([]Lease, error)
	// NotifyDue notifies all workers that something is due.
	NotifyDue(ctx context.Context) error

	// ClaimLanded claims up to limit landed jobs that are to be tracked until finalized.
	ClaimLanded(ctx context.Context, worker uuid.UUID, limit int) ([]*Job, error)
	// Release releases the lease; the job is due again after delay. If hold is not empty, the job
	// is held, and hold is the reason. If hold is empty, the job's Tries increases by 1.
	Release(ctx context.Context, l Lease, delay time.Duration, hold string) error
	// MarkHeld records why jobs are held, and keeps their leases. The record lasts until the
	// job's next attempt, outcome or release. Lost leases are skipped.
	MarkHeld(ctx context.Context, leases []Lease, reason string) error

	// RecordAttempt commits an attempt before its first send, and counts its cost as spent. After
	// that the job is no longer held, and its Tries is 0. If the attempt executes a swap, the
	// swap's phase is then quoted.
	RecordAttempt(ctx context.Context, l Lease, a Attempt) error
	// MarkAttemptRejected records that preflight refused an attempt permanently, so that no new
	// owner sends it again.
	MarkAttemptRejected(ctx context.Context, l Lease, signature solana.Signature) error
	// MarkAttemptsDead marks attempts that can no longer succeed. It subtracts their cost from
	// the spending, except the fee of attempts that failed on the chain.
	MarkAttemptsDead(ctx context.Context, l Lease, attempts []DeadAttempt) error
	// Reopen sets the state of a landed job back to processing, after the fork with its landing
	// died.
	Reopen(ctx context.Context, l Lease) error
}

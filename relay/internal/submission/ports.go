package submission

import (
	"context"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/commitments"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// PoolState reads the pool's accounts. Its refusals, pool_not_initialised and
// chain_unavailable, may be shown to clients.
type PoolState interface {
	// Tree returns the tree account, not older than maxAge if the chain answers.
	Tree(ctx context.Context, maxAge time.Duration) (onchain.Snapshot, error)
	// TreeWith returns a tree account that has the root in its root history: the account from
	// Tree, or the account as another endpoint returns it. When no endpoint's account has the
	// root, TreeWith returns an account that was read anew.
	TreeWith(ctx context.Context, root [32]byte, maxAge time.Duration) (onchain.Snapshot, error)
	// Inspect reads nullifiers and recipient at one slot, not before minContextSlot.
	Inspect(ctx context.Context, in *shieldpool.PublicInputs, recipient solana.PublicKey, minContextSlot uint64) (onchain.Inspection, error)
	// Spent asks all endpoints about a nullifier that one endpoint has reported as spent. It
	// returns true if all endpoints that answer report the nullifier as spent.
	Spent(ctx context.Context, nullifier [32]byte) (bool, error)
	// Tokens reads a mint and a token account at one slot.
	Tokens(ctx context.Context, mint, account solana.PublicKey) (onchain.Tokens, error)
	// FindCreation returns the transaction that created the nullifier's account; nil when no
	// endpoint's history has it.
	FindCreation(ctx context.Context, nullifier [32]byte) (*onchain.Creation, error)
}

// LeafIndex finds the indices of commitments in the tree.
type LeafIndex interface {
	// FindLanded reads the blocks of the slots, in which the commitments landed, and returns the leaf index of each
	// commitment. With an error it returns those that it finds all the same.
	FindLanded(ctx context.Context, slots []uint64, commitments [][32]byte) (map[[32]byte]uint64, error)
	// Find returns the leaf index of each commitment that is in the blocks read so far.
	Find(ctx context.Context, commitments [][32]byte) (map[[32]byte]uint64, error)
	// Since returns the newest leaves that follow a root; false when it does not have them. It
	// asks nobody.
	Since(root [32]byte) (commitments.Recent, bool)
	// IsProcessed reports whether an endpoint has lately processed a tree with that root, all of whose
	// leaves are published or the fleet's own.
	IsProcessed(ctx context.Context, root [32]byte) bool
}

// Observer counts events. Its arguments are from fixed sets; no content of a request
// reaches it.
type Observer interface {
	txmgr.Observer
	// Outcome counts the end of a submission: "completed", "finalized" or a refusal's code;
	// for a second leg "executed" or "refunded" in place of "completed".
	Outcome(kind shieldpool.Kind, outcome string)
}

// Notifications are the callbacks of a Listener.
type Notifications struct {
	// Done is called for every submission that ends, in any process.
	Done func(uuid.UUID)
	// Due is called when a submission without an owner became due.
	Due func()
}

// Listener receives notifications from other processes, until ctx ends or the connection breaks.
// Notifications can be missed, so the caller must also read the rows from time to time.
type Listener interface {
	Listen(ctx context.Context, h Notifications) error
}

// Store is the durable half of submissions and of their jobs in the manager. Its errors are
// like those of txmgr.Store.
type Store interface {
	txmgr.Store

	// Accept commits row, reservations and idempotency key, or returns the earlier
	// submission that the request repeats. If worker is not nil, that worker owns the row from
	// the commit on (state processing, epoch 1), and Accept sets the same fields of s. keyHash is
	// nil if the request has no idempotency key. Refusals: nullifier_reserved,
	// idempotency_key_reused.
	Accept(ctx context.Context, s *Submission, keyHash []byte, worker *uuid.UUID) (*Submission, error)
	// FindRepeated finds the earlier submission that the request repeats, by idempotency key or
	// by content; nil when the request is new. It returns the same refusals as Accept.
	FindRepeated(ctx context.Context, s *Submission, keyHash []byte) (*Submission, error)
	// Get reads a submission; the refusal not_found when there is none.
	Get(ctx context.Context, id uuid.UUID) (*Submission, error)
	Backlog(ctx context.Context) (Backlog, error)
	// QueueByRoot counts the pool's submissions that have not landed. A submission whose root is
	// older than oldest does not count, because that root is already evicted. A submission that is
	// held for a reason of its own, such as a spend cap or failures on the chain, does not count
	// either, because new submissions proceed meanwhile.
	QueueByRoot(ctx context.Context, pool solana.PublicKey, oldest uint64) (QueueByRoot, error)

	// RecordTreeSlot records for all relays that the pool's tree changed at slot.
	// HighestTreeSlot returns the newest slot that any process recorded; 0 when none did.
	RecordTreeSlot(ctx context.Context, pool solana.PublicKey, slot uint64) error
	HighestTreeSlot(ctx context.Context, pool solana.PublicKey) (slot uint64, err error)

	// Claim claims up to limit submissions that are due, have no owner and have not landed.
	// It starts with the submissions whose root is evicted from the root history first.
	Claim(ctx context.Context, worker uuid.UUID, limit int) ([]*txmgr.Job, error)
	// Probe replaces Claim while the worker's queue is paused; see txmgr.Queue.
	Probe(ctx context.Context, worker uuid.UUID, limit int) ([]*txmgr.Job, error)
	// ClaimSwapExecutions claims swaps' second legs, which Claim omits. It starts with those
	// that have been due longest. Their Call is the first leg's, and Swap is set.
	ClaimSwapExecutions(ctx context.Context, worker uuid.UUID, limit int) ([]*txmgr.Job, error)

	// UpdateSwap writes the phase of a swap, as the chain shows it, and the slot of the swap's
	// timeout. The lease is that of the second leg.
	UpdateSwap(ctx context.Context, l txmgr.Lease, phase Phase, timeout uint64) error
	// Complete records landings; the leases stay until the landings are final. For the landing
	// of a swap's first leg it also creates the second leg in the same database transaction,
	// unless an earlier landing has created it. The second leg is due immediately. Complete
	// returns the leases that were lost; under these it writes nothing.
	Complete(ctx context.Context, landings []Landing) (lost []txmgr.Lease, err error)
	// Finalize records that landings are final. It overwrites the recorded slot of each landing,
	// and the recorded leaf indices if the given landing has any. It also writes the pins. If an
	// older pin of the same verifying key names the other encoding, the new pin replaces the
	// older one. Finalize returns the leases that were lost.
	Finalize(ctx context.Context, landings []Landing, pins []ProofAPin) (lost []txmgr.Lease, err error)
	// Fail records the final failure and frees the nullifiers. It returns
	// txmgr.ErrLeaseLost while an attempt is not marked as dead. When a swap's first leg fails
	// after it had landed on a fork that died, the swap's second leg fails too.
	Fail(ctx context.Context, l txmgr.Lease, why *refusal.Refusal) error

	// PinnedProofA returns the pinned encoding of A for a verifying key; "" when none is
	// pinned.
	PinnedProofA(ctx context.Context, keyHash [32]byte) (string, error)
}

// ProofAPin records which encoding of A the program accepts under the verifying key, as a
// finalized transaction shows.
type ProofAPin struct {
	KeyHash   [32]byte
	Encoding  string
	Signature solana.Signature
}

// Outcome is a landed submission.
type Outcome struct {
	Signature   solana.Signature
	Slot        uint64
	LeafIndices []uint64
	Root        *[32]byte
	// Phase is how a second leg ended: PhaseExecuted or PhaseRefunded; "" if a client's submission
	// landed.
	Phase Phase
	// Timeout is the slot in which a swap times out, if a swap's first leg landed; 0 if not.
	Timeout uint64
	// Returned is how many lamports the relay's payers got back when a swap was executed. Once
	// the landing is final, Returned is subtracted from the spending.
	Returned uint64
}

// Landing is an outcome to be written under a lease.
type Landing struct {
	txmgr.Lease
	Outcome
}

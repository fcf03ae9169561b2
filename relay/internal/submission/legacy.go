package submission

import (
	"context"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/refusal"
)

// legacyStore is the durable half of the engine. Errors of a lost connection are the
// refusal database_unavailable; a write under a lease that is no longer held
// is ErrLeaseLost and changes nothing.
type legacyStore interface {
	// Accept commits row, reservations and wake-up, or gives back the earlier
	// submission that the request repeats. keyHash is nil without an idempotency
	// key. Refusals: nullifier_reserved, idempotency_key_reused.
	Accept(ctx context.Context, s *Submission, keyHash []byte) (*Submission, error)
	// Repeat finds the earlier submission that the request repeats, by idempotency
	// key or by content; nil when it is new. Refusals as for Accept.
	Repeat(ctx context.Context, s *Submission, keyHash []byte) (*Submission, error)
	// Get reads a submission; the refusal not_found when there is none.
	Get(ctx context.Context, id uuid.UUID) (*Submission, error)
	Backlog(ctx context.Context) (Backlog, error)

	// Claim takes the lease of a due submission; nil when it is not due or leased.
	Claim(ctx context.Context, id, owner uuid.UUID, lease time.Duration) (*Claimed, error)
	// Due lists submissions that are due and leased by nobody, oldest first.
	Due(ctx context.Context, limit int) ([]uuid.UUID, error)
	// Renew extends leases and returns those still held.
	Renew(ctx context.Context, leases []Lease, lease time.Duration) ([]Lease, error)
	// Release gives the lease back; the submission is due again after delay, and
	// hold says why it waits ("" when it does not).
	Release(ctx context.Context, l Lease, delay time.Duration, hold string) error

	// RecordAttempt commits an attempt before its first send.
	RecordAttempt(ctx context.Context, l Lease, a Attempt) error
	// BuryAttempts marks attempts that can no longer land.
	BuryAttempts(ctx context.Context, l Lease, signatures []solana.Signature) error
	// Complete records the landing; the lease stays for the watch until finalized.
	Complete(ctx context.Context, l Lease, o Outcome) error
	// Finalize ends the watch and pins the proof's sign for the verifying key. It
	// corrects the landing's slot, and its leaves when the outcome has any.
	Finalize(ctx context.Context, l Lease, o Outcome, pin SignPin) error
	// Reopen takes a completed submission back to processing: its fork died.
	Reopen(ctx context.Context, l Lease) error
	// Fail records the final failure and frees the nullifiers.
	Fail(ctx context.Context, l Lease, why *refusal.Refusal) error

	// PinnedSign is the pinned sign of A for a verifying key; "" when none is.
	PinnedSign(ctx context.Context, keyHash [32]byte) (string, error)
}

// Package sweep moves the lamports of old fee payer keys when keys are rotated. It funds the new
// keys, waits until no transaction of the old keys can land any more, and then moves the remaining
// lamports of the old keys to one address.
//
// Its transactions follow the same rules as all others of the relay: an attempt is
// committed before the first send, the same bytes are sent until the attempt is dead, and
// an unknown outcome decides nothing. A run may be killed at any point and repeated: it
// plans the remaining moves anew, from balances that include all earlier moves.
package sweep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
)

// Step is the step of a rotation that a transaction belongs to.
type Step string

// The steps that send transactions.
const (
	StepFund Step = "fund"
	StepAll  Step = "all"
)

// Transfer is one transfer of a transaction, in lamports.
type Transfer struct {
	To       solana.PublicKey
	Lamports uint64
}

// Attempt is a signed transaction, committed before its first send. The transferred
// lamports come from its fee payer.
type Attempt struct {
	txmgr.Attempt
	Step      Step
	Transfers []Transfer
}

// Lamports is the sum of the transfers, without the fee.
func (a *Attempt) Lamports() (sum uint64) {
	for _, t := range a.Transfers {
		sum += t.Lamports
	}
	return sum
}

// End is the final outcome of an attempt.
type End string

// The ends. Landed and failed attempts are finalized; an expired one can never land.
const (
	EndLanded  End = "landed"
	EndFailed  End = "failed"
	EndExpired End = "expired"
)

// Unresolved counts the payers' attempts without a final outcome in the database. It does
// not count sweeps.
type Unresolved struct {
	// Open counts attempts that may land; Unfinalized counts attempts that landed and
	// are not finalized.
	Open, Unfinalized int64
	// Oldest is the age of the oldest of these attempts; 0 without any.
	Oldest time.Duration
}

// Total is the number of all these attempts.
func (u Unresolved) Total() int64 { return u.Open + u.Unfinalized }

// Chain is what a sweep needs of the RPC endpoints. An error that wraps
// onchain.ErrUnavailable means that there is no usable answer.
type Chain interface {
	txmgr.Chain
	// Accounts reads up to 100 accounts in the order of keys; nil for an account that does not
	// exist. It also returns the slot at which it read them all, minContextSlot or later.
	Accounts(ctx context.Context, keys []solana.PublicKey, commitment onchain.Commitment, minContextSlot uint64) ([]*onchain.Account, uint64, error)
}

// ErrLocked says that another sweep has locked one of the accounts.
var ErrLocked = errors.New("another relay sweep is at work on one of these keys")

// ErrSameTransaction says that the transaction is already recorded: an identical transaction with
// the same blockhash was signed earlier, and has a final outcome.
var ErrSameTransaction = errors.New("the transaction is recorded already")

// Store keeps sweeps.
type Store interface {
	// Lock locks the accounts against other sweeps until the session is closed or its
	// connection is lost. It returns ErrLocked when another sweep has locked one of them.
	Lock(ctx context.Context, accounts []solana.PublicKey) (Session, error)
	// Unresolved counts the payers' attempts without a final outcome, except sweeps.
	Unresolved(ctx context.Context, payers []solana.PublicKey) (Unresolved, error)
}

// Session writes to the database while the accounts are locked. Once the locks are lost, every
// write fails, so that no two sweeps act on one account.
type Session interface {
	// OpenAttempts returns the payers' sweeps without a final outcome, and the newest slot in
	// which a sweep from or to any of the accounts landed, 0 for none.
	OpenAttempts(ctx context.Context, payers, accounts []solana.PublicKey) (attempts []Attempt, newestSlot uint64, err error)
	// Record commits an attempt. A payer has at most one attempt without a final outcome. Record
	// returns ErrSameTransaction when the transaction is already recorded.
	Record(ctx context.Context, a Attempt) error
	// Resolve records an attempt's end, with the slot in which the attempt landed; 0 when it
	// did not land.
	Resolve(ctx context.Context, signature solana.Signature, end End, slot uint64) error
	Close()
}

// AccountingReader reads payers' finalized history into the relays' accounting.
type AccountingReader interface {
	// Complete reads the new part of the payers' finalized histories. It reports whether the
	// accounting then explains every lamport of the current balances.
	Complete(ctx context.Context, payers []solana.PublicKey) (bool, error)
}

const (
	defaultPoll        = time.Second
	defaultRebroadcast = 2 * time.Second
)

// Options configure a Sweeper. Chain, Store, Accounting, Log and Now are needed.
type Options struct {
	Chain      Chain
	Store      Store
	Accounting AccountingReader
	// Price determines the priority fee.
	Price txmgr.PriceRule
	Log   *slog.Logger
	Now   func() time.Time
	// Poll is the pause between reads of chain and database; 0 is 1 s. Rebroadcast is the
	// pause between sends of the same bytes; 0 is 2 s.
	Poll, Rebroadcast time.Duration
}

// Sweeper runs the steps of a rotation, one at a time.
type Sweeper struct{ Options }

// New makes a Sweeper. It makes no call.
func New(o Options) (*Sweeper, error) {
	switch {
	case o.Chain == nil || o.Store == nil || o.Accounting == nil || o.Log == nil || o.Now == nil:
		return nil, errors.New("a sweep needs a chain, a store, an accounting reader, a logger and a clock")
	case o.Poll < 0 || o.Rebroadcast < 0:
		return nil, fmt.Errorf("a sweep's pauses are %s and %s: expected 0 or more", o.Poll, o.Rebroadcast)
	}
	if o.Poll == 0 {
		o.Poll = defaultPoll
	}
	if o.Rebroadcast == 0 {
		o.Rebroadcast = defaultRebroadcast
	}
	return &Sweeper{o}, nil
}

// Result is what one run did.
type Result struct {
	// Transactions is how many transactions landed without an error, and Lamports is what these
	// moved. Failed is how many landed with an error, and Expired how many can never land. Fees
	// is the cost of all that landed, with or without an error. The figures include transactions
	// of earlier runs whose outcome this run observed.
	Transactions, Failed, Expired int
	Lamports, Fees                uint64
	// Left is how many lamports remain on payers that cannot move them, because each of these has
	// less than the fee and the rent-exempt minimum together.
	Left uint64
}

// String is a summary of one line.
func (r Result) String() string {
	text := fmt.Sprintf("moved %d lamports in %d transactions, which cost %d", r.Lamports, r.Transactions, r.Fees)
	if r.Failed+r.Expired > 0 {
		text += fmt.Sprintf("; %d more failed on the chain and %d never landed", r.Failed, r.Expired)
	}
	if r.Left > 0 {
		text += fmt.Sprintf("; %d lamports are left, on keys that hold too little to pay a fee", r.Left)
	}
	return text
}

// Unfinished says that a step ended before it was done, because its time was over or it was
// stopped. The next run continues the step.
type Unfinished struct {
	// WaitingFor is what the step waited for.
	WaitingFor string
	// Err is the context's error.
	Err error
}

// Error says why the step ended and what it waited for.
func (e *Unfinished) Error() string {
	why := "the time is over"
	if errors.Is(e.Err, context.Canceled) {
		why = "the run was stopped"
	}
	return fmt.Sprintf("not done, and %s while waiting for %s; run it again to continue", why, e.WaitingFor)
}

// Unwrap gives the context's error.
func (e *Unfinished) Unwrap() error { return e.Err }

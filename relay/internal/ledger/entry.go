package ledger

import (
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Kind classifies a transaction. The kinds are a fixed set, so they can be a metric's label.
type Kind string

// The first three kinds are transactions of submissions, and succeeded. KindSwap is the kind of
// both legs of a swap.
const (
	KindTransfer   = Kind(shieldpool.KindTransfer)
	KindWithdrawal = Kind(shieldpool.KindWithdrawal)
	KindSwap       = Kind(shieldpool.KindSwap)
	// KindSweep: the command `relay sweep` moved lamports between keys of the same owner. Each
	// payer that lost or gained lamports has an entry.
	KindSweep Kind = "sweep"
	// KindFailed: a transaction of the relay that landed with an error, and cost its fee.
	KindFailed Kind = "failed"
	// KindReceived: a transaction with which somebody else sent lamports to the payer.
	KindReceived Kind = "received"
	// KindUnknown: a transaction that was signed with a payer's key, but is not in the database.
	// Somebody else has the key, or rows were lost.
	KindUnknown Kind = "unknown"
)

// Kinds returns all kinds, in the order in which they are shown.
func Kinds() []Kind {
	return []Kind{KindTransfer, KindWithdrawal, KindSwap, KindSweep, KindFailed, KindReceived, KindUnknown}
}

// Amounts are lamports by their use. Fee is the cost of signatures, and PriorityFee is the rest
// of the network's fee. Tip is what a lane was paid. Rent is the cost of the accounts that the transaction created, less the
// rent of the accounts that it closed: negative when a swap was executed. For one transaction,
// Returned is -Rent if Rent is negative, and 0 otherwise. Other is what left the account for no
// known reason, and must be 0 except in unknown transactions. Moved is what a sweep moved from
// the account to another key of the same owner; it is negative for the key that received it.
// Moved lamports count neither as spent nor as received. Received is what came from others.
type Amounts struct {
	Fee         uint64 `json:"fee"`
	PriorityFee uint64 `json:"priority_fee"`
	Tip         uint64 `json:"tip"`
	Rent        int64  `json:"rent"`
	Returned    uint64 `json:"returned"`
	Other       int64  `json:"other"`
	Moved       int64  `json:"moved"`
	Received    uint64 `json:"received"`
}

// Spent returns everything that left the account, except what sweeps moved.
func (a Amounts) Spent() int64 {
	return int64(a.Fee) + int64(a.PriorityFee) + int64(a.Tip) + a.Rent + a.Other //nolint:gosec // any sum of lamports fits 63 bits
}

// Net returns what the account lost; negative when it gained.
func (a Amounts) Net() int64 {
	return a.Spent() + a.Moved - int64(a.Received) //nolint:gosec // any sum of lamports fits 63 bits
}

func (a Amounts) plus(b Amounts) Amounts {
	return Amounts{
		Fee: a.Fee + b.Fee, PriorityFee: a.PriorityFee + b.PriorityFee, Tip: a.Tip + b.Tip, Rent: a.Rent + b.Rent, Returned: a.Returned + b.Returned,
		Other: a.Other + b.Other, Moved: a.Moved + b.Moved, Received: a.Received + b.Received,
	}
}

// Entry is what one finalized transaction did to one payer's lamports.
type Entry struct {
	Signature solana.Signature
	Payer     solana.PublicKey
	Slot      uint64
	// At is the block's time, or the time of reading when the chain has none.
	At   time.Time
	Kind Kind
	// Submission is the submission of the attempt; nil if no submission caused the transaction, as
	// for a sweep.
	Submission *uuid.UUID
	Amounts
	// BalanceAfter is the payer's lamports after the transaction.
	BalanceAfter uint64
}

// Attempt is what the database has about one transaction.
type Attempt struct {
	// Submission is the id by which the client knows the submission. For both legs of a swap it
	// is the id of the first leg. It is zero for a sweep.
	Submission uuid.UUID
	// Kind is the submission's kind, or KindSweep.
	Kind    shieldpool.Kind
	Purpose txmgr.Purpose
	// Moved is what a sweep takes from its fee payer beyond the fee, in lamports. Tip is what an
	// attempt pays a lane if it succeeds.
	Moved, Tip uint64
}

package submission

import (
	"context"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

// SwapPlanner decides how a swap's second leg goes on. It signs and writes nothing:
// the engine does, under the rules that hold for every attempt.
type SwapPlanner interface {
	// Next says what to do with a settlement of which no earlier attempt can land
	// any more, by what the chain shows at floor or later. Its error is a *Deferral
	// when there is nothing to do yet, or the chain's. Phase and Timeout of the
	// order are set with an error too, if the chain has shown them.
	Next(ctx context.Context, c *Claimed, floor uint64) (SwapOrder, error)
	// Rejected says what follows from a draft that would fail: the *Deferral to put the
	// settlement off with.
	Rejected(ctx context.Context, c *Claimed, d *Draft, failure *shieldpool.TransactionError) error
}

// SwapOrder is what a SwapPlanner wants done. Either Draft or Ended is set.
type SwapOrder struct {
	// Phase and Timeout are what the chain shows.
	Phase   Phase
	Timeout uint64
	// Draft is a transaction to sign and send.
	Draft *Draft
	// Ended is the end, found on the chain.
	Ended *Outcome
}

// Draft is a transaction before it has a payer.
type Draft struct {
	Purpose Purpose
	// Rent is what it takes from the payer for good or until the swap is executed,
	// in lamports, fees apart.
	Rent uint64
	// UpfrontCost is what it takes from the payer and gives back when it has run, in
	// lamports: the payer must have it.
	UpfrontCost uint64
	// Build lays it out, unsigned.
	Build func(payer solana.PublicKey, compute shieldpool.Compute, blockhash solana.Hash) (*solana.Transaction, error)
}

// Deferral is why a settlement goes no further for now.
type Deferral struct {
	// Reason is from a fixed set: it is stored, and a metric's label.
	Reason string
	// Delay is until when it is put off.
	Delay time.Duration
	Cause error
}

// Error gives reason and cause.
func (w *Deferral) Error() string { return "waiting: " + w.Reason + ": " + w.Cause.Error() }

// Unwrap gives the cause.
func (w *Deferral) Unwrap() error { return w.Cause }

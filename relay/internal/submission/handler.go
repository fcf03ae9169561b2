package submission

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/commitments"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Options configure a Handler. All fields but BaseFee, Table, Formats, Lanes and MaxEarlyFees are
// needed.
type Options struct {
	Store    Store
	Chain    txmgr.Chain
	State    PoolState
	Pool     *shieldpool.Pool
	Payers   txmgr.FeePayers
	Spending txmgr.Spending
	Leaves   LeafIndex
	ProofA   *ProofAPolicy
	Observer Observer
	Log      *slog.Logger
	Now      func() time.Time
	// Worker names this process among the owners of leases.
	Worker uuid.UUID
	// Concurrency is the largest number of submissions that this process has in flight: claimed
	// and not yet landed.
	Concurrency int
	Timing      txmgr.Timing
	Price       txmgr.PriceRule
	Lanes       []txmgr.Lane
	// MaxEarlyFees is the most that the attempts of a submission may cost in vain because some of
	// them were signed early, in lamports; 0 for no such attempts.
	MaxEarlyFees uint64
	// EstimateFinalized estimates the newest final slot; 0 if nothing is known, nil if nothing ever is.
	EstimateFinalized func() uint64
	// SlotDuration returns how long a slot takes.
	SlotDuration func() time.Duration
	// Rent returns the network's rate of rent; 0 while it is unknown.
	Rent func() shieldpool.Rent
	// BaseFee returns the network's base fee; nil for the fee of one signature.
	BaseFee func() shieldpool.BaseFee
	// Table is the relay's own lookup table; nil for legacy transactions.
	Table *shieldpool.LookupTable
	// Formats returns the formats that transactions may have now. If Formats is nil, all
	// transactions have the format that shieldpool.OlderFormat returns for Table.
	Formats shieldpool.Formats
}

// Handler advances submissions with a transaction manager, and writes their outcomes. It
// implements txmgr.Handler and txmgr.Outcomes.
type Handler struct {
	Options
	// Manager is the transaction manager. Its main queue is that of the submissions.
	Manager   *txmgr.Manager
	TreeSlots *TreeSlots
	// SecondLegDue is called for every swap whose first leg landed; nil when this process
	// executes no swaps.
	SecondLegDue func()

	bounds      shieldpool.NoteBounds
	failedNotes failedNotes
}

// New makes a Handler with its transaction manager.
func New(o Options) (*Handler, error) {
	if o.State == nil || o.Pool == nil || o.Leaves == nil || o.ProofA == nil || o.Store == nil || o.Observer == nil || o.Rent == nil || o.SlotDuration == nil {
		return nil, errors.New("submissions need all of their options")
	}
	h := &Handler{Options: o, TreeSlots: newTreeSlots(o.Store, o.Pool.Address, o.Log)}
	var err error
	if h.bounds, err = o.Pool.NoteBounds(o.Table); err != nil {
		return nil, err
	}
	h.Manager, err = txmgr.New(txmgr.Options{
		Store: o.Store, Chain: o.Chain, Payers: o.Payers, Spending: o.Spending, Outcomes: h, Class: h.class, Observer: o.Observer, Log: o.Log, Now: o.Now,
		Readable: func(ctx context.Context) error {
			_, err := o.State.Tree(ctx, o.Timing.Poll)
			return err
		},
		Landed: func(j *txmgr.Job, l txmgr.Landing) {
			if j.Kind != KindSwapExecution {
				h.TreeSlots.landed(l.Slot)
			}
		},
		Rent: o.Rent, BaseFee: o.BaseFee, EstimateFinalized: o.EstimateFinalized, SlotDuration: o.SlotDuration,
		Writable: []solana.PublicKey{o.Pool.Address, o.Pool.MerkleTree, o.Pool.Treasury}, Worker: o.Worker, Timing: o.Timing, Price: o.Price, Lanes: o.Lanes, MaxEarlyFees: o.MaxEarlyFees,
	})
	if err != nil {
		return nil, err
	}
	return h, h.Manager.Add(&txmgr.Queue{Handler: h, Claim: o.Store.Claim, Probe: o.Store.Probe, Capacity: o.Concurrency})
}

// Run works until ctx ends, like the manager's Run.
func (h *Handler) Run(ctx context.Context) {
	var slots sync.WaitGroup
	slots.Go(func() { h.TreeSlots.run(ctx) })
	h.Manager.Run(ctx)
	slots.Wait()
}

// RecipientMinimum returns the minimum balance of a recipient after a withdrawal, in lamports: the
// program's minimum or the network's, whichever is larger.
func (h *Handler) RecipientMinimum() uint64 {
	return max(h.Pool.Profile.RecipientMinimum, h.Rent().Minimum(0))
}

// class returns the class of the failure of a transaction with that purpose and format.
func (h *Handler) class(p txmgr.Purpose, f shieldpool.Format, err *shieldpool.TransactionError) shieldpool.Class {
	if p == txmgr.PurposeTransact || err.Kind != "InstructionError" || err.Detail != "Custom" {
		return h.Pool.Profile.ClassOfTransaction(err, f.PoolInstruction())
	}
	// The code may come from the router, the token program, or another program that the router
	// calls. It shows nothing about the payer or the pool.
	return shieldpool.ClassTransient
}

// progress is the state of one submission during Advance.
type progress struct {
	facts
	// minContextSlot is the slot that a node must have reached when it reads the accounts.
	minContextSlot uint64
	// landing is set when a transaction of this submission landed: one of its attempts, or one
	// that the database does not know.
	landing *txmgr.Landing
	// spent is the index of the first nullifier that is spent, if any is.
	spent int
	tree  *shieldpool.TreeAccount
	// rootGoneAtTwo is true if two endpoints show a tree that has evicted the root.
	rootGoneAtTwo bool
	// failure is the error behind class.
	failure *shieldpool.TransactionError
}

// newProgress makes the progress that the search for the attempts shows.
func newProgress(r *txmgr.Resolution) *progress {
	p := &progress{facts: facts{verdicts: r.Fates}, minContextSlot: r.MinContextSlot, landing: r.Landing}
	if r.Failure != nil {
		p.failure, p.class = r.Failure.Err, r.Failure.Class
	}
	return p
}

// Advance implements txmgr.Handler: it takes a submission as far as it can go now.
func (h *Handler) Advance(ctx context.Context, j *txmgr.Job) (txmgr.Next, error) {
	resolution, err := h.Manager.Resolve(ctx, j)
	if err != nil {
		return txmgr.Next{}, err
	}
	p := newProgress(resolution)
	if j.JustAccepted() { // admission has just read the notes
		p.notes = notesUnspent
	}
	p.lagRuledOut = j.Tries >= rootLagTries
	if p.early = h.isEarlyAttemptDue(j, resolution); p.early {
		return h.advanceEarly(ctx, j, p)
	}
	for {
		switch next := decide(&p.facts); next {
		case stepLand, stepAdopt:
			return txmgr.Next{Landing: p.landing}, nil
		case stepTrack:
			return txmgr.Next{Track: true}, h.Manager.Undecided(j)
		case stepReadNotes:
			err = h.readNotes(ctx, j, p)
		case stepReadRoot:
			err = h.readRoot(ctx, j, p)
		case stepSign:
			var ended bool
			if ended, err = h.launchAfterDelay(ctx, j, p); err != nil || ended {
				return txmgr.Next{}, err
			}
			if p.class == "" {
				return txmgr.Next{Track: true}, nil
			}
		default:
			return txmgr.Next{}, h.finishStep(ctx, j, p, next)
		}
		if err != nil {
			return txmgr.Next{}, err
		}
	}
}

// launch signs and sends the client's call. If the simulation fails, it stores the failure in p
// instead.
func (h *Handler) launch(ctx context.Context, j *txmgr.Job, p *progress) error {
	draft, err := h.draftNow(j, p)
	switch {
	case err != nil && p.early:
		return fmt.Errorf("%w: %w", txmgr.ErrNoEarlyAttempt, err)
	case err != nil:
		return err
	}
	failure, err := h.Manager.Launch(ctx, j, draft, p.minContextSlot)
	if err != nil || failure == nil {
		return err
	}
	p.fail(failure)
	return nil
}

// fail stores the failure of a simulation. If the failure concerns the notes or the root, the
// accounts of both have to be read again.
func (p *progress) fail(f *txmgr.Failure) {
	p.failure, p.class, p.minContextSlot = f.Err, f.Class, max(p.minContextSlot, f.Slot)
	if f.Class == shieldpool.ClassSpent || f.Class == shieldpool.ClassStaleProof {
		p.notes, p.root = notesUnread, rootUnread
	}
}

// finishStep acts on a step that ends this call of Advance: a failure, a hold or a retry.
func (h *Handler) finishStep(ctx context.Context, j *txmgr.Job, p *progress, s step) error {
	switch s {
	case stepNoHistory:
		return &txmgr.Deferral{Reason: txmgr.HoldHistory, Fault: true, Cause: errors.New("no endpoint's history reaches back to an attempt that can no longer land: give the relay an endpoint with the role archive")}
	case stepHold:
		return &txmgr.Deferral{Reason: string(p.class), Fault: true, Cause: p.failure}
	case stepRetry:
		switch {
		case p.root == rootNotSeen:
			return errRootNotSeen
		case p.failure == nil:
			return errSpentNotFinal
		}
		return fmt.Errorf("try transaction: %w", p.failure)
	}
	if s == stepFailRoot && p.class != shieldpool.ClassStaleProof && !p.rootGoneAtTwo {
		if err := h.tryRoot(ctx, j, p); err != nil {
			return err
		}
	}
	// No attempt can land any more. If some attempts still count as live, the only reason is
	// that no endpoint's history goes back to them.
	if err := h.Manager.MarkDead(ctx, j); err != nil {
		return err
	}
	switch s {
	case stepFailSpent:
		return h.fail(ctx, j, NullifierSpent(p.spent))
	case stepFailRoot:
		return h.fail(ctx, j, StaleRoot(FromJob(j).Call.Inputs.Root, commitments.Recent{Root: p.tree.Root, NextIndex: p.tree.NextIndex}).Because(p.cause()))
	default:
		return h.fail(ctx, j, h.classRefusal(ctx, FromJob(j), p))
	}
}

// fail ends a submission with a final failure.
func (h *Handler) fail(ctx context.Context, j *txmgr.Job, why *refusal.Refusal) error {
	s := FromJob(j)
	if s.RolledBack {
		why = why.With("rolled_back", true)
	}
	// The failed notes are recorded before a client can see the outcome and post again. If
	// Store.Fail fails, the next try records them once more, and they are refused for longer.
	_, paid := retryAt(j.Dead)
	h.failedNotes.add(s.Call.Inputs, paid, h.Now())
	if err := h.Store.Fail(ctx, j.Lease, why); err != nil {
		return err
	}
	h.Observer.Outcome(s.Kind, string(why.Code))
	h.Log.InfoContext(ctx, "submission failed", "request_id", s.ID, "code", why.Code, "error", why.Cause)
	return nil
}

// cause returns the failure as an error, and avoids a typed nil.
func (p *progress) cause() error {
	if p.failure == nil {
		return nil
	}
	return p.failure
}

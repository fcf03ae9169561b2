package submission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/ledger"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Reasons of the engine's own for holding a submission; others are codes of
// refusals and classes of program errors.
const (
	// HoldHistory: an attempt cannot land any more, and no endpoint's history
	// reaches back to tell whether it has. An endpoint that keeps a longer one
	// (role archive) ends it.
	HoldHistory = "chain_history"
	// HoldExpiry: an attempt that was signed long ago is not on the chain, and the
	// endpoints do not bear each other out that it can land no more.
	HoldExpiry = "chain_expiry"
	// HoldChain: the chain does not answer.
	HoldChain = string(refusal.ChainUnavailable)
)

// undecidedAfter is how long a process follows attempts that are undecided before
// their submission waits, held: it then keeps no place, and counts for none that would
// drive roots out of the ring. A blockhash lives for about a minute.
const undecidedAfter = 5 * time.Minute

// undecidedRetry is when such a one is looked at again, by a search of its own.
const undecidedRetry = time.Minute

// undecided is what a submission waits for whose attempts should be dead or landed
// since long ago; nil while this process has not followed them for long. One that
// waited for that already goes on to wait, until they are decided.
func (e *Engine) undecided(c *Claimed) error {
	if len(c.Live) == 0 || (c.Hold != HoldExpiry && e.Now().Sub(c.since) <= undecidedAfter) {
		return nil
	}
	return &heldError{reason: HoldExpiry, retryAfter: undecidedRetry, cause: errors.New("an attempt is not on the chain, and the endpoints do not agree that it can land no more: relay attempts lists such, and with --end asks endpoints that you name")}
}

// rootLagTries is how many steps a root that the ring holds may be unknown to the
// program, about a minute with the pauses between them: no node that is fit for
// use lags longer.
const rootLagTries = 10

// progress is one submission's way through the steps, and what they have found.
type progress struct {
	facts
	// minContextSlot is the slot before which no account is believed.
	minContextSlot uint64
	// landing is set with a verdict of landed, and when an unknown one is adopted;
	// purpose is that of the attempt that landed.
	landing *Outcome
	purpose Purpose
	// spent is the index of the nullifier that is.
	spent int
	tree  *shieldpool.TreeAccount
	// failure is behind class.
	failure *shieldpool.TransactionError
}

// advance takes a submission as far as it goes now; follow says that there is
// something to look for on the chain from here on.
func (e *Engine) advance(ctx context.Context, w *entry) (follow bool, err error) {
	if w.c.Kind == KindSwapExecution {
		return e.advanceExecution(ctx, w)
	}
	c, p := w.c, &progress{}
	if len(c.Live) > 0 {
		if err := e.resolveAttempts(ctx, w, p); err != nil {
			return false, err
		}
	}
	if c.fresh {
		p.notes, c.fresh = notesUnspent, false
	}
	p.rootLongMissing = c.Tries >= rootLagTries
	for {
		switch next := decide(&p.facts); next {
		case stepLand, stepAdopt:
			e.tracker.record(w, *p.landing)
			return true, nil
		case stepTrack:
			return true, e.undecided(c)
		case stepReadNotes:
			err = e.readNotes(ctx, c, p)
		case stepReadRoot:
			err = e.readRoot(ctx, c, p)
		case stepSign:
			follow, err = e.retry(ctx, c, p)
			if err != nil || follow || p.class == "" {
				return follow, err
			}
		default:
			return false, e.finishStep(ctx, c, p, next)
		}
		if err != nil {
			return false, err
		}
	}
}

// finishStep acts on a step that ends this pass: a failure, a hold or a retry.
func (e *Engine) finishStep(ctx context.Context, c *Claimed, p *progress, s step) error {
	switch s {
	case stepNoHistory:
		return &heldError{reason: HoldHistory, cause: errors.New("no endpoint's history reaches back to an attempt that can land no more: give the relay an endpoint with the role archive")}
	case stepHold:
		return &heldError{reason: string(p.class), cause: p.failure}
	case stepRetry:
		switch {
		case p.root == rootNotSeen:
			return errRootNotSeen
		case p.failure == nil:
			return errSpentNotFinal
		}
		return fmt.Errorf("try transaction: %w", p.failure)
	}
	if s == stepFailRoot && p.class != shieldpool.ClassStaleProof {
		if err := e.tryRoot(ctx, c, p); err != nil {
			return err
		}
	}
	// Whatever still counts as live cannot land: only its history may be missing.
	if err := e.markDead(ctx, c, asExpired(c.Live)); err != nil {
		return err
	}
	switch s {
	case stepFailSpent:
		return e.fail(ctx, c, NullifierSpent(p.spent))
	case stepFailRoot:
		return e.fail(ctx, c, StaleRoot(c.Call.Inputs.Root, p.tree.Root).Because(p.cause()))
	default:
		return e.fail(ctx, c, e.classRefusal(ctx, c, p))
	}
}

// tryRoot asks the program whether it knows a root that the tree account, which is
// one endpoint's word, does not hold any more: nil when it fails the transaction for
// good, so that a submission does not end by a tree that is made up.
func (e *Engine) tryRoot(ctx context.Context, c *Claimed, p *progress) error {
	for _, payer := range e.Payers.Keys() {
		_, runs, err := e.simulate(ctx, c, p, e.transact(c), payer)
		switch {
		case err != nil:
			return err
		case runs:
			return errProgramTakesRoot
		case permanent(p.class) && p.class != shieldpool.ClassSpent: // who spent the notes is looked at anew
			return nil
		case p.class != shieldpool.ClassFeePayerEmpty:
			return fmt.Errorf("try transaction: %w", p.failure)
		}
	}
	return fmt.Errorf("try transaction: %w", p.failure)
}

// errProgramTakesRoot says that the program runs what, by the tree account, it cannot.
var errProgramTakesRoot = errors.New("the tree account that was read does not hold the root, and the program takes it: the endpoint that answered is wrong or behind")

// errSpentNotFinal says that another transaction spent the notes, in a block that a
// fork may still undo.
var errSpentNotFinal = errors.New("the notes are spent by another transaction that is not yet final")

// errRootNotSeen says that the node that was asked has not seen the root yet.
var errRootNotSeen = errors.New("the ring does not hold the root, and too few leaves followed it for it to have left: the node that answers is behind, or on another fork")

// cause is the failure as an error, without the pitfall of a typed nil.
func (p *progress) cause() error {
	if p.failure == nil {
		return nil
	}
	return p.failure
}

// resolveAttempts looks the live attempts up in all history, unless the tracker just
// did, and buries the dead ones.
func (e *Engine) resolveAttempts(ctx context.Context, w *entry, p *progress) error {
	look := w.look
	w.look = nil
	if look == nil {
		found, err := e.Chain.Search(ctx, signaturesOf(w.c.Live))
		if err != nil {
			return e.unreachable(w.c, err)
		}
		look = &found
	}
	if slices.ContainsFunc(look.Statuses, func(s *ledger.Status) bool { return s != nil && s.Unverified }) {
		e.tracker.markUnverified(w)
	}
	return e.applyVerdicts(ctx, w.c, p, look)
}

// applyVerdicts takes one look's verdicts on the live attempts.
func (e *Engine) applyVerdicts(ctx context.Context, c *Claimed, p *progress, look *ledger.Look) error {
	p.minContextSlot = max(p.minContextSlot, look.FinalizedSlot)
	var dead []DeadAttempt
	for i := range c.Live {
		a, st := &c.Live[i], look.Statuses[i]
		v := classify(a, st, look)
		p.verdicts = append(p.verdicts, v)
		switch v {
		case landed:
			p.landing, p.purpose = &Outcome{Signature: a.Signature, Slot: st.Slot, Phase: a.Purpose.endPhase()}, a.Purpose
		case failedOnChain:
			p.failure, p.class = st.Err, e.classOf(a.Purpose, st.Err)
			dead = append(dead, DeadAttempt{Signature: a.Signature, Paid: a.Fee})
			e.Observer.Attempt("failed_on_chain")
			e.reportFailure(c, a, p.class, st.Err)
		case expired:
			dead = append(dead, DeadAttempt{Signature: a.Signature})
			e.Observer.Attempt("expired")
		case mayLand, forgotten:
		}
	}
	return e.markDead(ctx, c, dead)
}

// reportFailure passes on what a failure says of payer and compute limit.
func (e *Engine) reportFailure(c *Claimed, a *Attempt, class shieldpool.Class, cause error) {
	switch class {
	case shieldpool.ClassFeePayerEmpty:
		e.Payers.MarkRefused(a.FeePayer, cause)
	case shieldpool.ClassRaiseCompute:
		if a.Purpose != PurposeExecute {
			e.compute.raise(computeKind(c, a.Purpose))
		}
	default:
	}
}

func (e *Engine) classOf(p Purpose, err *shieldpool.TransactionError) shieldpool.Class {
	if p == PurposeTransact || err.Kind != "InstructionError" || err.Detail != "Custom" {
		return e.Pool.Profile.ClassOfTransaction(err, shieldpool.PoolInstruction)
	}
	// The codes are those of the router, of the token program, of whatever the router
	// calls: none says anything of the payer or of the pool.
	return shieldpool.ClassTransient
}

// unreachable is an error of a call, as what the submission waits for.
func (e *Engine) unreachable(c *Claimed, err error) error {
	if !errors.Is(err, ledger.ErrUnavailable) || c.Tries < triesBeforeHold {
		return err
	}
	unavailable := (*ledger.Unavailable)(nil)
	if errors.As(err, &unavailable) && unavailable.Kind == ledger.KindUnverified {
		return &heldError{reason: HoldSecondEndpoint, cause: err}
	}
	return &heldError{reason: HoldChain, cause: err}
}

// readNotes looks at the nullifiers' accounts, on a node that has seen all that
// the verdicts rest on, and finds out whose they are when they exist.
func (e *Engine) readNotes(ctx context.Context, c *Claimed, p *progress) error {
	seen, err := e.State.Inspect(ctx, c.Call.Inputs, c.Call.Recipient, p.minContextSlot)
	if err != nil {
		return heldByRefusal(c, err)
	}
	p.minContextSlot = max(p.minContextSlot, seen.Slot)
	index := slices.Index(seen.Spent[:], true)
	if index < 0 {
		p.notes = notesUnspent
		return nil
	}
	p.spent = index
	return e.findSpender(ctx, c, p)
}

// findSpender tells who spent the notes: an attempt of ours, dead ones included; a
// transaction of ours that the database lost; or somebody else.
func (e *Engine) findSpender(ctx context.Context, c *Claimed, p *progress) error {
	own, err := e.findOwnLanding(ctx, c, slices.Concat(c.Live, c.Dead))
	if err != nil || own != nil {
		p.notes, p.landing = notesSpentByUs, own
		return err
	}
	made, err := e.State.Creation(ctx, c.Call.Inputs.Nullifiers[p.spent])
	switch {
	case err != nil:
		return e.unreachable(c, err)
	case made == nil:
		p.notes = notesUnknown
	case e.isOwnTransaction(c, made):
		p.notes, p.landing = notesSpentByUs, &Outcome{Signature: made.Signature, Slot: made.Slot}
		e.Observer.Attempt("adopted")
		e.Log.WarnContext(ctx, "landing of this relay found that the database did not know", "request_id", c.ID, "slot", made.Slot)
	case made.Confirmation.AtLeast(ledger.Finalized):
		p.notes = notesSpentByOther
	default:
		p.notes = notesSpentNotFinal
	}
	return nil
}

// isOwnTransaction reports whether a transaction is this submission's: paid by a payer of
// ours, and doing exactly what was asked. A swap that somebody else began in the
// same words is ours too: its lamports wait for a second leg.
func (e *Engine) isOwnTransaction(c *Claimed, made *ledger.Creation) bool {
	payer := c.Kind == shieldpool.KindSwap || e.Payers.Owns(made.FeePayer) ||
		slices.ContainsFunc(slices.Concat(c.Live, c.Dead), func(a Attempt) bool { return a.FeePayer == made.FeePayer })
	return payer && made.Call != nil && ContentHash(made.Call) == ContentHash(c.Call)
}

// errUnconfirmed says that an attempt succeeded in a block that is not yet
// confirmed: whose landing a spent nullifier is shows only then.
var errUnconfirmed = errors.New("an attempt is on the chain, not yet confirmed")

// findOwnLanding looks attempts up, dead ones too: a nullifier that is spent may have
// been spent by us.
func (e *Engine) findOwnLanding(ctx context.Context, c *Claimed, attempts []Attempt) (*Outcome, error) {
	for some := range slices.Chunk(attempts, statusBatch) {
		look, err := e.Chain.Search(ctx, signaturesOf(some))
		if err != nil {
			return nil, e.unreachable(c, err)
		}
		for i, st := range look.Statuses {
			switch {
			case st == nil || st.Err != nil && !st.Unverified:
			case st.Unverified:
				return nil, e.unreachable(c, &ledger.Unavailable{Method: "getSignatureStatuses", Kind: ledger.KindUnverified, Detail: "no second endpoint says the same of an attempt"})
			case st.Confirmation.AtLeast(ledger.Confirmed):
				return &Outcome{Signature: some[i].Signature, Slot: st.Slot, Phase: some[i].Purpose.endPhase()}, nil
			default:
				return nil, errUnconfirmed
			}
		}
	}
	return nil, nil //nolint:nilnil // nil is "none of ours", as documented
}

// readRoot looks the root up in the ring, which is read anew when the program did not
// know the root.
func (e *Engine) readRoot(ctx context.Context, c *Claimed, p *progress) error {
	age := e.Timing.Poll
	if p.class == shieldpool.ClassStaleProof {
		age = 0
	}
	snap, err := e.State.TreeWith(ctx, c.Call.Inputs.Root, age)
	if err != nil {
		return heldByRefusal(c, err)
	}
	p.tree = snap.Tree
	if !snap.Doubtful {
		p.minContextSlot = max(p.minContextSlot, snap.Slot)
	}
	switch {
	case !snap.Checked:
		p.root = rootUnverifiable
	case snap.Tree.Headroom(c.Call.Inputs.Root) >= 0:
		p.root = rootInRing
	case evicted(c.RootSeq, snap.Tree):
		p.root = rootGone
	case p.rootLongMissing:
		return e.treatRootAsGone(ctx, p, snap.Slot)
	default:
		p.root = rootNotSeen
	}
	return nil
}

// treatRootAsGone takes a root for gone that has not come in so many tries: it was of a
// fork that died. A node that the fleet is ahead of cannot tell.
func (e *Engine) treatRootAsGone(ctx context.Context, p *progress, slot uint64) error {
	seen, err := e.Store.HighestTreeSlot(ctx, e.Pool.Address)
	if err != nil {
		return err
	}
	p.root = rootGone
	if slot < seen {
		p.root = rootNotSeen
	}
	return nil
}

// evicted reports whether so many leaves followed a root that it has left the
// ring. One that is missing before that has not come yet: the node is behind,
// or on a fork that will die, or the root was of one that died.
func evicted(rootSeq uint64, t *shieldpool.TreeAccount) bool {
	return t.NextIndex >= rootSeq+uint64(len(t.History))
}

// markDead marks attempts as dead, in the database and in the claim, and frees what
// their payers keep for them.
func (e *Engine) markDead(ctx context.Context, c *Claimed, dead []DeadAttempt) error {
	if len(dead) == 0 {
		return nil
	}
	if err := e.Store.MarkAttemptsDead(ctx, c.Lease(), dead); err != nil {
		return err
	}
	gone, paid := map[solana.Signature]bool{}, map[solana.Signature]uint64{}
	for _, d := range dead {
		gone[d.Signature], paid[d.Signature] = true, d.Paid
	}
	var live []Attempt
	for _, a := range c.Live {
		if gone[a.Signature] {
			a.Paid = paid[a.Signature]
			c.Dead = append(c.Dead, a)
		} else {
			live = append(live, a)
		}
	}
	c.Live = live
	e.releaseReservations(c, func(s solana.Signature) bool { return gone[s] })
	return nil
}

// asExpired are those of attempts that cost nothing.
func asExpired(attempts []Attempt) []DeadAttempt {
	out := make([]DeadAttempt, len(attempts))
	for i := range attempts {
		out[i] = DeadAttempt{Signature: attempts[i].Signature}
	}
	return out
}

func signaturesOf(attempts []Attempt) []solana.Signature {
	out := make([]solana.Signature, len(attempts))
	for i := range attempts {
		out[i] = attempts[i].Signature
	}
	return out
}

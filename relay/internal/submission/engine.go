package submission

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/ledger"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Timing is the engine's rhythm.
type Timing struct {
	// Lease is how long a submission stays with a worker that says nothing.
	Lease time.Duration
	// Poll is how often signatures are asked for: once a slot.
	Poll time.Duration
	// Sweep is how often due rows are looked for that no wake-up brought.
	Sweep time.Duration
	// Backoff is the first pause after a temporary failure, doubled up to BackoffCap.
	Backoff, BackoffCap time.Duration
}

// DefaultTiming suits Solana's 400 ms slots.
func DefaultTiming() Timing {
	return Timing{
		Lease: 10 * time.Second, Poll: 400 * time.Millisecond, Sweep: time.Second,
		Backoff: 250 * time.Millisecond, BackoffCap: 10 * time.Second,
	}
}

// PriceRule bounds the priority fee, in micro-lamports a compute unit: the
// percentile of recent fees, not below Floor and not above Cap.
type PriceRule struct {
	Floor, Cap uint64
	// Percentile is from 0 to 100.
	Percentile int
}

// EngineOptions configure an Engine. All fields are needed.
type EngineOptions struct {
	Store    legacyStore
	Chain    Chain
	State    PoolState
	Pool     *shieldpool.Pool
	FeePayer FeePayer
	Leaves   LeafIndex
	Signs    *SignPolicy
	Observer Observer
	Log      *slog.Logger
	Now      func() time.Time
	// Owner names this process among the holders of leases.
	Owner  uuid.UUID
	Timing Timing
	Price  PriceRule
}

// Engine advances submissions to their outcome.
type Engine struct {
	EngineOptions
	compute *computeLimits
	price   *priceCache
	tracker *tracker
}

// NewEngine checks the options.
func NewEngine(o EngineOptions) (*Engine, error) {
	if o.Store == nil || o.Chain == nil || o.State == nil || o.Pool == nil || o.FeePayer == nil || o.Leaves == nil ||
		o.Signs == nil || o.Observer == nil || o.Log == nil || o.Now == nil || o.Owner == uuid.Nil {
		return nil, errors.New("the submission engine needs every one of its options")
	}
	if t := o.Timing; t.Lease <= 0 || t.Poll <= 0 || t.Sweep <= 0 || t.Backoff <= 0 || t.BackoffCap < t.Backoff {
		return nil, errors.New("the submission engine's timing has to be above zero")
	}
	e := &Engine{EngineOptions: o, compute: newComputeLimits(), price: newPriceCache(o.Price, o.Now)}
	e.tracker = newTracker(e)
	return e, nil
}

// Advance takes a submission one short step further: it claims the row,
// settles earlier attempts, and signs and sends a new one if none can land any
// more. It does nothing when the row is not due or another worker holds it.
func (e *Engine) Advance(ctx context.Context, id uuid.UUID) error {
	c, err := e.Store.Claim(ctx, id, e.Owner, e.Timing.Lease)
	if err != nil || c == nil {
		return err
	}
	if c.State == Processing && len(c.Live)+len(c.Dead) == 0 && c.Tries == 0 {
		e.Observer.Stage("queue", e.Now().Sub(c.CreatedAt))
	}
	w := e.tracker.hold(c)
	defer e.tracker.end(w)
	return e.step(ctx, w)
}

// step acts on a submission whose lease is held, and lets go of it on the way
// out unless it is to be followed.
func (e *Engine) step(ctx context.Context, w *entry) error {
	follow, err := e.act(ctx, w.c)
	switch {
	case errors.Is(err, ErrLeaseLost):
		e.Log.DebugContext(ctx, "Left a submission to the worker that took it over", "request_id", w.c.ID)
		e.tracker.drop(w)
		return nil
	case err != nil:
		e.tracker.drop(w)
		return e.retry(ctx, w.c, err)
	case follow:
		e.tracker.follow(w)
	default:
		e.tracker.drop(w)
	}
	return nil
}

// act reports whether the submission has to be watched from here on.
func (e *Engine) act(ctx context.Context, c *Claimed) (watch bool, err error) {
	if c.State == Completed {
		return true, nil
	}
	if len(c.Live) > 0 {
		settled, err := e.settle(ctx, c)
		if err != nil || settled != unsettled {
			return settled == alive, err
		}
	}
	return e.launch(ctx, c)
}

// held marks a reason that is the deployment's and not the submission's: the
// queue waits, and says what for.
type held struct {
	reason string
	cause  error
}

func (h *held) Error() string { return "held: " + h.reason + ": " + h.cause.Error() }
func (h *held) Unwrap() error { return h.cause }

// retry gives the lease back, to come again after a pause.
func (e *Engine) retry(ctx context.Context, c *Claimed, cause error) error {
	var h *held
	reason, level := "", slog.LevelInfo
	if errors.As(cause, &h) {
		reason, level = h.reason, slog.LevelWarn
		e.Observer.Attempt("held")
	}
	delay := e.backoff(c.Tries)
	e.Log.Log(ctx, level, "Put a submission off", "request_id", c.ID, "delay", delay, "held", reason, "error", cause)
	// A step that was cancelled still has to give its lease back, while there is time for it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.Timing.Lease/2)
	defer cancel()
	if err := e.Store.Release(ctx, c.Lease(), delay, reason); err != nil && !errors.Is(err, ErrLeaseLost) {
		return fmt.Errorf("put submission off: %w", err)
	}
	return nil
}

func (e *Engine) backoff(tries int) time.Duration {
	d := e.Timing.Backoff
	for range tries {
		if d *= 2; d >= e.Timing.BackoffCap {
			return e.Timing.BackoffCap
		}
	}
	return d
}

// fail ends a submission for good.
func (e *Engine) fail(ctx context.Context, c *Claimed, why *refusal.Refusal) error {
	if c.RolledBack {
		why = why.With("rolled_back", true)
	}
	if err := e.Store.Fail(ctx, c.Lease(), why); err != nil {
		return err
	}
	e.Observer.Outcome(c.Kind, string(why.Code))
	e.Log.InfoContext(ctx, "Failed a submission", "request_id", c.ID, "code", why.Code, "error", why.Cause)
	return nil
}

// land records that an attempt is confirmed on the chain.
func (e *Engine) land(ctx context.Context, c *Claimed, sig solana.Signature, st *ledger.Status) error {
	o := e.outcome(ctx, c, sig, st)
	if err := e.Store.Complete(ctx, c.Lease(), o); err != nil {
		return err
	}
	c.State, c.Signature, c.Slot = Completed, &sig, st.Slot
	e.Observer.Outcome(c.Kind, "completed")
	e.Observer.Stage("confirm", e.Now().Sub(c.CreatedAt))
	e.Log.InfoContext(ctx, "Completed a submission", "request_id", c.ID, "slot", st.Slot)
	return nil
}

// outcomePatience is how long a landed submission waits for the index to read
// its block, so that the answer can name its leaves, and for the tree's root.
const outcomePatience = time.Second

// outcome is the landing and, for the client's convenience, leaves and root: an
// index or a chain that does not answer now must not hold it up.
func (e *Engine) outcome(ctx context.Context, c *Claimed, sig solana.Signature, st *ledger.Status) Outcome {
	ctx, cancel := context.WithTimeout(ctx, outcomePatience)
	defer cancel()
	if err := e.Leaves.Sync(ctx); err != nil {
		e.Log.DebugContext(ctx, "Completed a submission before the index had read its block", "request_id", c.ID, "error", err)
	}
	o := Outcome{Signature: sig, Slot: st.Slot, LeafIndices: e.leaves(ctx, c)}
	if snap, err := e.State.Tree(ctx, e.Timing.Poll); err == nil {
		o.Root = &snap.Tree.Root
	}
	return o
}

// leaves are where the index has the submission's commitments; nil while it has not all.
func (e *Engine) leaves(ctx context.Context, c *Claimed) []uint64 {
	var out []uint64
	for _, commitment := range c.Call.Inputs.Commitments {
		if commitment == ([32]byte{}) {
			continue
		}
		index, ok, err := e.Leaves.Find(ctx, commitment)
		if err != nil || !ok {
			return nil
		}
		out = append(out, index)
	}
	return out
}

// finalize ends the watch: no fork can undo the landing any more. Slot and
// leaves are told again: the same bytes may have landed elsewhere on another
// fork, and the index may have come later.
func (e *Engine) finalize(ctx context.Context, c *Claimed, st *ledger.Status) error {
	o := Outcome{Signature: *c.Signature, Slot: st.Slot, LeafIndices: e.leaves(ctx, c)}
	pin := SignPin{KeyHash: e.Signs.KeyHash(), Sign: c.ProofSign, Signature: o.Signature}
	if err := e.Store.Finalize(ctx, c.Lease(), o, pin); err != nil {
		return err
	}
	e.Observer.Outcome(c.Kind, "finalized")
	e.Observer.Stage("finalize", e.Now().Sub(c.CreatedAt))
	e.Log.DebugContext(ctx, "Finalized a submission", "request_id", c.ID, "slot", o.Slot)
	return nil
}

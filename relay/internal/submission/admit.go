package submission

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// treeMaxAge is how old the tree may be when its root ring knows the proof's
	// root; an unknown root is looked for in a fresh one.
	treeMaxAge = 400 * time.Millisecond
)

// AdmissionOptions configure Admission. All fields are needed.
type AdmissionOptions struct {
	Store    Store
	Pool     *shieldpool.Pool
	State    PoolState
	Payers   FeePayers
	Spending Spending
	Key      *groth16.Key
	ProofA    *ProofAPolicy
	Observer Observer
	// Engine works on what is accepted.
	Engine *Engine
	Now    func() time.Time
	// NewID makes request ids; they open /status, so they must not be guessable.
	NewID func() uuid.UUID
}

// Admission judges requests: what it accepts is durable, what it refuses
// leaves nothing behind and never reaches the chain.
type Admission struct {
	AdmissionOptions
	bounds map[shieldpool.Kind]int
	queue  queueLength
}

// NewAdmission checks the options and measures the note bounds.
func NewAdmission(o AdmissionOptions) (*Admission, error) {
	if o.Store == nil || o.Pool == nil || o.State == nil || o.Payers == nil || o.Spending == nil ||
		o.Key == nil || o.ProofA == nil || o.Observer == nil || o.Engine == nil || o.Now == nil || o.NewID == nil {
		return nil, errors.New("admission needs every one of its options")
	}
	a := &Admission{AdmissionOptions: o, bounds: map[shieldpool.Kind]int{}}
	for _, k := range []shieldpool.Kind{shieldpool.KindTransfer, shieldpool.KindWithdrawal, shieldpool.KindSwap} {
		bound, err := o.Pool.NoteBound(k, o.Engine.Table)
		if err != nil {
			return nil, fmt.Errorf("measure the note bound of a %s: %w", k, err)
		}
		a.bounds[k] = bound
	}
	return a, nil
}

// NoteBounds are the bytes of note envelope that fit each kind of transaction.
func (a *Admission) NoteBounds() map[shieldpool.Kind]int { return a.bounds }

// Submit takes a request, or finds the submission that it repeats. Bad input
// and temporary inability are refusals. Checks run from cheap to dear: bytes,
// then the proof, then the database, then the chain, so that a forged proof
// costs neither.
func (a *Admission) Submit(ctx context.Context, r Request) (*Submission, error) {
	began := a.Now()
	call, err := a.decode(r)
	if err != nil {
		return nil, err
	}
	sign, unseen, err := a.verify(ctx, call)
	if err != nil {
		return nil, err
	}
	s := &Submission{ID: a.NewID(), Pool: a.Pool.Address, Kind: call.Kind(), State: Pending, Call: call, ProofAEncoding: sign.String()}
	key := idempotencyHash(r.IdempotencyKey, r.Client, call)
	if earlier, err := a.Store.FindRepeated(ctx, s, key); err != nil || earlier != nil {
		return earlier, err
	}
	if err := a.Engine.failedNotes.check(call.Inputs, a.Now()); err != nil {
		return nil, err
	}
	place, err := a.findRoot(ctx, call.Inputs.Root)
	if err != nil {
		return nil, err
	}
	s.RootSeq = place.seq
	if err := a.checkQueue(ctx, place); err != nil {
		return nil, err
	}
	if call.Swap != nil {
		if err := a.checkSwapAccounts(ctx, call); err != nil {
			return nil, err
		}
	}
	if err := a.checkNotes(ctx, call); err != nil {
		return nil, err
	}
	if err := a.checkFunds(ctx, call); err != nil {
		return nil, err
	}
	if !unseen {
		if err := a.trySimulation(ctx, s, sign); err != nil {
			return nil, err
		}
	}
	accepted, err := a.accept(ctx, s, key)
	if err == nil {
		a.Observer.Stage("admission", a.Now().Sub(began))
	}
	return accepted, err
}

// accept commits the submission. When this process has a place for it, it is
// this process's from the commit on, without a detour through the queue.
func (a *Admission) accept(ctx context.Context, s *Submission, key []byte) (*Submission, error) {
	if !a.Engine.ReserveCapacity() {
		accepted, err := a.Store.Accept(ctx, s, key, nil)
		if accepted == s {
			a.queue.increment()
			a.Engine.NotifyOthers()
		}
		return accepted, err
	}
	accepted, err := a.Store.Accept(ctx, s, key, &a.Engine.Worker)
	if err != nil || accepted != s {
		a.Engine.CancelReservation()
		return accepted, err
	}
	a.queue.increment()
	if s.State != Processing { // the database did not know of this process's lease
		a.Engine.CancelReservation()
		a.Engine.NotifyOthers()
		return s, nil
	}
	// The engine's copy is its own: the caller reads this one meanwhile.
	mine := *s
	a.Engine.Start(ctx, &mine)
	return s, nil
}

// checkFunds refuses what no fee payer, or no cap, lets the relay pay for.
func (a *Admission) checkFunds(ctx context.Context, c *shieldpool.Call) error {
	cost := rentOf(c) + signatureFee
	held, booked := cost, cost
	if c.Swap != nil { // a swap that is begun has to be carried on
		held, booked = cost+SwapUpfrontCost, cost+tokenAccountRent+signatureFee
	}
	if err := a.Payers.Ready(ctx, held); err != nil {
		return err
	}
	return a.Spending.Ready(ctx, c.Kind() == shieldpool.KindTransfer, booked)
}

// decode checks everything that bytes alone can tell.
func (a *Admission) decode(r Request) (*shieldpool.Call, error) {
	if err := shieldpool.CheckProofLength(r.Proof); err != nil {
		return nil, err
	}
	in, err := shieldpool.ParsePublicInputs(r.PublicInputs)
	if err != nil {
		return nil, err
	}
	if err := in.CheckNullifiers(); err != nil {
		return nil, err
	}
	if err := a.checkAmount(in, r.WithdrawalOnly || r.Swap != nil); err != nil {
		return nil, err
	}
	if _, ok := a.Pool.Profile.MintByField(in.MintAddress); !ok {
		return nil, refusal.New(refusal.UnknownMint, "mintAddress is the field value of no mint of this pool: GET / lists the mints that this relay serves")
	}
	call := &shieldpool.Call{Proof: r.Proof, Inputs: in, Notes: r.Notes}
	switch {
	case r.Swap != nil:
		call.Destination, err = a.swapDestination(r, in)
	case in.PublicAmount < 0:
		call.Recipient, err = a.parseRecipient(r.Recipient, in)
	}
	if err != nil {
		return nil, err
	}
	if !a.Pool.Profile.BindsDestination(in, call.Destination) {
		return nil, extDataMismatch(call.Kind())
	}
	return call, shieldpool.CheckNotes(call.Notes, a.bounds[call.Kind()])
}

func (a *Admission) checkAmount(in *shieldpool.PublicInputs, withdrawalOnly bool) error {
	switch {
	case in.PublicAmount > 0:
		return refusal.New(refusal.DepositNotRelayed,
			"publicAmount is above zero, a deposit: expected zero or less; the depositor's own wallet signs a deposit and sends it to the chain itself")
	case in.PublicAmount == 0 && withdrawalOnly:
		return refusal.New(refusal.WithdrawalRequired, "publicAmount is zero, a transfer: this route takes withdrawals, expected below zero; send transfers to POST /transact")
	case in.PublicAmount == 0:
		return nil
	}
	if _, ok := a.Pool.Profile.Fees.Net(in.Gross()); !ok {
		f := a.Pool.Profile.Fees
		return refusal.New(refusal.AmountBelowFee,
			"the withdrawal is not above its fee of %d lamports and %d/%d of the amount: expected a recipient's share above zero; withdraw more", f.Base, f.Numerator, f.Denominator)
	}
	return nil
}

func (a *Admission) parseRecipient(text string, in *shieldpool.PublicInputs) (solana.PublicKey, error) {
	if text == "" {
		return solana.PublicKey{}, refusal.New(refusal.RecipientRequired, "recipient is missing: a withdrawal (publicAmount below zero) needs the base58 address of the wallet to pay")
	}
	key, err := solana.PublicKeyFromBase58(text)
	if err != nil {
		return key, refusal.New(refusal.InvalidRecipient, "recipient is not an address: expected 32 bytes in base58, received %d characters that are not", len(text))
	}
	return key, a.checkRecipient(key, in)
}

func (a *Admission) checkRecipient(key solana.PublicKey, in *shieldpool.PublicInputs) error {
	for _, payer := range a.Payers.Keys() {
		if err := a.Pool.CheckRecipient(payer, key, in); err != nil {
			return err
		}
	}
	return nil
}

func extDataMismatch(k shieldpool.Kind) *refusal.Refusal {
	if k == shieldpool.KindSwap {
		return refusal.New(refusal.ExtDataMismatch,
			"extDataHash does not bind this swap: expected 0x00 and the first 31 bytes of sha256 of output_mint ‖ recipient_ata ‖ min_output_amount, the addresses as 32 bytes each and the amount as u64 little-endian; make the proof for the swap that the request names")
	}
	return refusal.New(refusal.ExtDataMismatch,
		"extDataHash does not bind this recipient: expected 0x00 and the first 31 bytes of sha256 of the recipient's 32 bytes; make the proof for the recipient that the request names")
}

// verify checks the proof on this machine, before any call leaves it. It tells the
// sign of its A, and whether that is taken unseen.
func (a *Admission) verify(ctx context.Context, c *shieldpool.Call) (sign groth16.Sign, unseen bool, err error) {
	began := a.Now()
	proof, err := groth16.ParseProof(c.Proof)
	if err != nil {
		return sign, false, refusal.New(refusal.ProofInvalid,
			"proof_bytes holds no points of the curve: expected A (G1) x‖y, B (G2) x.c1‖x.c0‖y.c1‖y.c0, C (G1) x‖y, big-endian and uncompressed").Because(err)
	}
	signals := c.Inputs.Signals()
	sign, err = a.Key.Verify(proof, signals[:])
	a.Observer.Stage("verify", a.Now().Sub(began))
	if err != nil {
		return sign, false, refusal.New(refusal.ProofInvalid,
			"the proof does not verify for these public inputs under the pool's verifying key: prove again with the pool's circuit and key").Because(err)
	}
	unseen, err = a.ProofA.Accepts(ctx, sign)
	if err == nil && !unseen && a.ProofA.Configured() {
		err = wrongEncoding(sign)
	}
	return sign, unseen, err
}

func wrongEncoding(s groth16.Sign) error {
	return refusal.New(refusal.ProofInvalid, "the proof's A has the %s sign, which the pool's program does not take: send A with the other sign; if it is the right one, the relay's operator has to look at --proof-a and relay proof-a", s)
}

// trySimulation runs a call whose proof has another sign than those that have landed: the
// pin may be wrong, and the program says which it takes. What it says of notes and
// root is left to those who look at them.
func (a *Admission) trySimulation(ctx context.Context, s *Submission, sign groth16.Sign) error {
	failure, err := a.Engine.Try(ctx, s.Call)
	if err == nil && failure == nil {
		return nil
	}
	if err == nil {
		p := &progress{facts: facts{class: a.Engine.classOf(PurposeTransact, failure)}, failure: failure}
		switch {
		case p.class == shieldpool.ClassSpent, p.class == shieldpool.ClassStaleProof, !permanent(p.class):
			err = failure
		case refusesProof(failure):
			return wrongEncoding(sign)
		default:
			return a.Engine.classRefusal(ctx, &Claimed{Submission: s}, p)
		}
	}
	return refusal.New(refusal.ChainUnavailable,
		"the proof's A has another sign than what has landed before, and the relay cannot try it on the chain now, so nothing was decided: send the same request again later").
		Retry(busyRetryAfter).Because(err)
}

// staleRoot is the refusal that clients parse: they look for the word
// RootNotFound and read current_root.
func staleRoot(root, current [32]byte) *refusal.Refusal {
	return refusal.New(refusal.RootNotFound,
		"RootNotFound (stale Merkle root): proof root %.8x not in root history (current root %.8x)", root[:], current[:]).
		With("current_root", fmt.Sprintf("%x", current))
}

// checkNotes asks the chain whether the notes are unspent and the recipient can be paid.
func (a *Admission) checkNotes(ctx context.Context, c *shieldpool.Call) error {
	seen, err := a.State.Inspect(ctx, c.Inputs, c.Recipient, 0)
	if err != nil {
		return err
	}
	for i, spent := range seen.Spent {
		if !spent {
			continue
		}
		// Whose note is called spent by mistake takes it for lost. Where the endpoints
		// contradict each other, two simulations tell once it is accepted.
		if spent, err = a.State.Spent(ctx, c.Inputs.Nullifiers[i]); err != nil {
			return err
		}
		if spent {
			return nullifierSpent(i)
		}
	}
	if c.Swap != nil && seen.RecipientExists && !seen.RecipientOwner.Equals(solana.SystemProgramID) {
		return refusal.New(refusal.InvalidRecipient,
			"the recipient's account belongs to a program other than the system program, so it is no wallet and a refund might be lost in it: expected a wallet's own address")
	}
	if c.Kind() != shieldpool.KindWithdrawal {
		return nil // a refund brings a swap's recipient the rent of the swap state too, which is above the least
	}
	net, _ := a.Pool.Profile.Fees.Net(c.Inputs.Gross())
	if least := a.Pool.Profile.RecipientMinimum; net < least && seen.RecipientLamports < least-net {
		return recipientBelowRent(least)
	}
	return nil
}

func nullifierSpent(i int) *refusal.Refusal {
	return refusal.New(refusal.NullifierSpent, "nullifier %d is already spent on the chain: its note is gone; choose another note", i).With("nullifier_index", i)
}

func recipientBelowRent(least uint64) *refusal.Refusal {
	return refusal.New(refusal.RecipientBelowRent,
		"the recipient would hold less than %d lamports, the least that the network lets an account hold: withdraw more, or to a wallet that holds more", least)
}

// idempotencyHash is the name that a client's key is kept under. With API keys
// each client has keys of its own. Without, nobody can tell clients apart, so a
// key belongs to its content: nobody can use up another's.
func idempotencyHash(key string, client [32]byte, c *shieldpool.Call) []byte {
	if key == "" {
		return nil
	}
	scope := client
	if scope == [32]byte{} {
		scope = ContentHash(c)
	}
	h := sha256.Sum256(slices.Concat([]byte("relaypool/idempotency-key/v2"), scope[:], []byte(key)))
	return h[:]
}

// Package admission checks requests. It commits accepted requests to the database. A refused
// request is not stored and never sent to the chain.
package admission

import (
	"cmp"
	"context"
	cryptorand "crypto/rand"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"k8s.io/utils/lru"

	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Options configure an Admission. All fields but SimulationTimeout are needed.
type Options struct {
	Store    submission.Store
	Pool     *shieldpool.Pool
	State    submission.PoolState
	Payers   txmgr.FeePayers
	Spending txmgr.Spending
	Key      *groth16.Key
	ProofA   *submission.ProofAPolicy
	Observer submission.Observer
	// Submissions works on accepted submissions.
	Submissions *submission.Handler
	// Ready returns an error while nothing may be accepted.
	Ready func() error
	Now   func() time.Time
	// NewID generates request ids. They give access to /status, so they must not be guessable.
	NewID func() uuid.UUID
	// CallTimeout bounds each try to accept a request. A request that waits for the chain is
	// tried several times.
	CallTimeout time.Duration
	// SimulationTimeout is how long a request waits for the simulation of its transaction, before its notes are
	// read: an endpoint that is slow to simulate may still read accounts quickly. 0 means 500 ms.
	SimulationTimeout time.Duration
}

// Admission checks requests and accepts them.
type Admission struct {
	Options
	bounds   shieldpool.NoteBounds
	proofs   *proofQueue
	verified *lru.Cache // the groth16.ProofAEncoding by the proofID
	queue    queue
	pause    busyPause
	waits    chainWaits
	// checking is the number of requests whose notes are being checked.
	checking atomic.Int64
}

// New checks the options and computes the note bounds.
func New(o Options) (*Admission, error) {
	if o.Store == nil || o.Pool == nil || o.State == nil || o.Payers == nil || o.Spending == nil ||
		o.Key == nil || o.ProofA == nil || o.Observer == nil || o.Submissions == nil || o.Ready == nil || o.Now == nil || o.NewID == nil || o.CallTimeout <= 0 {
		return nil, errors.New("admission needs all of its options")
	}
	o.SimulationTimeout = cmp.Or(o.SimulationTimeout, defaultSimulationTimeout)
	a := &Admission{Options: o, verified: lru.New(verifiedKept), waits: chainWaits{now: o.Now, random: rand.Float64, callTimeout: o.CallTimeout, closing: make(chan struct{})}}
	a.proofs = newProofQueue(proofCores(runtime.GOMAXPROCS(0)), func(claims []groth16.Claim, expected groth16.ProofAEncoding) []groth16.Verdict {
		return o.Key.VerifyBatch(claims, expected, cryptorand.Reader)
	})
	var err error
	if a.bounds, err = o.Pool.NoteBounds(o.Submissions.Table); err != nil {
		return nil, err
	}
	return a, nil
}

// Submit accepts a request, or returns the earlier submission that the request repeats. For bad
// input and for temporary conditions it returns a refusal. It checks the bytes first, then the
// proof, then the database, then the chain, so that a forged proof causes no call to database or
// chain. While the chain is unavailable for a moment, Submit asks database and chain again until
// the request's Wait has passed. Submit checks the bytes and the proof only once.
func (a *Admission) Submit(ctx context.Context, r submission.Request) (*submission.Submission, error) {
	began := a.Now()
	call, err := a.decode(r)
	if err != nil {
		return nil, err
	}
	encoding, err := a.verify(ctx, call)
	if err != nil {
		return nil, err
	}
	key, checksTook := KeyHash(r.IdempotencyKey, r.Client, call), a.Now().Sub(began)
	var admitted *submission.Submission
	err = a.waits.retry(ctx, r.Wait, func(ctx context.Context) (err error) {
		callCopy := *call // each try has its own copy, because admit may add the recipient to the call
		admitted, err = a.admit(ctx, &callCopy, encoding, key, checksTook)
		return err
	})
	return admitted, err
}

// admit accepts a call whose bytes and proof are valid, or returns the earlier submission that the
// call repeats. The time of the admission stage includes checksTook, the time of the checks of the
// bytes and the proof. It does not include the time between tries.
func (a *Admission) admit(ctx context.Context, call *shieldpool.Call, encoding groth16.ProofAEncoding, key []byte, checksTook time.Duration) (*submission.Submission, error) {
	began := a.Now()
	if err := a.Ready(); err != nil {
		return nil, err
	}
	c, earlier, err := a.Check(ctx, call, encoding, key)
	if err != nil || earlier != nil {
		return earlier, err
	}
	accepted, err := c.Accept(ctx)
	if err == nil {
		a.pause.countAccepted(a.Now())
		a.Observer.Stage("admission", checksTook+a.Now().Sub(began))
	}
	return accepted, err
}

// Checked is a submission that may be accepted. The caller of Check must call Accept.
type Checked struct {
	a     *Admission
	s     *submission.Submission
	key   []byte
	first firstTransaction
}

// Check checks with database and chain whether a call may be accepted. The call's bytes and proof
// must be valid. Check returns the submission to accept, or the earlier submission that the call
// repeats.
func (a *Admission) Check(ctx context.Context, call *shieldpool.Call, encoding groth16.ProofAEncoding, key []byte) (_ *Checked, earlier *submission.Submission, err error) {
	encodingAccepted, err := a.acceptsEncoding(ctx, encoding)
	if err != nil {
		return nil, nil, err
	}
	s := &submission.Submission{ID: a.NewID(), Pool: a.Pool.Address, Kind: call.Kind(), State: submission.Pending, Call: call, ProofAEncoding: encoding.String()}
	if earlier, err := a.Store.FindRepeated(ctx, s, key); err != nil || earlier != nil {
		return nil, earlier, err
	}
	if err := a.checkNewNotes(call); err != nil {
		return nil, nil, err
	}
	if err := a.Submissions.RefuseFailedNotes(call.Inputs); err != nil {
		return nil, nil, err
	}
	window, err := a.findRoot(ctx, call.Inputs.Root)
	if err != nil {
		return nil, nil, err
	}
	s.RootSeq = window.seq
	if err := a.enterQueue(ctx, call.Inputs.Root, window); err != nil {
		return nil, nil, err
	}
	checked := &Checked{a: a, s: s, key: key, first: firstTransaction{submissions: a.Submissions, timeout: a.SimulationTimeout}}
	passed := false
	defer func() {
		if !passed { // also after a panic
			checked.first.cancel()
			a.queue.leave(window.seq, false)
		}
	}()
	if call.Swap != nil {
		if err := a.checkSwapAccounts(ctx, call); err != nil {
			return nil, nil, err
		}
	}
	funds := a.checkFunds(ctx, call)
	if err := a.checkUnspent(ctx, call, checked, encodingAccepted && funds == nil); err != nil {
		return nil, nil, err
	}
	if funds != nil {
		return nil, nil, funds
	}
	if !encodingAccepted {
		if err := a.tryEncoding(ctx, s, encoding); err != nil {
			return nil, nil, err
		}
	}
	passed = true
	return checked, nil, nil
}

// Accept commits the submission. If this process has capacity for it, the process owns the submission from the
// commit on, without a claim from the queue.
func (c *Checked) Accept(ctx context.Context) (accepted *submission.Submission, err error) {
	s, store, manager := c.s, c.a.Store, c.a.Submissions.Manager
	defer func() {
		c.first.cancel() // also after a panic
		c.a.queue.leave(s.RootSeq, err == nil && accepted == s)
	}()
	if !c.first.prepare(ctx, s) {
		accepted, err = store.Accept(ctx, s, c.key, nil)
		if accepted == s {
			manager.NotifyOthers()
		}
		return accepted, err
	}
	accepted, err = store.Accept(ctx, s, c.key, &manager.Worker)
	if err != nil || accepted != s {
		return accepted, err
	}
	if s.State != submission.Processing { // the database did not make this process the owner
		manager.NotifyOthers()
		return s, nil
	}
	// The manager needs its own copy, because the caller goes on reading s.
	managed := *s
	manager.Start(ctx, managed.Job(), c.first.handOver())
	return s, nil
}

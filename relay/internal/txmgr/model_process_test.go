package txmgr_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/admission"
	"github.com/relaypool/relaypool/relay/internal/commitments"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// modelProcess is one relay process: a transaction manager between a real store and a model chain,
// whose loops the model runs. Every call to store and chain passes through reach, where the process
// can die or pause.
type modelProcess struct {
	w      *modelWorld
	name   string
	worker uuid.UUID
	key    solana.PrivateKey

	manager     *txmgr.Manager
	admission   *admission.Admission
	concurrency int

	mu sync.Mutex
	// dead: the process has been killed, and its later calls fail.
	dead bool
	// dieAt is the point at which the process dies. stopAt is the point at which a step of the driver
	// pauses.
	dieAt, stopAt string
	stopped       *modelStop
	// noSignatures: the process's nodes report no signature. unanswered is a method whose calls get no answer.
	noSignatures bool
	unanswered   string
	// tree is the newest tree that the process has read.
	tree     onchain.Snapshot
	reserved map[solana.PublicKey]int64
}

// modelStop is a step that is paused in the middle of a call.
type modelStop struct {
	lease  txmgr.Lease
	at     string
	resume chan struct{}
}

// stepKey is the key, in a step's context, of its modelStep.
type stepKey struct{}

// modelStep is a step, under the lease. For a submission that is being accepted, acceptEnded is closed
// when that has ended, and started is then true if the step starts.
type modelStep struct {
	lease       txmgr.Lease
	acceptEnded chan struct{}
	started     bool
}

// waitAccepted lets what is prepared ahead of a step begin only when the submission is accepted, so that
// the calls have an order. It returns false if the step does not start.
func (s *modelStep) waitAccepted(point string) bool {
	if s == nil || s.acceptEnded == nil || strings.HasPrefix(point, "accept ") {
		return true
	}
	<-s.acceptEnded
	return s.started
}

var errKilled = errors.New("the process has been killed")

// reach is called before and after every call, with the point's name, such as "send before".
func (p *modelProcess) reach(ctx context.Context, point string) error {
	step, ok := ctx.Value(stepKey{}).(*modelStep)
	if !step.waitAccepted(point) {
		return errKilled
	}
	p.mu.Lock()
	if p.dieAt == point {
		p.dead = true
		p.w.note("%s dies at %q", p.name, point)
	}
	if p.dead {
		p.mu.Unlock()
		return errKilled
	}
	if p.stopAt != point || !ok || p.stopped != nil {
		p.mu.Unlock()
		return nil
	}
	stop := &modelStop{lease: step.lease, at: point, resume: make(chan struct{})}
	p.stopAt, p.stopped = "", stop
	p.mu.Unlock()
	p.w.note("%s pauses at %q with %s", p.name, point, p.w.shortID(step.lease.ID))
	<-stop.resume
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return errKilled
	}
	return nil
}

// pausedStep returns the paused step, or nil.
func (p *modelProcess) pausedStep() *modelStop {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopped
}

// waitIdle waits until nothing of the process runs, except its paused step.
func (p *modelProcess) waitIdle() {
	p.w.t.Helper()
	for deadline := time.Now().Add(modelPatience); ; {
		var except []txmgr.Lease
		if s := p.pausedStep(); s != nil {
			except = append(except, s.lease)
		}
		if p.manager.Idle(except...) {
			return
		}
		if time.Now().After(deadline) {
			p.w.fatal("%s is not idle within %s", p.name, modelPatience)
		}
		time.Sleep(50 * time.Microsecond)
	}
}

// resume resumes the paused step, and waits until it has ended.
func (p *modelProcess) resume() {
	p.mu.Lock()
	s := p.stopped
	p.stopped, p.stopAt = nil, ""
	p.mu.Unlock()
	if s != nil {
		close(s.resume)
	}
	p.manager.WaitSteps()
}

// kill ends the process as SIGKILL does.
func (p *modelProcess) kill() {
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
	p.resume()
}

func (p *modelProcess) alive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.dead
}

// modelFault is the fault of one call.
type modelFault int

const (
	faultNone modelFault = iota
	// faultSilent: the call is not made, and gets no answer. faultLost: the call is made, and its
	// answer is lost.
	faultSilent
	faultLost
	// faultBehind: the node that answers lags. faultNull: the node knows no signature.
	faultBehind
	faultNull
	// faultDropped: the node accepts a transaction, and does not forward it.
	faultDropped
)

// fault chooses the fault of a call. The same call in the same operation always gets the same fault,
// in any order of concurrent calls.
func (p *modelProcess) fault(method, key string) (modelFault, *rand.Rand) {
	if p.unanswered == method {
		return faultSilent, nil
	}
	if p.noSignatures && (method == "statuses" || method == "search") {
		return faultNull, nil
	}
	if p.w.faults == 0 {
		return faultNone, nil
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %d %s %s %s", p.w.seed, p.w.tick, p.name, method, key)
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	if r.IntN(100) >= p.w.faults {
		return faultNone, r
	}
	kinds := []modelFault{faultSilent, faultLost}
	switch method {
	case "statuses", "search":
		kinds = []modelFault{faultSilent, faultBehind, faultBehind, faultNull, faultNull}
	case "tree", "inspect", "simulate", "blockhash", "creation":
		kinds = []modelFault{faultSilent, faultBehind}
	case "send":
		kinds = []modelFault{faultSilent, faultLost, faultBehind, faultDropped, faultDropped}
	}
	return kinds[r.IntN(len(kinds))], r
}

// viewFor returns the view of the node that answers a call.
func (p *modelProcess) viewFor(f modelFault, r *rand.Rand) modelView {
	if f != faultBehind {
		return p.w.chain.newestView()
	}
	return p.w.chain.olderView(1 + r.IntN(12))
}

// ask makes one call with its faults. act makes the actual call; unknown returns the error of a call
// without an answer. A pause before the call does not use up the call's time.
func ask[T any](ctx context.Context, p *modelProcess, method, key string, unknown func(string) error, act func(context.Context, modelFault, modelView) (T, error)) (T, error) {
	var zero T
	if err := p.reach(ctx, method+" before"); err != nil {
		return zero, unknownBecause(unknown(method), err)
	}
	f, r := p.fault(method, key)
	if f == faultSilent {
		return zero, unknown(method)
	}
	out, err := act(context.WithoutCancel(ctx), f, p.viewFor(f, r))
	if err := p.reach(ctx, method+" after"); err != nil {
		return zero, unknownBecause(unknown(method), err)
	}
	if f == faultLost {
		return zero, unknown(method)
	}
	return out, err
}

// unknownBecause adds the cause to the error of a call without an answer, for the log.
func unknownBecause(unknown, why error) error { return fmt.Errorf("%w (%w)", unknown, why) }

func noChain(method string) error {
	return &onchain.Unavailable{Method: method, Kind: onchain.KindTimeout}
}

func noPool(method string) error {
	return refusal.New(refusal.ChainUnavailable, "the model's chain does not answer").Because(noChain(method))
}

func noDatabase(method string) error {
	return refusal.New(refusal.DatabaseUnavailable, "the model's database does not answer to %s", method)
}

// The payers of the model: each process prefers its own.

func (p *modelProcess) PublicKey() solana.PublicKey { return p.key.PublicKey() }

// Keys implements txmgr.FeePayers.
func (p *modelProcess) Keys() []solana.PublicKey { return p.w.payers }

// Owns implements txmgr.FeePayers.
func (p *modelProcess) Owns(key solana.PublicKey) bool { return p.w.isPayer(key) }

// Ready implements txmgr.FeePayers.
func (p *modelProcess) Ready(_ context.Context, lamports uint64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.affords(lamports)
}

// affords refuses when the process's payer cannot spend lamports. The caller holds mu.
func (p *modelProcess) affords(lamports uint64) error {
	holds := int64(p.w.chain.newestView().confirmed.state.lamports[p.key.PublicKey()])
	if holds-p.reserved[p.key.PublicKey()] >= int64(lamports) {
		return nil
	}
	return refusal.New(refusal.FeePayerEmpty, "the model's payer is empty")
}

// Pick implements txmgr.FeePayers.
func (p *modelProcess) Pick(_ context.Context, lamports uint64, _ bool) (txmgr.Payer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.affords(lamports); err != nil {
		return nil, err
	}
	if f, _ := p.fault("pick", fmt.Sprint(lamports)); f != faultNone {
		return nil, txmgr.ErrSignerUnavailable
	}
	p.reserved[p.key.PublicKey()] += int64(lamports)
	return p, nil
}

// Sign implements txmgr.Payer. Its faults are those of a key service.
func (p *modelProcess) Sign(_ context.Context, message []byte) (solana.Signature, error) {
	if f, _ := p.fault("sign", string(message)); f != faultNone {
		return solana.Signature{}, txmgr.ErrSignerUnavailable
	}
	return p.key.Sign(message)
}

// Cancel implements txmgr.FeePayers.
func (p *modelProcess) Cancel(key solana.PublicKey, lamports uint64) { p.Release(key, lamports) }

func (p *modelProcess) Release(payer solana.PublicKey, lamports uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reserved[payer] -= int64(lamports); p.reserved[payer] < 0 {
		p.w.violated("%s released more lamports than were reserved", p.name)
	}
}

// MarkRefused implements txmgr.FeePayers.
func (p *modelProcess) MarkRefused(solana.PublicKey, error) {}

// MarkWorking implements txmgr.FeePayers.
func (p *modelProcess) MarkWorking(solana.PublicKey) {}

// Since implements submission.LeafIndex.
func (p *modelProcess) Since([32]byte) (r commitments.Recent, ok bool) { return r, false }

// IsProcessed implements submission.LeafIndex. The model's clients prove against confirmed roots.
func (p *modelProcess) IsProcessed(context.Context, [32]byte) bool { return false }

// FindLanded implements submission.LeafIndex.
func (p *modelProcess) FindLanded(ctx context.Context, _ []uint64, commitments [][32]byte) (map[[32]byte]uint64, error) {
	return p.Find(ctx, commitments)
}

// Find implements submission.LeafIndex.
func (p *modelProcess) Find(_ context.Context, commitments [][32]byte) (map[[32]byte]uint64, error) {
	placed, out := p.w.chain.newestView().confirmed.state.placed, map[[32]byte]uint64{}
	for _, c := range commitments {
		if i, ok := placed[c]; ok {
			out[c] = i
		}
	}
	return out, nil
}

// The observer of the model ignores most events.

// Stage implements submission.Observer.
func (p *modelProcess) Stage(string, time.Duration) {}

// Outcome implements submission.Observer.
func (p *modelProcess) Outcome(shieldpool.Kind, string) {}

// Attempt implements submission.Observer.
func (p *modelProcess) Attempt(event string) {
	switch event {
	case "panic":
		p.w.violated("a step of %s panicked", p.name)
	case "adopted":
		p.w.note("%s finds an own landing that the database did not know", p.name)
	}
}

// Lease implements submission.Observer.
func (p *modelProcess) Lease(string, int) {}

// Poll implements submission.Observer.
func (p *modelProcess) Poll(int, bool)                     {}
func (p *modelProcess) LandedAfter(string, uint64, uint64) {}

func (p *modelProcess) LaneExpired(string) {}

// modelKey returns a key of the signatures for fault; it does not depend on their order.
func modelKey(sigs []solana.Signature) string {
	var sum [4]byte
	for _, s := range sigs {
		for i := range s {
			sum[i%4] ^= s[i]
		}
	}
	return fmt.Sprintf("%x", sum)
}

// points lists the points before and after the calls of the methods.
func points(methods string) (out []string) {
	for _, m := range strings.Fields(methods) {
		out = append(out, m+" before", m+" after")
	}
	return out
}

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
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// modelProcess is one relay process: an engine that is driven by hand, between a real store and a
// model chain. Every call to them passes through reach, where the process can die, be paused, or get no answer.
type modelProcess struct {
	w      *modelWorld
	name   string
	worker uuid.UUID
	key    solana.PrivateKey

	engine    *txmgr.Manager
	admission *admission.Admission
	places    int

	mu sync.Mutex
	// dead: the process has been killed, and none of its later actions counts.
	dead bool
	// dieAt is the point at which the process dies; stopAt the point at which a step that the driver
	// starts is paused.
	dieAt, stopAt string
	stopped       *modelStop
	// denies: its nodes know no signature. silent is a call that gets no answer.
	denies bool
	silent string
	// tree is the newest tree that the process has read, and when.
	tree     onchain.Snapshot
	reserved map[solana.PublicKey]int64
}

// modelStop is a step that is paused in the middle of a call.
type modelStop struct {
	lease txmgr.Lease
	at    string
	goOn  chan struct{}
}

// stepKey finds, in a step's context, the lease that it runs under.
type stepKey struct{}

var errKilled = errors.New("the process has been killed")

// reach is called at a point, such as "send before", of every call.
func (p *modelProcess) reach(ctx context.Context, point string) error {
	p.mu.Lock()
	if p.dieAt == point {
		p.dead = true
		p.w.note("%s dies at %q", p.name, point)
	}
	if p.dead {
		p.mu.Unlock()
		return errKilled
	}
	lease, ok := ctx.Value(stepKey{}).(*txmgr.Lease)
	if p.stopAt != point || !ok || p.stopped != nil {
		p.mu.Unlock()
		return nil
	}
	stop := &modelStop{lease: *lease, at: point, goOn: make(chan struct{})}
	p.stopAt, p.stopped = "", stop
	p.mu.Unlock()
	p.w.note("%s stands still at %q with %s", p.name, point, p.w.short(lease.ID))
	<-stop.goOn
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return errKilled
	}
	return nil
}

// standing is the paused step, or nil.
func (p *modelProcess) standing() *modelStop {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopped
}

// settle waits until only the paused step of the process is left.
func (p *modelProcess) settle() {
	p.w.t.Helper()
	for deadline := time.Now().Add(modelPatience); ; {
		var but []txmgr.Lease
		if s := p.standing(); s != nil {
			but = append(but, s.lease)
		}
		if p.engine.Quiet(but...) {
			return
		}
		if time.Now().After(deadline) {
			p.w.fatal("%s does not come to rest within %s", p.name, modelPatience)
		}
		time.Sleep(50 * time.Microsecond)
	}
}

// goOn resumes the paused step, and waits until it has ended.
func (p *modelProcess) goOn() {
	p.mu.Lock()
	s := p.stopped
	p.stopped, p.stopAt = nil, ""
	p.mu.Unlock()
	if s != nil {
		close(s.goOn)
	}
	p.engine.WaitSteps()
}

// kill ends the process as SIGKILL does.
func (p *modelProcess) kill() {
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
	p.goOn()
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
	// faultSilent: no answer, and nothing done. faultLost: done, and no answer.
	faultSilent
	faultLost
	// faultBehind: the node that answers lags. faultNull: it knows nothing.
	faultBehind
	faultNull
	// faultDropped: it says that it took a transaction, and forwards nothing.
	faultDropped
)

// fault decides about a call. The same call in the same operation always gets the same fault, in
// any order of concurrent calls.
func (p *modelProcess) fault(method, key string) (modelFault, *rand.Rand) {
	if p.silent == method {
		return faultSilent, nil
	}
	if p.denies && (method == "statuses" || method == "search") {
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

// see is the view of the node that answers a call.
func (p *modelProcess) see(f modelFault, r *rand.Rand) modelView {
	if f != faultBehind {
		return p.w.chain.newest()
	}
	return p.w.chain.behind(1 + r.IntN(12))
}

// ask makes one call: act is its other side, unknown the error of a call without an answer. The
// time for which a step was paused does not count as its own.
func ask[T any](ctx context.Context, p *modelProcess, method, key string, unknown func(string) error, act func(context.Context, modelFault, modelView) (T, error)) (T, error) {
	var zero T
	if err := p.reach(ctx, method+" before"); err != nil {
		return zero, unknownBecause(unknown(method), err)
	}
	f, r := p.fault(method, key)
	if f == faultSilent {
		return zero, unknown(method)
	}
	out, err := act(context.WithoutCancel(ctx), f, p.see(f, r))
	if err := p.reach(ctx, method+" after"); err != nil {
		return zero, unknownBecause(unknown(method), err)
	}
	if f == faultLost {
		return zero, unknown(method)
	}
	return out, err
}

// unknownBecause keeps the caller's error and adds the cause for the log's reader.
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
func (p *modelProcess) Owns(key solana.PublicKey) bool { return p.w.ours(key) }

// Ready implements txmgr.FeePayers.
func (p *modelProcess) Ready(_ context.Context, lamports uint64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.affords(lamports)
}

// affords refuses when the process's payer cannot spend lamports; mu is held.
func (p *modelProcess) affords(lamports uint64) error {
	holds := int64(p.w.chain.newest().confirmed.state.lamports[p.key.PublicKey()])
	if holds-p.reserved[p.key.PublicKey()] >= int64(lamports) {
		return nil
	}
	return refusal.New(refusal.FeePayerEmpty, "the model's payer is dry")
}

// Pick implements txmgr.FeePayers.
func (p *modelProcess) Pick(_ context.Context, lamports uint64, _ bool) (txmgr.Payer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.affords(lamports); err != nil {
		return nil, err
	}
	p.reserved[p.key.PublicKey()] += int64(lamports)
	return p, nil
}

// Sign implements txmgr.Payer.
func (p *modelProcess) Sign(message []byte) (solana.Signature, error) { return p.key.Sign(message) }

// Cancel implements txmgr.FeePayers.
func (p *modelProcess) Cancel(key solana.PublicKey, lamports uint64) { p.Release(key, lamports) }

func (p *modelProcess) Release(payer solana.PublicKey, lamports uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reserved[payer] -= int64(lamports); p.reserved[payer] < 0 {
		p.w.violated("%s settled more than was reserved", p.name)
	}
}

// MarkRefused implements txmgr.FeePayers.
func (p *modelProcess) MarkRefused(solana.PublicKey, error) {}

// MarkWorking implements txmgr.FeePayers.
func (p *modelProcess) MarkWorking(solana.PublicKey) {}

// Sync implements submission.LeafIndex.
func (p *modelProcess) Sync(context.Context) error { return nil }

// Find implements submission.LeafIndex.
func (p *modelProcess) Find(_ context.Context, commitments [][32]byte) (map[[32]byte]uint64, error) {
	placed, out := p.w.chain.newest().confirmed.state.placed, map[[32]byte]uint64{}
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
		p.w.note("%s finds a landing of ours that the database did not know", p.name)
	}
}

// Lease implements submission.Observer.
func (p *modelProcess) Lease(string, int) {}

// Poll implements submission.Observer.
func (p *modelProcess) Poll(int, bool) {}

// modelKey names signatures in the decision about a fault, in any order.
func modelKey(sigs []solana.Signature) string {
	var sum [4]byte
	for _, s := range sigs {
		for i := range s {
			sum[i%4] ^= s[i]
		}
	}
	return fmt.Sprintf("%x", sum)
}

// points lists the points of a call.
func points(methods string) (out []string) {
	for _, m := range strings.Fields(methods) {
		out = append(out, m+" before", m+" after")
	}
	return out
}

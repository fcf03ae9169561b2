package txmgr_test

import (
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/internal/admission"
	"github.com/relaypool/relaypool/relay/internal/pgtest"
	"github.com/relaypool/relaypool/relay/internal/store"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// modelPatience is how long the model waits for an expected event.
	modelPatience = time.Minute
	// modelSlot is the usual duration of a slot in the model's time: a blockhash, which lasts 20 blocks, is
	// valid for longer than the age at which managers search whether an attempt is dead.
	modelSlot = 2 * time.Second
	modelSOL  = 1_000_000_000
)

// modelWorld is a set of processes with a real store and a model chain, and the model's record of
// both. Only the driver's goroutine runs its operations.
type modelWorld struct {
	t    *testing.T
	seed uint64
	// repeat is the command that repeats the run.
	repeat string

	rand  *rand.Rand
	store *store.Store
	chain *modelChain
	pool  *shieldpool.Pool
	log   *slog.Logger

	processes []*modelProcess
	started   int // the number of processes ever started
	payers    []solana.PublicKey
	keys      []solana.PrivateKey
	// faults is the percentage of calls that fail; tick distinguishes operations.
	faults, tick int
	serial       uint64
	// clients: requests have API keys, by which clients are distinguished.
	clients bool
	// liar is the lying endpoint, if any. lied says that there has been one at
	// some time.
	liar modelLiar
	lied bool

	mu    sync.Mutex
	ahead time.Duration
	start time.Time
	// slot is how long a slot takes. knownRent is the rate of rent that the relays have read.
	slot      time.Duration
	knownRent shieldpool.Rent
	// due has the times at which deferred rows are due again, in the model's time.
	due         map[uuid.UUID]time.Time
	submissions []*modelSubmission
	attempts    map[solana.Signature]*modelAttempt
	notes       []string
	violations  []string
}

// modelSubmission is the model's record of a submission that a process has accepted.
type modelSubmission struct {
	id   uuid.UUID
	call *shieldpool.Call
	hash [32]byte
	// from is the sender of the accepted request.
	from     modelSender
	accepted *submission.Submission
	// last is the row when it was last read. wasCompleted says that the submission has
	// been completed at some time.
	last         modelRow
	wasCompleted bool
}

// modelAttempt is an attempt that was committed.
type modelAttempt struct {
	signature  solana.Signature
	submission *modelSubmission
	// blockhashOf is the block of the attempt's blockhash.
	blockhashOf *modelBlock
	// fee and the tip for a lane are in lamports.
	fee, tip uint64
	// lost: the attempt's row was removed from the database. sent: the attempt reached the chain.
	lost, sent bool
	// denied: a search said that the attempt is not on the chain, whether that was true or not.
	denied bool
}

// newModelWorld makes a world with that many processes, in the schema of db.
func newModelWorld(t *testing.T, db *store.Store, seed uint64, rules modelRules, processes, concurrency int, log *slog.Logger) *modelWorld {
	t.Helper()
	w := &modelWorld{
		t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 2)), store: db, log: log, start: time.Now(),
		due: map[uuid.UUID]time.Time{}, attempts: map[solana.Signature]*modelAttempt{},
		// Attempts that are read from the database have its time: an hour ahead makes all of them old.
		ahead: time.Hour, slot: modelSlot, knownRent: chainRent(),
	}
	// The worlds of one test use the same schema, one after the other. For so few rows DELETE is faster
	// than TRUNCATE.
	_, err := db.Pool.Exec(t.Context(), `DELETE FROM submissions; DELETE FROM requests; DELETE FROM reservations; DELETE FROM attempts;
		DELETE FROM workers; DELETE FROM idempotency_keys; DELETE FROM proof_signs; DELETE FROM spend_buckets`)
	modelMust(t, err)
	if rules.format = shieldpool.Legacy; seed%2 == 1 {
		rules.format = shieldpool.V1
	}
	profile := shieldpool.Development()
	profile.RootHistory = rules.rootHistory
	w.pool, err = profile.Pool(profile.Mints[0])
	modelMust(t, err)
	lamports := map[solana.PublicKey]uint64{}
	for i := range processes {
		var from [32]byte
		binary.BigEndian.PutUint64(from[:], seed)
		from[31] = byte(i)
		key := solana.PrivateKey(ed25519.NewKeyFromSeed(from[:]))
		w.keys, w.payers = append(w.keys, key), append(w.payers, key.PublicKey())
		lamports[key.PublicKey()] = modelSOL
	}
	w.chain = newModelChain(rules, w.pool, lamports)
	for range processes {
		w.processes = append(w.processes, w.newProcess(len(w.processes), concurrency))
	}
	return w
}

// newModelStore makes a migrated store in a schema of its own.
func newModelStore(t *testing.T) *store.Store {
	t.Helper()
	db := pgtest.Pool(t)
	modelMust(t, store.Migrate(t.Context(), db, slog.New(slog.DiscardHandler)))
	s, err := store.New(db)
	modelMust(t, err)
	return s
}

func modelMust(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newProcess starts the i-th process of the world, and sends its first heartbeat.
func (w *modelWorld) newProcess(i, concurrency int) *modelProcess {
	w.t.Helper()
	w.started++
	p := &modelProcess{
		w: w, name: fmt.Sprintf("%c%d", 'A'+i, w.started), worker: w.newID(), key: w.keys[i], reserved: map[solana.PublicKey]int64{},
	}
	proofA, err := submission.NewProofAPolicy("auto", modelStore{w.store, p}, [32]byte{1}, w.now)
	modelMust(w.t, err)
	handler, err := submission.New(submission.Options{
		Store: modelStore{w.store, p}, Chain: modelNode{p}, State: modelNode{p}, Pool: w.pool, Payers: p, Spending: unlimited{}, Leaves: p, ProofA: proofA,
		Observer: p, Log: w.log, Now: w.now, Worker: p.worker, Concurrency: concurrency, Rent: w.rent, SlotDuration: w.knownSlotTime, Price: txmgr.PriceRule{Floor: 1, Cap: 1000, Percentile: 50},
		MaxEarlyFees: w.chain.maxEarlyFees, Lanes: []txmgr.Lane{{Name: "lane", Accounts: []solana.PublicKey{modelTipAccount}, MinTip: 1000, MaxTip: 4000}},
		Timing: txmgr.Timing{Lease: modelLease, Poll: modelSlot, Sweep: modelSlot, Backoff: modelSlot, BackoffCap: 4 * modelSlot, Hold: modelSlot},
	})
	modelMust(w.t, err)
	p.manager, p.concurrency = handler.Manager, concurrency
	handler.Formats = func() []shieldpool.Format { return []shieldpool.Format{w.chain.format} }
	p.admission = &admission.Admission{Options: admission.Options{
		Store: modelStore{w.store, p}, Pool: w.pool, State: modelNode{p}, Payers: p, Spending: unlimited{}, ProofA: proofA, Observer: p, Submissions: handler, Ready: always, Now: w.now, NewID: w.newID, SimulationTimeout: time.Minute,
	}}
	p.manager.HeartbeatOnce(w.t.Context())
	return p
}

func (w *modelWorld) newID() uuid.UUID {
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:8], w.rand.Uint64())
	binary.BigEndian.PutUint64(id[8:], w.rand.Uint64())
	return id
}

// now is the model's time.
func (w *modelWorld) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.start.Add(w.ahead)
}

// passTime lets time pass, and makes rows due whose delay is over.
func (w *modelWorld) passTime(d time.Duration) {
	w.t.Helper()
	w.mu.Lock()
	w.ahead += d
	now := w.start.Add(w.ahead)
	var ids []uuid.UUID
	for id, at := range w.due {
		if !at.After(now) {
			ids = append(ids, id)
			delete(w.due, id)
		}
	}
	w.mu.Unlock()
	if len(ids) > 0 {
		w.exec(`UPDATE submissions SET due_at = now() WHERE id = ANY($1) AND due_at IS NOT NULL`, ids)
	}
}

func (w *modelWorld) exec(sql string, args ...any) {
	w.t.Helper()
	_, err := w.store.Pool.Exec(context.WithoutCancel(w.t.Context()), sql, args...)
	modelMust(w.t, err)
}

// slots produces n blocks with the pending transactions for which land returns true.
func (w *modelWorld) slots(n int, land func(*modelTx) bool) {
	w.t.Helper()
	for range n {
		w.chain.produce(0, slices.DeleteFunc(w.chain.pendingTxs(), func(tx *modelTx) bool { return !land(tx) }))
		w.passTime(w.slotTime())
	}
}

func landAll(*modelTx) bool  { return true }
func landNone(*modelTx) bool { return false }

// call makes a transfer or withdrawal of that many new notes. Its root is the newest one, or
// as many roots older as back says.
func (w *modelWorld) call(back, notes int) *shieldpool.Call {
	roots := w.chain.newestView().confirmed.state.roots
	in := &shieldpool.PublicInputs{Root: roots[max(0, len(roots)-1-back)], MintAddress: w.pool.Mint.Field}
	for i := range notes {
		in.Nullifiers[i] = w.element(3)
	}
	in.Commitments = [2][32]byte{w.element(4), w.element(4)}
	c := &shieldpool.Call{Proof: make([]byte, shieldpool.ProofLength), Inputs: in}
	if w.rand.IntN(2) == 0 {
		in.PublicAmount = -100_000_000
		c.Recipient = solana.PublicKey(w.element(5))
	}
	return c
}

// element returns a new field element.
func (w *modelWorld) element(kind byte) (e [32]byte) {
	w.serial++
	e[1] = kind
	binary.BigEndian.PutUint64(e[24:], w.serial)
	return e
}

// submit sends a request without an idempotency key to a process, and waits until the process is idle.
func (w *modelWorld) submit(p *modelProcess, c *shieldpool.Call) (*submission.Submission, error) {
	w.t.Helper()
	return w.post(p, c, modelSender{})
}

// post is submit for any sender.
func (w *modelWorld) post(p *modelProcess, c *shieldpool.Call, from modelSender) (*submission.Submission, error) {
	w.t.Helper()
	ctx := context.WithValue(w.t.Context(), senderKey{}, from)
	encoding := groth16.Plain
	if hasNegatedA(c) {
		encoding = groth16.Negated
	}
	checked, s, err := p.admission.Check(ctx, c, encoding, nil)
	if checked != nil {
		s, err = checked.Accept(context.WithValue(w.stepContext(), senderKey{}, from))
		p.waitIdle()
	}
	w.checkAnswer(p, c, from, s, err)
	return s, err
}

// stepContext returns the context of an acceptance, which may start a step.
func (w *modelWorld) stepContext() context.Context {
	return context.WithValue(w.t.Context(), stepKey{}, &modelStep{acceptEnded: make(chan struct{})})
}

// claim lets a process claim one submission, and waits until its step has
// ended or is paused. It returns false when none was due.
func (w *modelWorld) claim(p *modelProcess) bool {
	w.t.Helper()
	step := new(modelStep)
	p.manager.ClaimOnce(context.WithValue(w.t.Context(), stepKey{}, step))
	p.waitIdle()
	return step.lease.Epoch > 0
}

// claimAll lets a process claim as many submissions as it has capacity for.
func (w *modelWorld) claimAll(p *modelProcess) {
	w.t.Helper()
	for range p.concurrency {
		if !w.claim(p) {
			return
		}
	}
}

// poll lets a process poll the chain, and write the results.
func (w *modelWorld) poll(p *modelProcess) {
	w.t.Helper()
	p.manager.PollOnce(w.t.Context())
	p.waitIdle()
}

// lapse lets a process's leases lapse.
func (w *modelWorld) lapse(p *modelProcess) {
	w.t.Helper()
	w.exec(`UPDATE workers SET until = now() - interval '1 second' WHERE id = $1`, p.worker)
}

// loseAttempts removes a submission's attempts from the database, like a failover to a replica that is behind.
func (w *modelWorld) loseAttempts(s *modelSubmission) {
	w.t.Helper()
	w.exec(`DELETE FROM attempts WHERE submission_id = $1`, s.id)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.attempts {
		if a.submission == s {
			a.lost = true
		}
	}
}

func (w *modelWorld) isPayer(key solana.PublicKey) bool { return slices.Contains(w.payers, key) }

// shortID returns a submission's short name for the log of operations.
func (w *modelWorld) shortID(id uuid.UUID) string { return id.String()[:6] }

// note adds a line to the log of operations.
func (w *modelWorld) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes = append(w.notes, fmt.Sprintf("%4d ", w.tick)+fmt.Sprintf(format, args...))
}

// violated records that an invariant does not hold. The driver stops after the operation.
func (w *modelWorld) violated(format string, args ...any) {
	w.note("VIOLATED: "+format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violations = append(w.violations, fmt.Sprintf(format, args...))
}

// check fails the test when an invariant was violated.
func (w *modelWorld) check() {
	w.t.Helper()
	w.checkRows()
	w.mu.Lock()
	violations := slices.Clone(w.violations)
	w.mu.Unlock()
	if len(violations) > 0 {
		w.fatal("%s", strings.Join(violations, "\n"))
	}
}

// fatal ends the test with everything needed to repeat it.
func (w *modelWorld) fatal(format string, args ...any) {
	w.t.Helper()
	w.mu.Lock()
	log := strings.Join(w.notes, "\n")
	w.mu.Unlock()
	w.t.Fatalf("%s\n%s\noperations:\n%s", fmt.Sprintf(format, args...), w.repeat, log)
}

// wantRefusal fails the test unless err is a refusal with the code.
func (w *modelWorld) wantRefusal(err error, code refusal.Code) {
	w.t.Helper()
	if r, ok := refusal.As(err); !ok || r.Code != code {
		w.t.Fatalf("error is %v, want a refusal with code %s", err, code)
	}
}

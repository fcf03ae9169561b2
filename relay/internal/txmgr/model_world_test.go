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
	// modelSlot is a slot in the model's time: a blockhash of 20 blocks lives longer than the age at
	// which engines search whether an attempt is dead.
	modelSlot = 2 * time.Second
	modelSOL  = 1_000_000_000
)

// modelWorld is a set of processes over a real store and a model chain, and the model's record of
// both. Only the driver's goroutine moves it.
type modelWorld struct {
	t    *testing.T
	seed uint64
	// repeat says how to see a failure again.
	repeat string

	rand  *rand.Rand
	store *store.Store
	chain *modelChain
	pool  *shieldpool.Pool
	log   *slog.Logger

	processes []*modelProcess
	born      int
	payers    []solana.PublicKey
	keys      []solana.PrivateKey
	// faults is the percentage of calls that fail; tick distinguishes operations.
	faults, tick int
	serial       uint64
	// clients says that requests show API keys, by which clients are distinguished.
	clients bool
	// hostile is one of the endpoints, and lied says that it ever took part.
	hostile modelLies
	lied    bool

	mu    sync.Mutex
	ahead time.Duration
	start time.Time
	// due is when deferred rows are due again, in the model's time.
	due        map[uuid.UUID]time.Time
	taken      []*modelTaken
	attempts   map[solana.Signature]*modelAttempt
	notes      []string
	violations []string
}

// modelTaken is a submission that a process has accepted, as the model tracks it.
type modelTaken struct {
	id   uuid.UUID
	call *shieldpool.Call
	hash [32]byte
	// from is the sender, who made the committed content.
	from modelSender
	made *submission.Submission
	// last is the last state in the database; told says that it has been completed.
	last modelRow
	told bool
}

// modelAttempt is an attempt that was committed.
type modelAttempt struct {
	signature  solana.Signature
	submission *modelTaken
	// made is the block of its blockhash.
	made *modelBlock
	// lost says that its row was removed from the database.
	lost, sent bool
}

// newModelWorld makes a fleet of as many processes, in the schema of db.
func newModelWorld(t *testing.T, db *store.Store, seed uint64, rules modelRules, processes, concurrency int, log *slog.Logger) *modelWorld {
	t.Helper()
	w := &modelWorld{
		t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 2)), store: db, log: log, start: time.Now(),
		due: map[uuid.UUID]time.Time{}, attempts: map[solana.Signature]*modelAttempt{},
		// Attempts that are read back carry the database's time: an hour makes all of them old.
		ahead: time.Hour,
	}
	// Worlds of one test follow each other in its schema; for so few rows this is faster than TRUNCATE.
	_, err := db.Pool.Exec(t.Context(), `DELETE FROM submissions; DELETE FROM requests; DELETE FROM reservations; DELETE FROM attempts;
		DELETE FROM workers; DELETE FROM idempotency_keys; DELETE FROM proof_signs; DELETE FROM spend_buckets`)
	modelMust(t, err)
	profile := shieldpool.Development()
	profile.RootHistory = rules.ring
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

// newModelStore is a migrated store in a schema of its own.
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

// newProcess starts a process in a place of the fleet. Its first beat is made.
func (w *modelWorld) newProcess(place, concurrency int) *modelProcess {
	w.t.Helper()
	w.born++
	p := &modelProcess{
		w: w, name: fmt.Sprintf("%c%d", 'A'+place, w.born), worker: w.newID(), key: w.keys[place], reserved: map[solana.PublicKey]int64{},
	}
	signs, err := submission.NewProofAPolicy("auto", modelStore{w.store, p}, [32]byte{1}, w.now)
	modelMust(w.t, err)
	handler, err := submission.New(submission.Options{
		Store: modelStore{w.store, p}, Chain: modelNode{p}, State: modelNode{p}, Pool: w.pool, Payers: p, Spending: unlimited{}, Leaves: p, ProofA: signs,
		Observer: p, Log: w.log, Now: w.now, Worker: p.worker, Concurrency: concurrency, Price: txmgr.PriceRule{Floor: 1, Cap: 1000, Percentile: 50},
		Timing: txmgr.Timing{Lease: modelLease, Poll: modelSlot, Sweep: modelSlot, Backoff: modelSlot, BackoffCap: 4 * modelSlot, Hold: modelSlot},
	})
	modelMust(w.t, err)
	p.engine, p.places = handler.Manager, concurrency
	p.admission = &admission.Admission{Options: admission.Options{
		Store: modelStore{w.store, p}, Pool: w.pool, State: modelNode{p}, Payers: p, Spending: unlimited{}, ProofA: signs, Observer: p, Submissions: handler, Ready: always, Now: w.now, NewID: w.newID,
	}}
	p.engine.BeatOnce(w.t.Context())
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

// pass lets time pass, and brings forward rows that were deferred until then.
func (w *modelWorld) pass(d time.Duration) {
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

// slots lets the chain go on, each block with those of the pending transactions that land chooses.
func (w *modelWorld) slots(n int, land func(*modelTx) bool) {
	w.t.Helper()
	for range n {
		w.chain.produce(0, slices.DeleteFunc(w.chain.waiting(), func(tx *modelTx) bool { return !land(tx) }))
		w.pass(modelSlot)
	}
}

func landAll(*modelTx) bool  { return true }
func landNone(*modelTx) bool { return false }

// call makes a transfer or withdrawal over a root of the root history, back roots from
// the newest, of as many new notes.
func (w *modelWorld) call(back, notes int) *shieldpool.Call {
	roots := w.chain.newest().confirmed.state.roots
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

// element is a field element that was not there before.
func (w *modelWorld) element(kind byte) (e [32]byte) {
	w.serial++
	e[1] = kind
	binary.BigEndian.PutUint64(e[24:], w.serial)
	return e
}

// submit brings a request without a key to a process, and waits until nothing of it runs.
func (w *modelWorld) submit(p *modelProcess, c *shieldpool.Call) (*submission.Submission, error) {
	w.t.Helper()
	return w.post(p, c, modelSender{})
}

// post is submit for any sender.
func (w *modelWorld) post(p *modelProcess, c *shieldpool.Call, from modelSender) (*submission.Submission, error) {
	w.t.Helper()
	ctx := context.WithValue(w.t.Context(), senderKey{}, from)
	encoding := groth16.Plain
	if isTurned(c) {
		encoding = groth16.Negated
	}
	s, earlier, err := p.admission.Check(ctx, c, encoding, nil)
	if err == nil && earlier == nil {
		s, err = p.admission.Accept(context.WithValue(w.step(), senderKey{}, from), s, nil)
		p.settle()
	}
	if earlier != nil {
		s = earlier
	}
	w.answered(p, c, from, s, err)
	return s, err
}

// step is the context of an operation that may start a step.
func (w *modelWorld) step() context.Context {
	return context.WithValue(w.t.Context(), stepKey{}, &txmgr.Lease{})
}

// claim lets a process claim one submission, and waits until its step has
// ended or is paused; false when there was none to take.
func (w *modelWorld) claim(p *modelProcess) bool {
	w.t.Helper()
	lease := new(txmgr.Lease)
	p.engine.ClaimOnce(context.WithValue(w.t.Context(), stepKey{}, lease))
	p.settle()
	return lease.Epoch > 0
}

// claimAll lets a process claim as many as it has places for.
func (w *modelWorld) claimAll(p *modelProcess) {
	w.t.Helper()
	for range p.places {
		if !w.claim(p) {
			return
		}
	}
}

// poll lets a process poll the chain, and write the results.
func (w *modelWorld) poll(p *modelProcess) {
	w.t.Helper()
	p.engine.PollOnce(w.t.Context())
	p.settle()
}

// lapse ends the time of a process's leases.
func (w *modelWorld) lapse(p *modelProcess) {
	w.t.Helper()
	w.exec(`UPDATE workers SET until = now() - interval '1 second' WHERE id = $1`, p.worker)
}

// loseAttempts removes a submission's attempts from the database, as a failover to a replica that was behind does.
func (w *modelWorld) loseAttempts(s *modelTaken) {
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

func (w *modelWorld) ours(key solana.PublicKey) bool { return slices.Contains(w.payers, key) }

// short names a submission in the log of operations.
func (w *modelWorld) short(id uuid.UUID) string { return id.String()[:6] }

// note adds a line to the log of operations.
func (w *modelWorld) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes = append(w.notes, fmt.Sprintf("%4d ", w.tick)+fmt.Sprintf(format, args...))
}

// violated records that an invariant does not hold; the driver stops there.
func (w *modelWorld) violated(format string, args ...any) {
	w.note("VIOLATED: "+format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violations = append(w.violations, fmt.Sprintf(format, args...))
}

// check fails the test when an invariant was violated.
func (w *modelWorld) check() {
	w.t.Helper()
	w.compare()
	w.mu.Lock()
	broken := slices.Clone(w.violations)
	w.mu.Unlock()
	if len(broken) > 0 {
		w.fatal("%s", strings.Join(broken, "\n"))
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

package txmgr_test

import (
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/internal/store"
	"github.com/relaypool/relaypool/relay/internal/submission"
)

// A failing run prints its seed. These flags repeat a seed, or run more seeds for longer.
var (
	modelSeed  = flag.Uint64("model.seed", 0, "the only seed to run; 0 runs the seeds from 1 to model.seeds")
	modelSeeds = flag.Uint64("model.seeds", 24, "how many seeds the model runs")
	modelOps   = flag.Int("model.ops", 120, "how many operations the model runs for each seed before it finishes all work")
)

// modelLanes is how many seeds run concurrently: the database answers one while the other computes.
const modelLanes = 4

// TestModel runs random operations, chosen by a seed, on several processes with a real store and a
// model chain, and with all faults that the invariants of docs/engineering/architecture.md allow
// for. The invariants are checked after each operation. At the end, when all work is done, every
// outcome is compared with the chain.
func TestModel(t *testing.T) {
	t.Parallel()
	if *modelSeed != 0 {
		log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
		newModel(t, newModelStore(t), *modelSeed, log).run(*modelOps)
		return
	}
	for lane := range uint64(modelLanes) {
		t.Run(fmt.Sprintf("lane %d", lane+1), func(t *testing.T) {
			t.Parallel()
			runModelLane(t, lane)
		})
	}
}

func runModelLane(t *testing.T, lane uint64) {
	db := newModelStore(t)
	seeds := *modelSeeds
	if testing.Short() {
		seeds = modelLanes
	}
	for seed := lane + 1; seed <= seeds; seed += modelLanes {
		newModel(t, db, seed, slog.New(slog.DiscardHandler)).run(*modelOps)
	}
}

// model runs random operations, chosen by a seed, on a world.
type model struct {
	*modelWorld
	concurrency int
	operations  []modelOperation
}

// modelOperation is one possible action, with its weight.
type modelOperation struct {
	name   string
	weight int
	run    func(p *modelProcess)
}

// newModel chooses the parameters that differ between seeds.
func newModel(t *testing.T, db *store.Store, seed uint64, log *slog.Logger) *model {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 3))
	rules := modelRules{
		blockhashLife: 12 + r.Uint64N(20), rootHistory: 16 + 4*r.IntN(8), confirmAfter: 1 + r.Uint64N(2), finalAfter: 4 + r.Uint64N(5),
		statusSlots: 8 + r.Uint64N(20), rootFirst: r.IntN(2) == 0, maxEarlyFees: []uint64{0, 6000, 100_000}[r.IntN(3)],
	}
	m := &model{concurrency: 2 + r.IntN(6)}
	m.modelWorld = newModelWorld(t, db, seed, rules, 2+r.IntN(2), m.concurrency, log)
	m.clients = seed%2 == 0
	m.repeat = fmt.Sprintf("seed %d; repeat it with: go test ./relay/internal/txmgr -run 'TestModel$' -model.seed=%d -model.ops=%d", seed, seed, *modelOps)
	m.operations = slices.Concat(m.clientOperations(), m.strangerOperations(), m.processOperations(), m.chainOperations(), m.networkOperations(), m.faultOperations())
	return m
}

// run runs n operations, then finishes all work, and checks the outcomes.
func (m *model) run(n int) {
	m.t.Helper()
	total := 0
	for _, o := range m.operations {
		total += o.weight
	}
	for range n {
		m.tick++
		at := m.rand.IntN(total)
		for _, o := range m.operations {
			if at -= o.weight; at < 0 {
				p := m.processes[m.rand.IntN(len(m.processes))]
				m.note("%s (%s)", o.name, p.name)
				o.run(p)
				break
			}
		}
		m.revive()
		m.check()
	}
	m.finish()
	m.checkOutcomes()
	m.check()
}

// revive replaces each process that has died by a new one.
func (m *model) revive() {
	m.t.Helper()
	for i, p := range m.processes {
		if !p.alive() {
			p.kill()
			m.processes[i] = m.newProcess(i, m.concurrency)
		}
	}
}

// modelFinishRounds is how many rounds the model may take to finish all work: every
// blockhash expires and every root leaves the root history in far fewer.
const modelFinishRounds = 200

// finish ends all faults and lets one process finish all work, while a lying endpoint may go on lying.
func (m *model) finish() {
	m.t.Helper()
	m.note("faults end, and all work is finished")
	m.faults, m.chain.history = 0, 0
	for m.chain.migration.paused() {
		m.slots(1, landNone)
	}
	m.readRent()
	if !m.liar.stays {
		m.liar = modelLiar{}
	}
	m.fund(modelSOL)
	for _, p := range m.processes {
		p.dieAt = ""
		p.resume()
	}
	last := m.processes[0]
	for _, p := range m.processes[1:] {
		p.manager.HandOverOnce(m.t.Context())
		p.kill()
	}
	m.exec(`UPDATE workers SET until = now() - interval '1 second' WHERE id <> $1`, last.worker)
	for round := range modelFinishRounds {
		m.tick++
		if round == modelFinishRounds*3/4 && !m.liar.three { // the only honest endpoint cannot show what landed long ago
			m.note("the endpoint is honest again")
			m.liar = modelLiar{}
		}
		last.manager.HeartbeatOnce(m.t.Context())
		last.manager.FreeDeadProcessesOnce(m.t.Context())
		last.manager.AuditOnce(m.t.Context())
		m.claimAll(last)
		last.manager.ClaimLandedOnce(m.t.Context())
		m.poll(last)
		last.manager.FlushOnce(m.t.Context())
		m.checkRows()
		if m.isFinished() {
			break
		}
		m.slots(2, landAll)
	}
	m.checkIdle(last)
}

// isFinished reports whether nothing is left to do.
func (m *model) isFinished() bool {
	return !slices.ContainsFunc(m.submissions, func(t *modelSubmission) bool { return t.last.State != submission.Failed && !t.last.Finalized })
}

// checkIdle checks that a process which has finished all work neither uses capacity nor keeps
// reservations.
func (m *model) checkIdle(p *modelProcess) {
	if inFlight, landed := p.manager.InProgress(); inFlight != 0 || landed != 0 {
		m.violated("%s has finished all work, but has %d jobs in flight and tracks %d landed jobs", p.name, inFlight, landed)
	}
	for _, lamports := range p.reserved {
		if lamports != 0 {
			m.violated("%s has finished all work, but keeps %d lamports reserved", p.name, lamports)
		}
	}
}

// TestModelIsDeterministic checks that the same seed gives the same run, except for the order of notes of
// concurrent steps.
func TestModelIsDeterministic(t *testing.T) {
	t.Parallel()
	db := newModelStore(t)
	for seed := range uint64(2) {
		var runs [2][]string
		for i := range runs {
			m := newModel(t, db, 100+seed, slog.New(slog.DiscardHandler))
			m.run(*modelOps)
			runs[i] = slices.Sorted(slices.Values(m.notes))
		}
		if diff := cmp.Diff(runs[0], runs[1]); diff != "" {
			t.Errorf("two runs of seed %d differ (-first +second):\n%s", 100+seed, diff)
		}
	}
}

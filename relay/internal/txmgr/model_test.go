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

// A failing seed prints itself; these repeat it, or look further for longer.
var (
	modelSeed  = flag.Uint64("model.seed", 0, "run the model of this seed alone; 0 runs those from 1 to model.seeds")
	modelSeeds = flag.Uint64("model.seeds", 24, "how many seeds the model runs")
	modelOps   = flag.Int("model.ops", 120, "how many operations the model runs for each seed before all comes to rest")
)

// modelLanes is how many seeds run concurrently: the database answers one while the other computes.
const modelLanes = 4

// TestModel runs random operations, each run from its seed, on several processes over a real store
// and a model chain, with all faults that the invariants of docs/engineering/architecture.md allow
// for. The invariants are checked after each operation, and at the end, when all is quiet, every
// outcome is compared with the chain.
func TestModel(t *testing.T) {
	t.Parallel()
	if *modelSeed != 0 {
		loud := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
		newModel(t, newModelStore(t), *modelSeed, loud).run(*modelOps)
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

// model drives a world by operations from a seed.
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
		life: 12 + r.Uint64N(20), ring: 16 + 4*r.IntN(8), confirmAfter: 1 + r.Uint64N(2), finalAfter: 4 + r.Uint64N(5),
		recent: 8 + r.Uint64N(20), rootFirst: r.IntN(2) == 0,
	}
	m := &model{concurrency: 2 + r.IntN(6)}
	m.modelWorld = newModelWorld(t, db, seed, rules, 2+r.IntN(2), m.concurrency, log)
	m.clients = seed%2 == 0
	m.repeat = fmt.Sprintf("seed %d; repeat it with: go test ./relay/internal/submission -run 'TestModel$' -model.seed=%d -model.ops=%d", seed, seed, *modelOps)
	m.operations = slices.Concat(m.ofClients(), m.ofStrangers(), m.ofProcesses(), m.ofChain(), m.ofFate())
	return m
}

// run runs that many operations, and then lets everything come to rest.
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
	m.rest()
	m.truth()
	m.check()
}

// revive starts a process in the place of each that has died.
func (m *model) revive() {
	m.t.Helper()
	for place, p := range m.processes {
		if !p.alive() {
			p.kill()
			m.processes[place] = m.newProcess(place, m.concurrency)
		}
	}
}

// modelRestRounds is how long the model may take to come to rest: every
// blockhash dies and every root leaves the root history well within it.
const modelRestRounds = 200

// rest ends all faults and lets one process finish everything, while a hostile endpoint may go on lying.
func (m *model) rest() {
	m.t.Helper()
	m.note("all comes to rest")
	m.faults, m.chain.history = 0, 0
	if !m.hostile.stays {
		m.hostile = modelLies{}
	}
	m.fund(modelSOL)
	for _, p := range m.processes {
		p.dieAt = ""
		p.goOn()
	}
	last := m.processes[0]
	for _, p := range m.processes[1:] {
		p.engine.HandOverOnce(m.t.Context())
		p.kill()
	}
	m.exec(`UPDATE workers SET until = now() - interval '1 second' WHERE id <> $1`, last.worker)
	for round := range modelRestRounds {
		m.tick++
		if round == modelRestRounds/2 && !m.hostile.settled() {
			m.note("the endpoint is honest again")
			m.hostile = modelLies{}
		}
		last.engine.BeatOnce(m.t.Context())
		last.engine.ReapOnce(m.t.Context())
		last.engine.AuditOnce(m.t.Context())
		m.claimAll(last)
		last.engine.ClaimLandedOnce(m.t.Context())
		m.poll(last)
		last.engine.FlushOnce(m.t.Context())
		m.compare()
		if m.finished() {
			break
		}
		m.slots(2, landAll)
	}
	m.empty(last)
}

// finished reports whether nothing is left to do.
func (m *model) finished() bool {
	return !slices.ContainsFunc(m.taken, func(t *modelTaken) bool { return t.last.State != submission.Failed && !t.last.Finalized })
}

// empty checks that a process which has nothing left to do holds nothing either.
func (m *model) empty(p *modelProcess) {
	if inFlight, watched := p.engine.InProgress(); inFlight != 0 || watched != 0 {
		m.violated("%s has nothing to do and holds %d places and %d watches", p.name, inFlight, watched)
	}
	for _, lamports := range p.reserved {
		if lamports != 0 {
			m.violated("%s has nothing to do and keeps %d lamports reserved", p.name, lamports)
		}
	}
}

// TestModelRepeats checks that the same seed gives the same run. Concurrent steps may be recorded
// in another order.
func TestModelRepeats(t *testing.T) {
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
			t.Errorf("seed %d went another way the second time (-first +second):\n%s", 100+seed, diff)
		}
	}
}

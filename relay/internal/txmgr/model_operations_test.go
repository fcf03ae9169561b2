package txmgr_test

import (
	"slices"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// ofClients are what clients do.
func (m *model) ofClients() []modelOperation {
	return []modelOperation{
		{"submit", 14, func(p *modelProcess) {
			for range 1 + m.rand.IntN(3) {
				from := modelSender{client: m.client()}
				if m.rand.IntN(2) == 0 {
					from.key = "a client's"
				}
				_, _ = m.post(p, m.call(m.rand.IntN(4), 1+m.rand.IntN(2)), from)
			}
		}},
		{"submit over an old root", 3, func(p *modelProcess) { m.try(p, m.call(m.rand.IntN(m.chain.ring), 1)) }},
		{"submit overlapping notes at once", 4, m.overlap},
		{"repeat a request", 3, func(p *modelProcess) {
			if s := m.some(func(*modelTaken) bool { return true }); s != nil {
				_, _ = m.post(p, s.call, s.from)
			}
		}},
		{"prove again what failed", 4, func(p *modelProcess) {
			if s := m.some(func(s *modelTaken) bool { return s.last.State == submission.Failed }); s != nil {
				c := m.call(0, 2)
				c.Inputs.Nullifiers = s.call.Inputs.Nullifiers
				m.try(p, c)
			}
		}},
	}
}

// try submits and ignores the result.
func (m *model) try(p *modelProcess, c *shieldpool.Call) { _, _ = m.submit(p, c) }

// overlap has two processes check requests with the same note before either of them commits.
func (m *model) overlap(p *modelProcess) {
	q := m.processes[m.rand.IntN(len(m.processes))]
	one, two := m.call(0, 2), m.call(0, 2)
	two.Inputs.Nullifiers[m.rand.IntN(2)] = one.Inputs.Nullifiers[m.rand.IntN(2)]
	if m.rand.IntN(4) == 0 {
		two = one
	}
	first, _, err := p.admission.Check(m.t.Context(), one, groth16.Plain, nil)
	second, _, err2 := q.admission.Check(m.t.Context(), two, groth16.Plain, nil)
	if err == nil {
		first, err = p.admission.Accept(m.step(), first, nil)
		p.settle()
	}
	m.answered(p, one, modelSender{}, first, err)
	if err2 == nil {
		second, err2 = q.admission.Accept(m.step(), second, nil)
		q.settle()
	}
	m.answered(q, two, modelSender{}, second, err2)
}

// some chooses one of the submissions that match; nil when there is none.
func (m *model) some(fits func(*modelTaken) bool) *modelTaken {
	all := slices.DeleteFunc(slices.Clone(m.taken), func(s *modelTaken) bool { return !fits(s) })
	if len(all) == 0 {
		return nil
	}
	return all[m.rand.IntN(len(all))]
}

// ofProcesses are the actions of an engine's loops, in an order of the model's.
func (m *model) ofProcesses() []modelOperation {
	return []modelOperation{
		{"claim", 5, func(p *modelProcess) { m.claim(p) }},
		{"claim all", 4, m.claimAll},
		{"claim landed", 2, func(p *modelProcess) { p.engine.ClaimLandedOnce(m.t.Context()) }},
		{"poll", 6, m.poll},
		{"poll and write outcomes", 14, func(p *modelProcess) {
			m.poll(p)
			p.engine.FlushOnce(m.t.Context())
		}},
		{"write outcomes", 2, func(p *modelProcess) { p.engine.FlushOnce(m.t.Context()) }},
		{"beat", 2, func(p *modelProcess) { p.engine.BeatOnce(m.t.Context()) }},
		{"reap", 3, func(p *modelProcess) { p.engine.ReapOnce(m.t.Context()) }},
		{"audit", 3, func(p *modelProcess) { p.engine.AuditOnce(m.t.Context()) }},
		{"all goes well for a while", 8, func(*modelProcess) {
			for range 3 {
				m.slots(1, landAll)
				for _, p := range m.processes {
					m.catchUp(p)
				}
			}
		}},
	}
}

// catchUp lets a process do everything that is due.
func (m *model) catchUp(p *modelProcess) {
	p.engine.BeatOnce(m.t.Context())
	m.poll(p)
	p.engine.FlushOnce(m.t.Context())
	m.claimAll(p)
}

// ofChain are the actions of the cluster and of strangers.
func (m *model) ofChain() []modelOperation {
	land := func(percent int) func(*modelTx) bool {
		return func(*modelTx) bool { return m.rand.IntN(100) < percent }
	}
	return []modelOperation{
		{"slots that take all", 12, func(*modelProcess) { m.slots(1+m.rand.IntN(3), landAll) }},
		{"slots that take some", 10, func(*modelProcess) { m.slots(1+m.rand.IntN(3), land(40)) }},
		{"slots that take none", 5, func(*modelProcess) { m.slots(1+m.rand.IntN(5), landNone) }},
		{"skipped slots", 2, func(*modelProcess) { m.chain.produce(1+m.rand.Uint64N(4), nil) }},
		{"many slots that take none", 2, func(*modelProcess) { m.slots(int(m.chain.life+m.chain.finalAfter), landNone) }},
		{"fork", 5, func(*modelProcess) {
			undone := m.chain.fork(1+m.rand.Uint64N(m.chain.finalAfter), func() bool { return m.rand.IntN(2) == 0 })
			m.note("fork back to height %d, %d landings undone", m.chain.tip.height, undone)
		}},
		{"others append leaves", 2, func(*modelProcess) {
			var txs []*modelTx
			for range 1 + m.rand.IntN(m.chain.ring/4) {
				txs = append(txs, m.foreign(&shieldpool.Call{Inputs: &shieldpool.PublicInputs{Commitments: [2][32]byte{m.element(6), m.element(6)}}}))
			}
			m.chain.produce(0, txs)
			m.pass(modelSlot)
		}},
		{"others spend a note", 3, func(*modelProcess) {
			if s := m.some(func(s *modelTaken) bool { return s.last.State == submission.Processing }); s != nil && m.unspent(s) {
				call, in := *s.call, *s.call.Inputs
				if m.rand.IntN(3) > 0 { // else it is another relay's transaction with exactly the same content
					in.Commitments = [2][32]byte{m.element(6), m.element(6)}
				}
				call.Inputs = &in
				txs := []*modelTx{m.foreign(&call)}
				if m.rand.IntN(2) == 0 { // and which of the two comes first is the leader's choice
					txs = append(txs, m.chain.waiting()...)
				}
				m.chain.produce(0, txs)
				m.pass(modelSlot)
			}
		}},
		{"payers run dry", 1, func(*modelProcess) { m.fund(1_000_000) }},
		{"payers are funded", 5, func(*modelProcess) { m.fund(modelSOL) }},
	}
}

// unspent reports whether none of a submission's notes are spent on the branch of the newest block.
func (m *model) unspent(s *modelTaken) bool {
	spent := m.chain.newest().tip.state.spent
	return !slices.ContainsFunc(s.call.Inputs.Nullifiers[:], func(n [32]byte) bool { return spent[n] != nil })
}

// foreign is a transaction of a stranger.
func (w *modelWorld) foreign(call *shieldpool.Call) *modelTx {
	var sig solana.Signature
	serial := w.element(7)
	copy(sig[:], serial[:])
	return &modelTx{signature: sig, payer: solana.PublicKey(w.element(8)), call: call, foreign: true}
}

// appendLeaves has others append leaves, all in one block.
func (w *modelWorld) appendLeaves(n int) {
	w.chain.change(func(s *modelState) {
		for range n {
			s.leaves++
			s.roots = append(s.roots[1:], modelRoot(s.roots[len(s.roots)-1], w.element(6)))
		}
	})
	w.pass(modelSlot)
}

// fund sets the balances of all payers.
func (m *model) fund(lamports uint64) {
	m.chain.change(func(s *modelState) {
		for _, p := range m.payers {
			s.lamports[p] = lamports
		}
	})
	m.pass(modelSlot)
}

// ofFate are the faults.
func (m *model) ofFate() []modelOperation {
	deaths := points("accept claim release complete finalize reopen beat")
	return []modelOperation{
		{"faults begin", 3, func(*modelProcess) { m.faults = 10 + m.rand.IntN(40) }},
		{"faults end", 6, func(*modelProcess) { m.faults = 0 }},
		{"an endpoint begins to lie", 3, func(*modelProcess) {
			m.hostile = modelLies{percent: 40 + 20*m.rand.IntN(4), aim: modelAim(m.rand.IntN(int(modelAims))), three: m.rand.IntN(3) == 0, stays: m.rand.IntN(2) == 0}
			m.lied = true
			m.note("one endpoint lies: %+v", m.hostile)
		}},
		{"the endpoint is honest again", 2, func(*modelProcess) { m.hostile = modelLies{} }},
		{"kill", 2, func(p *modelProcess) { p.kill() }},
		{"kill in a step", 6, func(p *modelProcess) {
			p.dieAt = stops()[m.rand.IntN(len(stops()))]
			m.work(p)
		}},
		{"kill at a point", 3, func(p *modelProcess) { p.dieAt = deaths[m.rand.IntN(len(deaths))] }},
		{"terminate", 1, func(p *modelProcess) {
			p.goOn()
			p.engine.FlushOnce(m.t.Context())
			p.engine.HandOverOnce(m.t.Context())
			p.kill()
		}},
		{"a step stands still", 4, m.stall},
		{"a step stands still and is taken over", 5, func(p *modelProcess) {
			m.stall(p)
			m.lapse(p)
			m.inherit(p)
		}},
		{"a failure stands still and is taken over", 2, m.stallFailure},
		{"outcomes wait and are taken over", 3, func(p *modelProcess) {
			m.slots(1+int(m.chain.confirmAfter), landAll)
			m.poll(p)
			m.lapse(p)
			m.inherit(p)
			p.engine.FlushOnce(m.t.Context())
		}},
		{"a watch is taken over while its fork dies", 2, m.loseWatch},
		{"a step goes on", 5, func(p *modelProcess) { p.goOn() }},
		{"leases lapse", 3, m.lapse},
		{"leases lapse and are taken over", 3, func(p *modelProcess) {
			m.lapse(p)
			m.inherit(p)
		}},
		{"the database loses attempts", 1, func(*modelProcess) { m.forget() }},
		{"the database loses attempts, and the fleet its memory", 1, func(*modelProcess) {
			m.forget()
			for _, p := range m.processes {
				m.lapse(p)
				p.kill()
			}
			m.slots(2, landAll)
		}},
		{"the clock goes forward", 3, func(*modelProcess) { m.pass(20 * modelSlot) }},
		{"history is short", 1, func(*modelProcess) { m.chain.history = 1 + m.rand.Uint64N(6) }},
		{"history is whole", 2, func(*modelProcess) { m.chain.history = 0 }},
	}
}

// forget has the database lose the attempts of some submission.
func (m *model) forget() {
	s := m.some(func(s *modelTaken) bool { return s.last.State == submission.Processing && len(m.attemptsOf(s)) > 0 })
	if s != nil {
		m.note("the attempts of %s are lost", m.short(s.id))
		m.loseAttempts(s)
	}
}

// stops are the points at which a step can pause, or its process die.
func stops() []string {
	// A step that signs passes most of these, others few: the first ones count twice.
	often := points("record send simulate blockhash")
	return slices.Concat(often, often, points("search inspect creation tree bury refuse fail release"))
}

// work has a process start steps: new ones, or due ones.
func (m *model) work(p *modelProcess) {
	m.poll(p)
	p.engine.FlushOnce(m.t.Context())
	m.try(p, m.call(0, 2))
	m.claimAll(p)
}

// stall pauses a step somewhere on its way, unless one is paused already.
func (m *model) stall(p *modelProcess) {
	if p.standing() == nil {
		p.stopAt = stops()[m.rand.IntN(len(stops()))]
		m.work(p)
		p.stopAt = ""
	}
}

// stallFailure pauses a step that is about to fail a submission, and has another process claim the
// submission meanwhile.
func (m *model) stallFailure(p *modelProcess) {
	if p.standing() != nil {
		return
	}
	m.slots(int(m.chain.life+m.chain.finalAfter), landNone)
	m.appendLeaves(m.chain.ring)
	m.slots(int(m.chain.confirmAfter), landNone)
	p.stopAt = points("fail bury")[m.rand.IntN(4)]
	p.engine.BeatOnce(m.t.Context())
	m.claim(p)
	m.poll(p)
	p.stopAt = ""
	m.lapse(p)
	m.inherit(p)
}

// loseWatch has others watch what a process believes that it watches, and a fork undo it.
func (m *model) loseWatch(p *modelProcess) {
	m.lapse(p)
	m.inherit(p)
	for _, heir := range m.processes {
		if heir != p {
			heir.engine.ClaimLandedOnce(m.t.Context())
		}
	}
	m.chain.fork(m.chain.finalAfter, func() bool { return m.rand.IntN(2) == 0 })
	for range 6 { // one poll may reach a lagging node
		m.slots(1, landNone)
		m.poll(p)
	}
}

// inherit has another process claim the jobs of a process whose leases have lapsed.
func (m *model) inherit(from *modelProcess) {
	for _, heir := range m.processes {
		if heir != from {
			heir.engine.BeatOnce(m.t.Context())
			heir.engine.ReapOnce(m.t.Context())
			m.claimAll(heir)
		}
	}
}

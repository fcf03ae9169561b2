package txmgr_test

import (
	"slices"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// clientOperations returns the operations of clients.
func (m *model) clientOperations() []modelOperation {
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
		{"submit with an old root", 3, func(p *modelProcess) { m.trySubmit(p, m.call(m.rand.IntN(m.chain.rootHistory), 1)) }},
		{"submit two requests with the same note", 4, m.overlap},
		{"repeat a request", 3, func(p *modelProcess) {
			if s := m.pick(func(*modelSubmission) bool { return true }); s != nil {
				_, _ = m.post(p, s.call, s.from)
			}
		}},
		{"submit failed notes with a new proof", 4, func(p *modelProcess) {
			if s := m.pick(func(s *modelSubmission) bool { return s.last.State == submission.Failed }); s != nil {
				c := m.call(0, 2)
				c.Inputs.Nullifiers = s.call.Inputs.Nullifiers
				m.trySubmit(p, c)
			}
		}},
	}
}

// trySubmit submits and ignores the result.
func (m *model) trySubmit(p *modelProcess, c *shieldpool.Call) { _, _ = m.submit(p, c) }

// overlap makes two processes check requests with the same note before either process commits.
func (m *model) overlap(p *modelProcess) {
	q := m.processes[m.rand.IntN(len(m.processes))]
	one, two := m.call(0, 2), m.call(0, 2)
	two.Inputs.Nullifiers[m.rand.IntN(2)] = one.Inputs.Nullifiers[m.rand.IntN(2)]
	if m.rand.IntN(4) == 0 {
		two = one
	}
	first, earlier, err := p.admission.Check(m.t.Context(), one, groth16.Plain, nil)
	second, earlier2, err2 := q.admission.Check(m.t.Context(), two, groth16.Plain, nil)
	if first != nil {
		earlier, err = first.Accept(m.stepContext())
		p.waitIdle()
	}
	m.checkAnswer(p, one, modelSender{}, earlier, err)
	if second != nil {
		earlier2, err2 = second.Accept(m.stepContext())
		q.waitIdle()
	}
	m.checkAnswer(q, two, modelSender{}, earlier2, err2)
}

// pick chooses one of the submissions for which fits returns true; nil when there is none.
func (m *model) pick(fits func(*modelSubmission) bool) *modelSubmission {
	all := slices.DeleteFunc(slices.Clone(m.submissions), func(s *modelSubmission) bool { return !fits(s) })
	if len(all) == 0 {
		return nil
	}
	return all[m.rand.IntN(len(all))]
}

// processOperations returns the actions of a manager's loops, which the model runs in random order.
func (m *model) processOperations() []modelOperation {
	return []modelOperation{
		{"claim", 5, func(p *modelProcess) { m.claim(p) }},
		{"claim all", 4, m.claimAll},
		{"claim landed", 2, func(p *modelProcess) { p.manager.ClaimLandedOnce(m.t.Context()) }},
		{"poll", 6, m.poll},
		{"poll and write outcomes", 14, func(p *modelProcess) {
			m.poll(p)
			p.manager.FlushOnce(m.t.Context())
		}},
		{"write outcomes", 2, func(p *modelProcess) { p.manager.FlushOnce(m.t.Context()) }},
		{"heartbeat", 2, func(p *modelProcess) { p.manager.HeartbeatOnce(m.t.Context()) }},
		{"free dead processes", 3, func(p *modelProcess) { p.manager.FreeDeadProcessesOnce(m.t.Context()) }},
		{"audit leases", 3, func(p *modelProcess) { p.manager.AuditOnce(m.t.Context()) }},
		{"some slots without faults in the loops", 8, func(*modelProcess) {
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
	p.manager.HeartbeatOnce(m.t.Context())
	m.poll(p)
	p.manager.FlushOnce(m.t.Context())
	m.claimAll(p)
}

// chainOperations returns the actions of the cluster and of strangers on the chain.
func (m *model) chainOperations() []modelOperation {
	land := func(percent int) func(*modelTx) bool {
		return func(*modelTx) bool { return m.rand.IntN(100) < percent }
	}
	return []modelOperation{
		{"slots in which all land", 12, func(*modelProcess) { m.slots(1+m.rand.IntN(3), landAll) }},
		{"slots in which some land", 10, func(*modelProcess) { m.slots(1+m.rand.IntN(3), land(40)) }},
		{"slots in which none lands", 5, func(*modelProcess) { m.slots(1+m.rand.IntN(5), landNone) }},
		{"skipped slots", 2, func(*modelProcess) { m.chain.produce(1+m.rand.Uint64N(4), nil) }},
		{"many slots in which none lands", 2, func(*modelProcess) { m.slots(int(m.chain.blockhashLife+m.chain.finalAfter), landNone) }},
		{"fork", 5, func(*modelProcess) {
			undone := m.chain.fork(1+m.rand.Uint64N(m.chain.finalAfter), func() bool { return m.rand.IntN(2) == 0 })
			m.note("fork back to height %d, %d landings undone", m.chain.tip.height, undone)
		}},
		{"others append leaves", 2, func(*modelProcess) {
			var txs []*modelTx
			for range 1 + m.rand.IntN(m.chain.rootHistory/4) {
				txs = append(txs, m.foreign(&shieldpool.Call{Inputs: &shieldpool.PublicInputs{Commitments: [2][32]byte{m.element(6), m.element(6)}}}))
			}
			m.chain.produce(0, txs)
			m.passTime(modelSlot)
		}},
		{"others spend a note", 3, func(*modelProcess) {
			if s := m.pick(func(s *modelSubmission) bool { return s.last.State == submission.Processing }); s != nil && m.unspent(s) {
				call, in := *s.call, *s.call.Inputs
				if m.rand.IntN(3) > 0 { // otherwise another relay sends exactly the same content
					in.Commitments = [2][32]byte{m.element(6), m.element(6)}
				}
				call.Inputs = &in
				txs := []*modelTx{m.foreign(&call)}
				if m.rand.IntN(2) == 0 { // the relay's own transaction is in the same block, before or after it
					txs = append(txs, m.chain.pendingTxs()...)
				}
				m.chain.produce(0, txs)
				m.passTime(modelSlot)
			}
		}},
		{"payers are emptied", 1, func(*modelProcess) { m.fund(1_000_000) }},
		{"payers are funded", 5, func(*modelProcess) { m.fund(modelSOL) }},
	}
}

// unspent reports whether no note of a submission is spent on the branch of the newest block.
func (m *model) unspent(s *modelSubmission) bool {
	spent := m.chain.newestView().tip.state.spent
	return !slices.ContainsFunc(s.call.Inputs.Nullifiers[:], func(n [32]byte) bool { return spent[n] != nil })
}

// foreign returns a stranger's transaction with the call.
func (w *modelWorld) foreign(call *shieldpool.Call) *modelTx {
	var sig solana.Signature
	serial := w.element(7)
	copy(sig[:], serial[:])
	return &modelTx{signature: sig, payer: solana.PublicKey(w.element(8)), call: call, foreign: true}
}

// appendLeaves appends n leaves of others, all in one block.
func (w *modelWorld) appendLeaves(n int) {
	w.chain.change(func(s *modelState) {
		for range n {
			s.leaves++
			s.roots = append(s.roots[1:], modelRoot(s.roots[len(s.roots)-1], w.element(6)))
		}
	})
	w.passTime(modelSlot)
}

// fund sets the balances of all payers.
func (m *model) fund(lamports uint64) {
	m.chain.change(func(s *modelState) {
		for _, p := range m.payers {
			s.lamports[p] = lamports
		}
	})
	m.passTime(modelSlot)
}

// faultOperations returns the faults.
func (m *model) faultOperations() []modelOperation {
	deathPoints := points("accept claim release complete finalize reopen heartbeat")
	return []modelOperation{
		{"faults begin", 3, func(*modelProcess) { m.faults = 10 + m.rand.IntN(40) }},
		{"faults end", 6, func(*modelProcess) { m.faults = 0 }},
		{"an endpoint begins to lie", 3, func(*modelProcess) {
			m.liar = modelLiar{percent: 40 + 20*m.rand.IntN(4), aim: modelAim(m.rand.IntN(int(modelAims))), three: m.rand.IntN(3) == 0, stays: m.rand.IntN(2) == 0}
			m.lied = true
			m.note("one endpoint lies: %+v", m.liar)
		}},
		{"the endpoint is honest again", 2, func(*modelProcess) { m.liar = modelLiar{} }},
		{"kill", 2, func(p *modelProcess) { p.kill() }},
		{"kill during a step", 6, func(p *modelProcess) {
			p.dieAt = pausePoints()[m.rand.IntN(len(pausePoints()))]
			m.startSteps(p)
		}},
		{"kill at a call", 3, func(p *modelProcess) { p.dieAt = deathPoints[m.rand.IntN(len(deathPoints))] }},
		{"terminate", 1, func(p *modelProcess) {
			p.resume()
			p.manager.FlushOnce(m.t.Context())
			p.manager.HandOverOnce(m.t.Context())
			p.kill()
		}},
		{"a step is paused", 4, m.pauseStep},
		{"a step is paused and taken over", 5, func(p *modelProcess) {
			m.pauseStep(p)
			m.lapse(p)
			m.takeOver(p)
		}},
		{"a step that fails is paused and taken over", 2, m.pauseFailingStep},
		{"outcomes wait and are taken over", 3, func(p *modelProcess) {
			m.slots(1+int(m.chain.confirmAfter), landAll)
			m.poll(p)
			m.lapse(p)
			m.takeOver(p)
			p.manager.FlushOnce(m.t.Context())
		}},
		{"a landed job is taken over while its fork dies", 2, m.loseLandedJobs},
		{"a paused step resumes", 5, func(p *modelProcess) { p.resume() }},
		{"leases lapse", 3, m.lapse},
		{"leases lapse and are taken over", 3, func(p *modelProcess) {
			m.lapse(p)
			m.takeOver(p)
		}},
		{"the database loses attempts", 1, func(*modelProcess) { m.loseSomeAttempts() }},
		{"the database loses attempts, and all processes die", 1, func(*modelProcess) {
			m.loseSomeAttempts()
			for _, p := range m.processes {
				m.lapse(p)
				p.kill()
			}
			m.slots(2, landAll)
		}},
		{"time passes", 3, func(*modelProcess) { m.passTime(20 * modelSlot) }},
		{"history is short", 1, func(*modelProcess) { m.chain.history = 1 + m.rand.Uint64N(6) }},
		{"history is complete", 2, func(*modelProcess) { m.chain.history = 0 }},
	}
}

// loseSomeAttempts makes the database lose the attempts of one submission.
func (m *model) loseSomeAttempts() {
	s := m.pick(func(s *modelSubmission) bool {
		return s.last.State == submission.Processing && len(m.attemptsOf(s)) > 0
	})
	if s != nil {
		m.note("the attempts of %s are lost", m.shortID(s.id))
		m.loseAttempts(s)
	}
}

// pausePoints are the points at which a step can pause, or its process die.
func pausePoints() []string {
	// Only a step that signs passes the first points, so these count twice.
	often := points("record send simulate blockhash")
	return slices.Concat(often, often, points("search inspect creation tree markDead reject fail release"))
}

// startSteps makes a process start steps, for new and for due submissions.
func (m *model) startSteps(p *modelProcess) {
	m.poll(p)
	p.manager.FlushOnce(m.t.Context())
	m.trySubmit(p, m.call(0, 2))
	m.claimAll(p)
}

// pauseStep pauses a step at a random point, unless the process already has a paused step.
func (m *model) pauseStep(p *modelProcess) {
	if p.pausedStep() == nil {
		p.stopAt = pausePoints()[m.rand.IntN(len(pausePoints()))]
		m.startSteps(p)
		p.stopAt = ""
	}
}

// pauseFailingStep pauses a step that is about to fail a submission, and makes another process claim the
// submission meanwhile.
func (m *model) pauseFailingStep(p *modelProcess) {
	if p.pausedStep() != nil {
		return
	}
	m.slots(int(m.chain.blockhashLife+m.chain.finalAfter), landNone)
	m.appendLeaves(m.chain.rootHistory)
	m.slots(int(m.chain.confirmAfter), landNone)
	p.stopAt = points("fail markDead")[m.rand.IntN(4)]
	p.manager.HeartbeatOnce(m.t.Context())
	m.claim(p)
	m.poll(p)
	p.stopAt = ""
	m.lapse(p)
	m.takeOver(p)
}

// loseLandedJobs makes other processes take over the landed jobs of a process that still tracks them, and
// rolls the landings back by a fork.
func (m *model) loseLandedJobs(p *modelProcess) {
	m.lapse(p)
	m.takeOver(p)
	for _, newOwner := range m.processes {
		if newOwner != p {
			newOwner.manager.ClaimLandedOnce(m.t.Context())
		}
	}
	m.chain.fork(m.chain.finalAfter, func() bool { return m.rand.IntN(2) == 0 })
	for range 6 { // one poll may reach a lagging node
		m.slots(1, landNone)
		m.poll(p)
	}
}

// takeOver makes the other processes claim the jobs of a process whose leases have lapsed.
func (m *model) takeOver(from *modelProcess) {
	for _, newOwner := range m.processes {
		if newOwner != from {
			newOwner.manager.HeartbeatOnce(m.t.Context())
			newOwner.manager.FreeDeadProcessesOnce(m.t.Context())
			m.claimAll(newOwner)
		}
	}
}

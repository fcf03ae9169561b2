package swap

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// The name of a failing test has its seed. These flags repeat one seed, or run more of them.
var (
	modelSeed  = flag.Uint64("model.seed", 0, "run only this seed; 0 runs the seeds from 1 to model.seeds")
	modelSeeds = flag.Uint64("model.seeds", 400, "how many seeds the model runs")
)

const (
	modelConfirm  = 2
	modelFinalize = 32
	modelLife     = 150
	// modelCalm is the slot, long after the timeout, from which routers and strangers
	// do not interfere. At modelEnd every swap must have ended.
	modelCalm = testTimeout + 400
	modelEnd  = modelCalm + 2*(modelLife+modelFinalize)
)

// model is one swap on a chain in memory, with the rules of the pool program and of the
// submission engine. Prices, strangers, nodes and the router are random, from a seed.
type model struct {
	*world
	rand *rand.Rand
	slot uint64
	// views are the accounts at the end of each slot.
	views map[uint64]map[solana.PublicKey]*onchain.Account
	// read is what the planner last read, at the slot readAt; failing says that the
	// read failed.
	read    map[solana.PublicKey]*onchain.Account
	readAt  uint64
	failing bool

	wrapped, ended   bool
	tokens, lamports uint64 // what the recipient has received
	how              shieldpool.SwapEnding
	endSlot          uint64
	market           uint64
	// firstFit is the first of routeWidths whose routes fit a transaction.
	firstFit int
	// extraAccounts is how many unused accounts every route names.
	extraAccounts int

	attempt  *modelAttempt
	nextTry  time.Time
	result   submission.Phase
	occurred map[string]int
}

type modelAttempt struct {
	purpose        txmgr.Purpose
	ixs            []instruction
	signed, land   uint64 // land is 0 for an attempt that never lands
	landed, failed bool
}

// TestModel: for every seed, no swap is executed at the timeout or later, or below the
// minimum, nothing is drafted for a swap that has ended, and every swap ends once.
func TestModel(t *testing.T) {
	t.Parallel()
	if *modelSeed != 0 {
		newModel(t, *modelSeed).run()
		return
	}
	all := map[string]int{}
	for seed := uint64(1); seed <= *modelSeeds; seed++ {
		var m *model
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			m = newModel(t, seed)
			m.run()
		})
		if m == nil {
			return // go test -failfast skips tests that start after a failure elsewhere
		}
		for what, n := range m.occurred {
			all[what] += n
		}
		if t.Failed() {
			return
		}
		for _, reason := range m.world.events.deferrals {
			all[reason]++
		}
	}
	// A case that never occurs is not tested.
	for _, what := range []string{
		"execute", "refund", "executed", "refunded", "stranger prepared", "stranger refunded", "found ended",
		"execute failed", "refund refused", "expired", ReasonPrice, ReasonRouterUnavailable, ReasonRouteRejected, ReasonNoRoute, ReasonExecutionFailed,
		ReasonRecipientFrozen, ReasonStateMissing, ReasonQuoteStale, ReasonRouteTooLarge,
	} {
		if all[what] == 0 && *modelSeeds >= 400 {
			t.Errorf("no run had: %s", what)
		}
	}
}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{
		rand: rand.New(rand.NewPCG(seed, 1)), slot: testCreated, views: map[uint64]map[solana.PublicKey]*onchain.Account{},
		occurred: map[string]int{}, market: testMinimum * 3 / 2,
	}
	m.world = newWorld(t, func(w *world) {
		w.submission.CreatedAt = w.now
		delete(w.chain.accounts, key(0))
	})
	o := m.options()
	o.Chain, o.Router = m, modelRouter{m}
	planner, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	m.planner, m.nextTry = planner, m.now
	return m
}

// chance is true with probability p; after modelCalm it is always false.
func (m *model) chance(p float64) bool { return !m.calm() && m.rand.Float64() < p }
func (m *model) calm() bool            { return m.slot >= modelCalm }

// Accounts implements Chain. Its node may lag, but not behind minContextSlot.
func (m *model) Accounts(_ context.Context, keys []solana.PublicKey, _ onchain.Commitment, minContextSlot uint64) ([]*onchain.Account, uint64, error) {
	newest := m.slot - modelConfirm
	if keys[0] != m.swap.State { // lookup tables, of which this chain has none
		return make([]*onchain.Account, len(keys)), newest, nil
	}
	m.failing = minContextSlot > newest || m.chance(0.05)
	if m.failing {
		return nil, 0, &onchain.Unavailable{Method: "getMultipleAccounts", Kind: onchain.KindNodeBehind}
	}
	m.readAt = newest
	if lag := uint64(m.rand.IntN(10)); m.chance(0.3) && newest-lag >= max(minContextSlot, testCreated) {
		m.readAt -= lag
	}
	m.read = m.views[m.readAt]
	out := make([]*onchain.Account, len(keys))
	for i, k := range keys {
		out[i] = m.read[k]
	}
	return out, m.readAt, nil
}

// Corroborated implements Chain.
func (m *model) Corroborated(uint64) bool { return true }

// FindSwapEnd implements Chain. Its history may be incomplete for a while.
func (m *model) FindSwapEnd(context.Context, *shieldpool.Swap, uint64, uint64) (*onchain.SwapEnd, error) {
	if !m.ended || m.endSlot > m.slot-modelConfirm || m.chance(0.2) {
		return nil, nil
	}
	return &onchain.SwapEnd{How: m.how, Signature: solana.Signature{1}, Slot: m.endSlot, Confirmation: onchain.Confirmed}, nil
}

// modelRouter is at random honest, down, lying or behind.
type modelRouter struct{ m *model }

func (r modelRouter) trouble() error {
	if !r.m.chance(0.16) {
		return nil
	}
	switch r.m.rand.IntN(5) {
	case 0:
		return NewNoRoute(CodeNoRoutes)
	case 1:
		return &RejectedRoute{What: RejectedInputMint}
	default:
		return &RouterUnavailable{Kind: FaultServerError, RetryAfter: time.Duration(r.m.rand.IntN(20)) * time.Second}
	}
}

func (modelRouter) Len() int { return 1 }

func (r modelRouter) Quote(_ context.Context, q QuoteRequest) (*Quote, error) {
	m := r.m
	m.router.requests = append(m.router.requests, q)
	out := m.market
	if m.chance(0.05) {
		out *= 2 // a lie
	}
	slot := m.slot
	if m.chance(0.03) {
		slot -= quoteSlots + 20
	}
	return &Quote{InAmount: q.Amount, OutAmount: out, Threshold: out - out*uint64(q.SlippageBps)/wholeBps, ContextSlot: slot, Received: m.now}, r.trouble()
}

func (r modelRouter) Instructions(_ context.Context, q *Quote, user solana.PublicKey) (*Instructions, error) {
	m := r.m
	ix := m.instructions(user, q)
	nullifier, _, err := m.pool.Nullifier(m.swap.Nullifier)
	if err != nil {
		return nil, err
	}
	lies := []func(){
		func() { ix.Program = m.pool.Profile.ProgramID },
		func() { ix.Accounts[2].PublicKey = key(70) },
		func() { binary.LittleEndian.PutUint64(ix.Data[9:], 0) }, // only the program enforces the minimum
		func() { ix.LookupTables = []solana.PublicKey{key(71)} },
	}
	request := m.router.requests[len(m.router.requests)-1]
	if slices.Index(routeWidths(), routeWidth{request.MaxAccounts, request.DirectOnly}) < m.firstFit {
		for i := range 40 {
			ix.Accounts = append(ix.Accounts, solana.AccountMeta{PublicKey: key(9, byte(i))})
		}
	}
	for i := range m.extraAccounts {
		ix.Accounts = append(ix.Accounts, solana.AccountMeta{PublicKey: key(10, byte(i))})
	}
	for _, k := range []solana.PublicKey{m.payer, key(51), m.wallet, m.swap.Terms.RecipientATA, m.pool.Address, nullifier} {
		lies = append(lies, func() {
			ix.Accounts = append(ix.Accounts, solana.AccountMeta{PublicKey: k, IsSigner: true, IsWritable: true})
		})
	}
	for m.chance(0.2) {
		lies[m.rand.IntN(len(lies))]()
	}
	return ix, r.trouble()
}

func (m *model) run() {
	m.t.Helper()
	// In a quarter of the seeds, routes leave little or no room for the token accounts.
	if m.rand.IntN(4) == 0 {
		m.extraAccounts = 10 + m.rand.IntN(6)
	}
	// In a fifth of the seeds, routes wider than some width are too large, sometimes
	// all routes.
	if m.rand.IntN(5) == 0 {
		m.firstFit = m.rand.IntN(len(routeWidths()) + 1)
	}
	// In a quarter of the seeds the market is mostly below the minimum.
	drift := 1.0
	if m.rand.IntN(4) == 0 {
		drift, m.market = 0.995, testMinimum
	}
	for m.result == "" && !m.t.Failed() {
		m.views[m.slot] = maps.Clone(m.chain.accounts)
		m.slot, m.now = m.slot+1, m.now.Add(testSlot)
		if m.slot > modelEnd {
			m.t.Fatalf("the swap has not ended %d slots after its timeout", m.slot-testTimeout)
		}
		m.market = min(max(uint64(float64(m.market)*drift*(0.95+m.rand.Float64()/10)), testMinimum/2), testMinimum*3)
		m.strangers()
		m.landings()
		if m.slot >= testCreated+modelConfirm {
			m.engine()
		}
	}
	truth := submission.PhaseExecuted
	if m.how == shieldpool.Refunded {
		truth = submission.PhaseRefunded
	}
	if !m.ended || m.result != truth {
		m.t.Fatalf("the engine recorded %s, the chain shows %s (ended: %v)", m.result, truth, m.ended)
	}
	m.occurred[string(truth)]++
	if executed := m.tokens >= testMinimum && m.lamports == 0; executed != (truth == submission.PhaseExecuted) {
		m.t.Fatalf("a swap that is %s gave %d tokens and %d lamports", truth, m.tokens, m.lamports)
	}
	if refunded := m.tokens == 0 && m.lamports == testLamports; refunded != (truth == submission.PhaseRefunded) {
		m.t.Fatalf("a swap that is %s gave %d tokens and %d lamports", truth, m.tokens, m.lamports)
	}
}

// strangers makes random changes that any account may make.
func (m *model) strangers() {
	ata, accounts := m.swap.Terms.RecipientATA, m.chain.accounts
	must := func(ix solana.Instruction, err error) []instruction {
		if err != nil {
			m.t.Fatal(err)
		}
		data, err := ix.Data()
		if err != nil {
			m.t.Fatal(err)
		}
		return []instruction{{ix.ProgramID(), ix.Accounts(), data}}
	}
	if m.chance(0.01) && accounts[m.swap.WSOL] == nil { // anybody may create the state's accounts
		m.world.putTokenAccount(m.swap.WSOL, m.swap.State, solana.WrappedSol, 0, false)
		m.world.putTokenAccount(m.swap.Output, m.swap.State, m.swap.Terms.OutputMint, 0, false)
	}
	if m.chance(0.005) && m.apply(must(m.swap.Prepare(key(80))), m.slot) == nil {
		m.occurred["stranger prepared"]++
	}
	if m.chance(0.005) && m.apply(must(m.swap.Close(key(80), m.wallet, m.wrapped)), m.slot) == nil {
		m.occurred["stranger refunded"]++
	}
	if m.chance(0.02) && accounts[ata] == nil {
		m.world.putTokenAccount(ata, m.wallet, m.swap.Terms.OutputMint, 0, false)
	}
	if m.chance(0.01) { // the recipient closes the account
		delete(accounts, ata)
	}
	if m.chance(0.01) && accounts[ata] != nil {
		m.world.putTokenAccount(ata, m.wallet, m.swap.Terms.OutputMint, 0, m.rand.IntN(2) == 0)
	}
	if m.chance(0.02) && accounts[m.swap.State] == nil {
		accounts[m.swap.State] = &onchain.Account{Owner: solana.SystemProgramID, Lamports: 1}
	}
	if a := accounts[m.swap.WSOL]; m.chance(0.01) && a != nil { // a stranger adds wrapped SOL, all or half of what the swap holds
		t, err := shieldpool.ParseTokenAccount(a.Data)
		if err != nil {
			m.t.Fatal(err)
		}
		m.world.putTokenAccount(m.swap.WSOL, m.swap.State, solana.WrappedSol, t.Amount+testLamports/2*uint64(1+m.rand.IntN(2)), false)
	}
}

func (m *model) landings() {
	a := m.attempt
	if a == nil || a.landed || a.land == 0 || m.slot < a.land || m.slot > a.signed+modelLife {
		return
	}
	a.landed, a.land = true, m.slot
	if failure := m.apply(a.ixs, m.slot); failure != nil {
		a.failed = true
		m.occurred[string(a.purpose)+" failed"]++
	}
}

// engine carries out the planner's orders as the submission engine does: it makes a new
// attempt only when the earlier attempt can no longer land.
func (m *model) engine() {
	var minContextSlot uint64
	if a := m.attempt; a != nil {
		final := m.slot - modelFinalize
		switch {
		case a.landed && !a.failed && a.land <= m.slot-modelConfirm:
			m.result = submission.PhaseExecuted
			if a.purpose == txmgr.PurposeRefund {
				m.result = submission.PhaseRefunded
			}
			return
		case a.failed && a.land <= final:
		case !a.landed && a.signed+modelLife < final:
			m.occurred["expired"]++
		default:
			return
		}
		m.attempt, minContextSlot = nil, final
	}
	if m.now.Before(m.nextTry) {
		return
	}
	m.read, m.failing = nil, false
	order, err := m.planner.Next(m.t.Context(), m.submission, 0, minContextSlot)
	m.check(&order, err)
	switch {
	case err != nil:
		m.waitAfter(err)
	case order.Ended != nil:
		m.result = submission.PhaseExecuted
		if order.Ended.Purpose == txmgr.PurposeRefund {
			m.result = submission.PhaseRefunded
		}
		m.occurred["found ended"]++
	default:
		m.launch(&order)
	}
}

func (m *model) waitAfter(err error) {
	m.nextTry = m.now.Add(time.Second)
	if wait := (*txmgr.Deferral)(nil); errors.As(err, &wait) {
		if wait.Delay <= 0 || wait.Delay > time.Minute {
			m.t.Fatalf("a wait for %s takes %s", wait.Reason, wait.Delay)
		}
		m.nextTry = m.now.Add(wait.Delay)
	} else if !errors.Is(err, onchain.ErrUnavailable) {
		m.t.Fatal(err)
	}
}

// check checks an order against the state that the planner read.
func (m *model) check(order *Order, err error) {
	m.t.Helper()
	state := m.read[m.swap.State]
	exists := state != nil && state.Owner == m.pool.Profile.ProgramID
	late := m.readAt >= testTimeout
	var purpose txmgr.Purpose
	if order.Draft != nil {
		purpose = order.Draft.Purpose
		m.occurred[string(purpose)]++
	}
	wait := (*txmgr.Deferral)(nil)
	switch {
	case m.read == nil:
		if purpose != "" || order.Ended != nil {
			m.t.Fatal("an order without a read of the chain")
		}
	case !exists && purpose != "":
		m.t.Fatalf("%s is drafted for a swap that has ended", purpose)
	case exists && late && !m.failing && purpose != txmgr.PurposeRefund:
		m.t.Fatalf("past the timeout the order is %+v, %v, want a refund", order, err)
	case !late && purpose == txmgr.PurposeRefund:
		m.t.Fatal("a refund is drafted before the timeout")
	case !late && errors.As(err, &wait) && exists && wait.Delay > time.Duration(testTimeout-m.readAt+1)*testSlot:
		m.t.Fatalf("a wait of %s ends after the timeout, which is %d slots away", wait.Delay, testTimeout-m.readAt)
	}
}

// launch simulates a draft, and signs it when it would succeed.
func (m *model) launch(order *Order) {
	d := order.Draft
	tx, err := d.Build(m.payer, shieldpool.Compute{Limit: 300_000, Price: 1}, solana.Hash{1})
	if err != nil {
		m.waitAfter(err)
		return
	}
	ixs := m.decodeTransaction(tx)
	if d.Purpose == txmgr.PurposeExecute {
		m.checkExecution(ixs)
	}
	before, wrapped := maps.Clone(m.chain.accounts), m.wrapped
	tokens, lamports, how, end, ended := m.tokens, m.lamports, m.how, m.endSlot, m.ended
	failure := m.apply(ixs, m.slot)
	m.chain.accounts, m.wrapped, m.tokens, m.lamports, m.how, m.endSlot, m.ended = before, wrapped, tokens, lamports, how, end, ended
	if failure != nil {
		m.occurred[string(d.Purpose)+" refused"]++
		m.waitAfter(m.planner.Rejected(m.submission, d, &txmgr.Failure{Err: failure}))
		return
	}
	a := &modelAttempt{purpose: d.Purpose, ixs: ixs, signed: m.slot}
	if m.calm() || m.rand.IntN(8) > 0 {
		a.land = m.slot + 1 + uint64(m.rand.IntN(12))
	}
	m.attempt = a
}

// checkExecution checks an execution before it is signed: the router's instruction
// calls the router's program, and names neither a payer nor the recipient.
func (m *model) checkExecution(ixs []instruction) {
	m.t.Helper()
	if len(m.router.requests) == 0 {
		m.t.Fatal("an execution without a quote")
	}
	execute := ixs[len(ixs)-1]
	if execute.accounts[7].PublicKey != key(7) {
		m.t.Fatal("an execution by another program")
	}
	for _, a := range execute.accounts[8:] {
		if a.IsSigner || slices.Contains([]solana.PublicKey{m.payer, key(51), m.wallet, m.swap.Terms.RecipientATA, m.pool.Address}, a.PublicKey) {
			m.t.Fatalf("the router's instruction names %s", a.PublicKey)
		}
	}
}

// apply runs a transaction by the program's rules. A failed transaction changes
// nothing.
func (m *model) apply(ixs []instruction, slot uint64) *shieldpool.TransactionError {
	before, wrapped := maps.Clone(m.chain.accounts), m.wrapped
	tags := m.pool.Profile.Tags
	for i, ix := range ixs {
		var detail string
		var code uint32
		switch {
		case ix.program == solana.SPLAssociatedTokenAccountProgramID:
			if at := ix.accounts[1].PublicKey; m.chain.accounts[at] == nil {
				m.world.putTokenAccount(at, ix.accounts[2].PublicKey, ix.accounts[3].PublicKey, 0, false)
			}
		case !m.stateExists():
			detail = "UninitializedAccount"
		case ix.data[0] == tags.PrepareSwapSol:
			detail = m.applyPrepare()
		case ix.data[0] == tags.ExecuteSwap:
			detail, code = m.applyExecute(ix, slot)
		default:
			detail, code = m.applyClose(ix, slot)
		}
		if detail != "" {
			m.chain.accounts, m.wrapped = before, wrapped
			return &shieldpool.TransactionError{Kind: "InstructionError", Instruction: i + 2, Detail: detail, Custom: code}
		}
	}
	return nil
}

func (m *model) stateExists() bool {
	a := m.chain.accounts[m.swap.State]
	return a != nil && a.Owner == m.pool.Profile.ProgramID
}

func (m *model) amount(at solana.PublicKey) (uint64, bool) {
	a := m.chain.accounts[at]
	if a == nil || a.Owner != solana.TokenProgramID {
		return 0, false
	}
	t, err := shieldpool.ParseTokenAccount(a.Data)
	if err != nil {
		m.t.Fatal(err)
	}
	return t.Amount, !t.Frozen
}

func (m *model) applyPrepare() (detail string) {
	amount, ok := m.amount(m.swap.WSOL)
	switch {
	case !ok:
		return "InvalidAccountOwner"
	case m.wrapped:
		return ""
	}
	m.wrapped = true
	m.world.putTokenAccount(m.swap.WSOL, m.swap.State, solana.WrappedSol, amount+testLamports, false)
	return ""
}

func (m *model) applyExecute(ix instruction, slot uint64) (detail string, code uint32) {
	_, hasOutput := m.amount(m.swap.Output)
	had, ok := m.amount(m.swap.Terms.RecipientATA)
	switch data := ix.data[33:]; {
	case !m.wrapped:
		return "InvalidArgument", 0
	case !hasOutput || !ok:
		return "InvalidAccountOwner", 0
	case !bytes.HasPrefix(data, []byte{0xe5}) || binary.LittleEndian.Uint64(data[1:]) != testLamports:
		return "InvalidInstructionData", 0
	case m.market < binary.LittleEndian.Uint64(data[9:]):
		return custom, shieldpool.CodeSlippage
	case m.market < testMinimum:
		return custom, 0x1039
	}
	m.world.putTokenAccount(m.swap.Terms.RecipientATA, m.wallet, m.swap.Terms.OutputMint, had+m.market, false)
	m.tokens += m.market
	delete(m.chain.accounts, m.swap.Output)
	delete(m.chain.accounts, m.swap.WSOL)
	m.endSwap(shieldpool.Executed, slot)
	return "", 0
}

func (m *model) applyClose(ix instruction, slot uint64) (detail string, code uint32) {
	_, hasWSOL := m.amount(m.swap.WSOL)
	withWSOL := len(ix.accounts) > 5
	switch {
	case slot < testTimeout:
		return custom, shieldpool.CodeSwapNotReady
	case m.wrapped && !withWSOL:
		return "NotEnoughAccountKeys", 0
	case withWSOL && !hasWSOL:
		return "InvalidAccountOwner", 0
	case ix.accounts[3].PublicKey != m.wallet:
		return "InvalidSeeds", 0
	}
	if withWSOL {
		delete(m.chain.accounts, m.swap.WSOL)
	}
	m.lamports += testLamports
	m.endSwap(shieldpool.Refunded, slot)
	return "", 0
}

func (m *model) endSwap(how shieldpool.SwapEnding, slot uint64) {
	if m.ended {
		m.t.Fatal("the swap ends a second time")
	}
	m.ended, m.how, m.endSlot = true, how, slot
	delete(m.chain.accounts, m.swap.State)
}

package swap_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
	"github.com/gagliardetto/solana-go/programs/token"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/market"
	"github.com/relaypool/relaypool/hack/localnet/poolprogram"
	localtoken "github.com/relaypool/relaypool/hack/localnet/token"
	"github.com/relaypool/relaypool/hack/localnet/trapdoor"
	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/swap"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

var swapDepth = flag.Int("swap.depth", 2, "how many hostile transactions TestAttacksBetweenTransactionsDoNotPay puts between the relay's, in every order")

const (
	// maxRent is the most that a swap can cost the relay in addition to fees, in lamports, and
	// maxSent the most transactions of one swap for which the relay pays the fee:
	// docs/guides/swaps.md, "What a swap costs", states both.
	maxRent = 2*650_240 + tokenRent
	maxSent = 8
	// maxGained is the most lamports of the relay that clients and strangers together can gain
	// from one swap: the rent of the recipient's account, or of the state.
	maxGained = tokenRent

	marketLamports, marketTokens = 10_000 * solana.LAMPORTS_PER_SOL, 1_500_000_000_000
	attackGaps                   = 4
	finalizeAfter                = 32
)

// arena is a chain with the pool, on which one swap after the other is attacked.
type arena struct {
	*bank.Bank
	t        *testing.T
	pool     *shieldpool.Pool
	keys     *trapdoor.Key
	market   *market.Market
	mint     solana.PublicKey
	swaps    uint64
	faucet   solana.PrivateKey
	admin    solana.PrivateKey
	priceLow bool
}

func newArena(t *testing.T) *arena {
	t.Helper()
	a := &arena{t: t, keys: trapdoor.New("hostile", shieldpool.SignalCount), mint: keyOf("usd").PublicKey(), faucet: keyOf("faucet"), admin: keyOf("admin")}
	profile := shieldpool.Development()
	a.pool = must[*shieldpool.Pool](t)(profile.Pool(profile.Mints[0]))
	a.market = must[*market.Market](t)(market.For(a.mint))
	accounts := a.market.Genesis(a.admin.PublicKey(), market.Reserves{Lamports: marketLamports, Tokens: marketTokens}, 30, marketTokens*100)
	authority := a.admin.PublicKey()
	accounts[solana.WrappedSol] = localtoken.NativeMint()
	accounts[a.mint] = localtoken.MintAccount(token.Mint{MintAuthority: &authority, Supply: marketTokens * 100, Decimals: 6, IsInitialized: true, FreezeAuthority: &authority})
	program := must[bank.Program](t)(poolprogram.New(profile, must[*groth16.Key](t)(groth16.ParseKey(must[[]byte](t)(a.keys.VerifyingKey())))))
	a.Bank = must[*bank.Bank](t)(bank.New(bank.Options{
		Genesis: sha256.Sum256([]byte("hostile")), ConfirmAfter: 1, FinalizeAfter: finalizeAfter, History: 300,
		Clock:    func() time.Time { return time.Unix(1_700_000_000, 0) },
		Programs: slices.Concat([]bank.Program{bank.SystemProgram(), bank.ComputeBudgetProgram(), program, market.Program()}, localtoken.Programs()),
		Accounts: accounts, Faucet: a.faucet.PublicKey(), FaucetLamports: 1_000_000_000 * solana.LAMPORTS_PER_SOL,
	}))
	a.fund(100*deposit, a.admin.PublicKey())
	a.mustRun(a.admin, must[solana.Instruction](t)(a.pool.Initialize(a.admin.PublicKey())))
	a.fund(500_000*deposit, a.pool.Address)
	return a
}

// run signs, lands and confirms a transaction of any signer. A failed transaction costs
// its fee.
func (a *arena) run(payer solana.PrivateKey, instructions ...solana.Instruction) *bank.TransactionError {
	a.t.Helper()
	return a.land(payer, must[*solana.Transaction](a.t)(shieldpool.Versioned(payer.PublicKey(), shieldpool.Compute{Limit: 1_400_000}, a.hash(), nil, instructions...)))
}

func (a *arena) land(payer solana.PrivateKey, tx *solana.Transaction) *bank.TransactionError {
	a.t.Helper()
	tx.Signatures = []solana.Signature{must[solana.Signature](a.t)(payer.Sign(must[[]byte](a.t)(tx.Message.MarshalBinary())))}
	landed, failure := a.Submit(must[*bank.Transaction](a.t)(bank.DecodeTransaction(must[[]byte](a.t)(tx.MarshalBinary()))))
	if !landed {
		a.t.Fatalf("the transaction does not land: %v", failure)
	}
	a.Advance(2)
	return failure
}

func (a *arena) mustRun(payer solana.PrivateKey, instructions ...solana.Instruction) {
	a.t.Helper()
	if failure := a.run(payer, instructions...); failure != nil {
		a.t.Fatal(failure)
	}
}

func (a *arena) fund(lamports uint64, to ...solana.PublicKey) {
	a.t.Helper()
	var all []solana.Instruction
	for _, key := range to {
		all = append(all, system.NewTransferInstruction(lamports, a.faucet.PublicKey(), key).Build())
	}
	a.mustRun(a.faucet, all...)
}

func (a *arena) hash() (hash solana.Hash) {
	a.Read(bank.Processed, func(v bank.View) { hash, _ = v.LatestBlockhash() })
	return hash
}

func (a *arena) slot() (slot uint64) {
	a.Read(bank.Confirmed, func(v bank.View) { slot = v.Slot() })
	return slot
}

func (a *arena) account(key solana.PublicKey) (found *bank.Account) {
	a.Read(bank.Processed, func(v bank.View) { found = v.Account(key) })
	return found
}

func (a *arena) lamports(keys ...solana.PublicKey) (n uint64) {
	for _, key := range keys {
		if found := a.account(key); found != nil {
			n += found.Lamports
		}
	}
	return n
}

// price sets the market's price, in percent of its first price.
func (a *arena) price(percent uint64) {
	a.t.Helper()
	a.priceLow = percent < 100
	a.mustRun(a.admin, a.market.SetReserves(a.admin.PublicKey(), market.Reserves{Lamports: marketLamports, Tokens: marketTokens / 100 * percent}))
}

// attackedSwap is a swap in which the client and strangers attack the relay. It
// implements the planner's chain and router, and carries out the planner's orders as
// the engine does.
type attackedSwap struct {
	*arena
	// relay pays for both legs; wallet belongs to the client, stranger to another attacker.
	relay, wallet, stranger solana.PrivateKey
	swap                    *shieldpool.Swap
	planner                 *swap.Planner
	submission              *submission.Submission
	net                     uint64
	// wideRoutes: routes leave no room for the token accounts unless fewer accounts are
	// requested.
	wideRoutes bool
	// attack runs in each gap between two actions of the relay.
	attack       func(s *attackedSwap, gap int)
	gap          int
	priceDropped bool
	// sent counts the relay's transactions.
	sent     int
	ending   shieldpool.SwapEnding
	refunded bool
}

// Accounts implements swap.Chain.
func (s *attackedSwap) Accounts(_ context.Context, keys []solana.PublicKey, _ onchain.Commitment, _ uint64) (out []*onchain.Account, slot uint64, err error) {
	s.Read(bank.Confirmed, func(v bank.View) {
		slot = v.Slot()
		for _, key := range keys {
			var found *onchain.Account
			if account := v.Account(key); account != nil {
				found = &onchain.Account{Owner: account.Owner, Lamports: account.Lamports, Data: account.Data}
			}
			out = append(out, found)
		}
	})
	return out, slot, nil
}

// Corroborated implements swap.Chain.
func (s *attackedSwap) Corroborated(uint64) bool { return true }

// FindSwapEnd implements swap.Chain.
func (s *attackedSwap) FindSwapEnd(context.Context, *shieldpool.Swap, uint64, uint64) (*onchain.SwapEnd, error) {
	return &onchain.SwapEnd{How: s.ending, Signature: solana.Signature{1}, Confirmation: onchain.Confirmed}, nil
}

func (s *attackedSwap) output() uint64 {
	return must[*market.State](s.t)(market.ParseState(s.account(s.market.Address).Data)).Output(s.net)
}

func (s *attackedSwap) Len() int { return 1 }

// Quote implements swap.Router.
func (s *attackedSwap) Quote(_ context.Context, r swap.QuoteRequest) (*swap.Quote, error) {
	out := s.output()
	quote := &swap.Quote{InAmount: r.Amount, OutAmount: out, Threshold: out - out*uint64(r.SlippageBps)/10_000, Received: s.now()}
	if s.wideRoutes && (r.MaxAccounts == 0 || r.MaxAccounts > 20) {
		quote.ContextSlot = s.slot() // tells Instructions that the route is wide
	}
	return quote, nil
}

// Instructions implements swap.Router.
func (s *attackedSwap) Instructions(_ context.Context, q *swap.Quote, user solana.PublicKey) (*swap.Instructions, error) {
	trade := s.market.Swap(market.Trade{User: user, WSOL: s.swap.WSOL, Tokens: s.swap.Output, AmountIn: q.InAmount, MinOut: q.Threshold})
	ix := &swap.Instructions{Program: market.ProgramID, Data: trade.DataBytes}
	for _, meta := range trade.AccountValues {
		ix.Accounts = append(ix.Accounts, *meta)
	}
	if q.ContextSlot > 0 {
		for i := range 14 {
			ix.Accounts = append(ix.Accounts, solana.AccountMeta{PublicKey: solana.PublicKey{0: 0xcc, 1: byte(i)}})
		}
	}
	return ix, nil
}

// Keys implements swap.Payers.
func (s *attackedSwap) Keys() []solana.PublicKey { return []solana.PublicKey{s.relay.PublicKey()} }

// now is a clock that advances with the slots.
func (s *attackedSwap) now() time.Time {
	return time.Unix(1_700_000_000, 0).Add(time.Duration(s.slot()) * 400 * time.Millisecond)
}

// startSwap funds all parties and lands the first leg, which the relay pays for.
func (a *arena) startSwap(wideRoutes bool, attack func(*attackedSwap, int)) *attackedSwap {
	a.t.Helper()
	a.swaps++
	n := a.swaps
	name := func(who string) solana.PrivateKey { return keyOf(fmt.Sprint(who, n)) }
	s := &attackedSwap{arena: a, relay: name("relay"), wallet: name("wallet"), stranger: name("stranger"), wideRoutes: wideRoutes, attack: attack}
	a.fund(deposit, s.relay.PublicKey(), s.wallet.PublicKey(), s.stranger.PublicKey())
	var ok bool
	if s.net, ok = a.pool.Profile.Fees.Net(deposit); !ok {
		a.t.Fatal("the fee is more than the deposit")
	}
	terms := shieldpool.SwapTerms{
		OutputMint: a.mint, RecipientATA: must[solana.PublicKey](a.t)(shieldpool.AssociatedTokenAccount(s.wallet.PublicKey(), a.mint)), MinOutput: s.output() / 100 * 97,
	}
	field := func(what byte) (f [32]byte) {
		binary.BigEndian.PutUint64(f[24:], n)
		f[1] = what
		return f
	}
	call := &shieldpool.Call{
		Inputs: &shieldpool.PublicInputs{
			Root: must[*shieldpool.TreeAccount](a.t)(a.pool.Profile.ParseTree(a.account(a.pool.MerkleTree).Data)).Root, PublicAmount: -int64(deposit), MintAddress: a.pool.Mint.Field,
			Nullifiers: [2][32]byte{field(1), field(2)}, Commitments: [2][32]byte{field(3), field(4)},
		},
		Destination: shieldpool.Destination{Swap: &terms},
	}
	call.Inputs.ExtDataHash = shieldpool.ExtDataHash(call.Destination)
	signals := call.Inputs.Signals()
	call.Proof = must[[]byte](a.t)(a.keys.Prove(signals[:], n))
	call.Recipient = s.wallet.PublicKey()
	s.swap = must[*shieldpool.Swap](a.t)(a.pool.Swap(call.Inputs.Nullifiers[0], terms))
	if failure := s.land(s.relay, must[*solana.Transaction](a.t)(a.pool.Transaction(s.relay.PublicKey(), call, shieldpool.Compute{Limit: 400_000}, a.hash(), nil))); failure != nil {
		a.t.Fatal(failure)
	}
	s.sent++
	state := must[*shieldpool.SwapState](a.t)(shieldpool.ParseSwapState(a.account(s.swap.State).Data))
	parent := uuid.New()
	s.submission = &submission.Submission{
		ID: uuid.New(), Parent: &parent, Kind: submission.KindSwapExecution, State: submission.Processing, Call: call, CreatedAt: s.now(),
		Swap: &submission.Swap{Phase: submission.PhaseFunded, TimeoutSlot: state.TimeoutSlot},
	}
	s.planner = must[*swap.Planner](a.t)(swap.New(swap.Options{
		Chain: s, Router: s, Pool: a.pool, RouterProgram: market.ProgramID, Payers: s, SlippageBps: 50, Observer: new(countingObserver), Log: slog.New(slog.DiscardHandler), Now: s.now, SlotDuration: nominalSlot,
	}))
	return s
}

// runAttack runs the attack in the next gap, after it has restored a price that fell
// for a moment.
func (s *attackedSwap) runAttack() {
	s.restorePrice()
	s.attack(s, s.gap)
	s.gap++
	s.noteEnd(nil, false)
}

func (s *attackedSwap) restorePrice() {
	if s.priceDropped {
		s.priceDropped = false
		s.price(100)
	}
}

// noteEnd records how the swap ended, if it has ended.
func (s *attackedSwap) noteEnd(d *txmgr.Draft, byRelay bool) {
	if found := s.account(s.swap.State); s.ending != "" || found != nil && found.Owner.Equals(s.pool.Profile.ProgramID) {
		return
	}
	s.ending = shieldpool.Executed
	if byRelay && d.Purpose == txmgr.PurposeRefund || !byRelay && s.refunded {
		s.ending = shieldpool.Refunded
	}
	s.refunded = s.ending == shieldpool.Refunded
}

// runToEnd runs the swap to its end as the engine does: a draft that would fail is
// deferred, and after a transaction failed on the chain, the next is sent only once the
// failure is final.
func (s *attackedSwap) runToEnd() {
	s.t.Helper()
	s.runAttack()
	for range 200 {
		late := s.slot() >= s.submission.Swap.TimeoutSlot
		order, err := s.planner.Next(s.t.Context(), s.submission, 0, 0)
		if err == nil && order.Ended != nil {
			return
		}
		if err == nil {
			err = s.simulateAndLand(order.Draft)
		}
		var wait *txmgr.Deferral
		if errors.As(err, &wait) {
			s.restorePrice()
			s.Skip(max(uint64(wait.Delay/(400*time.Millisecond)), 1))
			s.Advance(2)
			if !late && s.slot() >= s.submission.Swap.TimeoutSlot {
				s.runAttack()
			}
		} else if err != nil {
			s.t.Fatal(err)
		}
	}
	s.t.Fatal("the swap does not end")
}

// simulateAndLand simulates a draft and, if the simulation succeeds, signs and lands
// it.
func (s *attackedSwap) simulateAndLand(d *txmgr.Draft) error {
	s.t.Helper()
	build := func(hash solana.Hash) (*solana.Transaction, error) {
		return d.Build(s.relay.PublicKey(), shieldpool.Compute{Limit: 1_400_000}, hash)
	}
	tx, err := build(solana.Hash{})
	if err != nil {
		return err
	}
	tx.Signatures = make([]solana.Signature, 1)
	failure := s.Simulate(must[*bank.Transaction](s.t)(bank.DecodeTransaction(must[[]byte](s.t)(tx.MarshalBinary()))), bank.Processed, true).Meta.Err
	if failure != nil {
		return s.planner.Rejected(s.submission, d, &txmgr.Failure{Err: must[*shieldpool.TransactionError](s.t)(shieldpool.ParseTransactionError(must[[]byte](s.t)(failure.MarshalJSON())))})
	}
	if tx, err = build(s.hash()); err != nil {
		return err
	}
	s.runAttack()
	_ = s.land(s.relay, tx) // some attacks make the transaction fail
	s.sent++
	s.noteEnd(d, true)
	if s.ending == "" {
		s.Advance(finalizeAfter)
	}
	s.runAttack()
	return nil
}

// attackAction is an action of an attacker between two of the relay's transactions. A
// failed transaction costs the attacker its fee.
type attackAction struct {
	what string
	do   func(*attackedSwap)
}

func attackActions() []attackAction {
	return []attackAction{
		{"nothing", func(*attackedSwap) {}},
		{"the recipient creates the account", func(s *attackedSwap) {
			s.attempt(s.wallet, s.swap.CreateAccounts(s.wallet.PublicKey(), s.wallet.PublicKey())[2])
		}},
		{"the recipient closes the account", (*attackedSwap).closeAccount},
		{"a stranger creates the state's accounts", func(s *attackedSwap) {
			s.attempt(s.stranger, s.swap.CreateAccounts(s.stranger.PublicKey(), s.wallet.PublicKey())[:2]...)
		}},
		{"a stranger wraps the lamports", func(s *attackedSwap) {
			s.attempt(s.stranger, append(s.strangerCreatesAccounts()[:2], s.strangerPrepares())...)
		}},
		{"a stranger executes", func(s *attackedSwap) {
			s.attempt(s.stranger, append(s.strangerCreatesAccounts(), s.strangerPrepares(), s.strangerExecutes())...)
		}},
		{"a stranger refunds", (*attackedSwap).strangerRefunds},
		{"a stranger sends lamports to all accounts", func(s *attackedSwap) {
			for _, to := range []solana.PublicKey{s.swap.State, s.swap.WSOL, s.swap.Output, s.swap.Terms.RecipientATA} {
				s.attempt(s.stranger, system.NewTransferInstruction(3_000_000, s.stranger.PublicKey(), to).Build())
			}
		}},
		{"the mint's authority freezes or thaws the recipient's account", (*attackedSwap).toggleFreeze},
		{"the price falls", func(s *attackedSwap) { s.price(50) }},
		{"the price falls for a moment", func(s *attackedSwap) { s.price(50); s.priceDropped = true }},
	}
}

// attempt sends a transaction that the chain may refuse.
func (s *attackedSwap) attempt(by solana.PrivateKey, instructions ...solana.Instruction) {
	_ = s.run(by, instructions...)
}

func (s *attackedSwap) strangerCreatesAccounts() []solana.Instruction {
	return s.swap.CreateAccounts(s.stranger.PublicKey(), s.wallet.PublicKey())
}

func (s *attackedSwap) strangerPrepares() solana.Instruction {
	return must[solana.Instruction](s.t)(s.swap.Prepare(s.stranger.PublicKey()))
}

// strangerExecutes trades at the market price: a worse trade would only harm the
// client.
func (s *attackedSwap) strangerExecutes() solana.Instruction {
	trade := s.market.Swap(market.Trade{User: s.swap.State, WSOL: s.swap.WSOL, Tokens: s.swap.Output, AmountIn: s.net})
	return must[solana.Instruction](s.t)(s.swap.Execute(s.stranger.PublicKey(), market.ProgramID, trade.AccountValues, trade.DataBytes))
}

func (s *attackedSwap) strangerRefunds() {
	for _, wrapped := range []bool{false, true} {
		if failure := s.run(s.stranger, must[solana.Instruction](s.t)(s.swap.Close(s.stranger.PublicKey(), s.wallet.PublicKey(), wrapped))); failure == nil {
			s.refunded = s.ending == ""
		}
	}
}

func (s *attackedSwap) recipientAccount() *shieldpool.TokenAccount {
	found := s.account(s.swap.Terms.RecipientATA)
	if found == nil || !found.Owner.Equals(solana.TokenProgramID) {
		return nil
	}
	return must[*shieldpool.TokenAccount](s.t)(shieldpool.ParseTokenAccount(found.Data))
}

// closeAccount burns the recipient's tokens and closes the account, which pays its rent to the
// wallet.
func (s *attackedSwap) closeAccount() {
	var instructions []solana.Instruction
	ata, wallet := s.swap.Terms.RecipientATA, s.wallet.PublicKey()
	if found := s.recipientAccount(); found != nil && found.Amount > 0 {
		instructions = append(instructions, token.NewBurnInstruction(found.Amount, ata, s.mint, wallet, nil).Build())
	}
	s.attempt(s.wallet, append(instructions, token.NewCloseAccountInstruction(ata, wallet, wallet, nil).Build())...)
}

func (s *attackedSwap) toggleFreeze() {
	switch found := s.recipientAccount(); {
	case found == nil:
	case found.Frozen:
		s.attempt(s.admin, token.NewThawAccountInstruction(s.swap.Terms.RecipientATA, s.mint, s.admin.PublicKey(), nil).Build())
	default:
		s.attempt(s.admin, token.NewFreezeAccountInstruction(s.swap.Terms.RecipientATA, s.mint, s.admin.PublicKey(), nil).Build())
	}
}

// runAndCollect runs the swap to its end and lets all parties collect the lamports that
// they can get. It returns how many lamports the relay spent and the others gained.
func (s *attackedSwap) runAndCollect() (spent, gained int64) {
	s.t.Helper()
	others := []solana.PublicKey{s.wallet.PublicKey(), s.stranger.PublicKey()}
	s.runToEnd()
	if found := s.recipientAccount(); found != nil && found.Frozen {
		s.toggleFreeze()
	}
	if s.recipientAccount() != nil {
		s.closeAccount()
	}
	if s.priceLow {
		s.price(100)
	}
	spent = int64(deposit) - int64(s.lamports(s.relay.PublicKey()))
	gained = int64(s.lamports(others...)) - 2*int64(deposit)
	if s.ending == shieldpool.Refunded {
		gained -= int64(s.net)
	}
	return spent, gained
}

// TestAttacksBetweenTransactionsDoNotPay: the client and strangers put transactions
// between the relay's transactions: up to swap.depth transactions in every order, or
// the same action before each read and another before each landing. A swap then costs
// the relay no more than docs/guides/swaps.md states, and brings the attackers less
// than they paid for the pool's fee.
func TestAttacksBetweenTransactionsDoNotPay(t *testing.T) {
	t.Parallel()
	actions := attackActions()
	for name, wideRoutes := range map[string]bool{"routes that leave room for the accounts": false, "wide routes": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newArena(t)
			h := &boundsCheck{arena: a, wideRoutes: wideRoutes}
			// One action before each read, and another before each landing.
			for _, before := range actions {
				for _, between := range actions {
					h.check(fmt.Sprintf("always %s, then %s", before.what, between.what), func(s *attackedSwap, gap int) {
						if gap%2 == 0 {
							before.do(s)
						} else {
							between.do(s)
						}
					})
				}
			}
			depth := *swapDepth
			if testing.Short() || !wideRoutes {
				depth = 1
			}
			h.tryOrders(make([][]attackAction, attackGaps), depth, 0)
			t.Logf("%d orders of attacks; the maximum is %d lamports of rent, %d transactions, and %d lamports gained by others",
				h.count, h.rent, h.sent, h.gained)
		})
	}
}

// boundsCheck checks the bounds over many orders.
type boundsCheck struct {
	*arena
	wideRoutes bool
	count      int
	rent       int64
	sent       int
	gained     int64
}

func (h *boundsCheck) check(what string, attack func(*attackedSwap, int)) {
	h.t.Helper()
	if h.t.Failed() {
		return
	}
	h.count++
	s := h.startSwap(h.wideRoutes, attack)
	spent, gained := s.runAndCollect()
	rent := spent - int64(s.sent)*5000
	h.rent, h.sent, h.gained = max(h.rent, rent), max(h.sent, s.sent), max(h.gained, gained)
	if rent > maxRent || s.sent > maxSent {
		h.t.Errorf("%s: the swap was %s and cost the relay %d lamports of rent and %d fees, want at most %d and %d", what, s.ending, rent, s.sent, maxRent, maxSent)
	}
	if gained > maxGained || gained >= int64(s.pool.Profile.Fees.Base) {
		h.t.Errorf("%s: the swap was %s and others gained %d lamports, want at most %d, and less than the minimum fee of the pool, %d", what, s.ending, gained, maxGained, s.pool.Profile.Fees.Base)
	}
}

// tryOrders tries all ways to put up to left more actions into the gaps, starting at
// gap from.
func (h *boundsCheck) tryOrders(gaps [][]attackAction, left, from int) {
	h.check(describe(gaps), func(s *attackedSwap, gap int) {
		if gap < len(gaps) {
			for _, action := range gaps[gap] {
				action.do(s)
			}
		}
	})
	if left == 0 {
		return
	}
	for gap := from; gap < len(gaps); gap++ {
		for _, action := range attackActions()[1:] {
			gaps[gap] = append(gaps[gap], action)
			h.tryOrders(gaps, left-1, gap)
			gaps[gap] = gaps[gap][:len(gaps[gap])-1]
		}
	}
}

func describe(gaps [][]attackAction) (text string) {
	for i, actions := range gaps {
		for _, action := range actions {
			text += fmt.Sprintf("in gap %d %s; ", i, action.what)
		}
	}
	return text
}

func nominalSlot() time.Duration { return onchain.NominalSlot }

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

var swapDepth = flag.Int("swap.depth", 2, "how many hostile transactions TestNoOrderOfHostileTransactionsPays puts between ours, in every order")

const (
	// mostRent is the most that a swap can cost the relay in addition to fees, in lamports, and
	// mostSent the most transactions of one swap for which the relay pays the fee:
	// docs/guides/swaps.md, "What a swap costs", states both.
	mostRent = 2*890_880 + tokenRent
	mostSent = 8
	// mostGained is the most lamports of the relay that clients and strangers together can gain
	// from one swap: the rent of the recipient's account, or of the state.
	mostGained = tokenRent

	marketLamports, marketTokens = 10_000 * solana.LAMPORTS_PER_SOL, 1_500_000_000_000
	hostileGaps                  = 4
	finalAfter                   = 32
)

// arena is a chain with the pool, on which many swaps are attacked one after another.
type arena struct {
	*bank.Bank
	t      *testing.T
	pool   *shieldpool.Pool
	keys   *trapdoor.Key
	at     *market.Market
	mint   solana.PublicKey
	swaps  uint64
	faucet solana.PrivateKey
	admin  solana.PrivateKey
	fallen bool
}

func newArena(t *testing.T) *arena {
	t.Helper()
	a := &arena{t: t, keys: trapdoor.New("hostile", shieldpool.SignalCount), mint: keyOf("usd").PublicKey(), faucet: keyOf("faucet"), admin: keyOf("admin")}
	profile := shieldpool.Development()
	a.pool = must[*shieldpool.Pool](t)(profile.Pool(profile.Mints[0]))
	a.at = must[*market.Market](t)(market.For(a.mint))
	accounts := a.at.Genesis(a.admin.PublicKey(), market.Reserves{Lamports: marketLamports, Tokens: marketTokens}, 30, marketTokens*100)
	authority := a.admin.PublicKey()
	accounts[solana.WrappedSol] = localtoken.NativeMint()
	accounts[a.mint] = localtoken.MintAccount(token.Mint{MintAuthority: &authority, Supply: marketTokens * 100, Decimals: 6, IsInitialized: true, FreezeAuthority: &authority})
	program := must[bank.Program](t)(poolprogram.New(profile, must[*groth16.Key](t)(groth16.ParseKey(must[[]byte](t)(a.keys.VerifyingKey())))))
	a.Bank = must[*bank.Bank](t)(bank.New(bank.Options{
		Genesis: sha256.Sum256([]byte("hostile")), ConfirmAfter: 1, FinalizeAfter: finalAfter, History: 300,
		Clock:    func() time.Time { return time.Unix(1_700_000_000, 0) },
		Programs: slices.Concat([]bank.Program{bank.SystemProgram(), bank.ComputeBudgetProgram(), program, market.Program()}, localtoken.Programs()),
		Accounts: accounts, Faucet: a.faucet.PublicKey(), FaucetLamports: 1_000_000_000 * solana.LAMPORTS_PER_SOL,
	}))
	a.fund(100*deposit, a.admin.PublicKey())
	a.mustRun(a.admin, must[solana.Instruction](t)(a.pool.Initialize(a.admin.PublicKey())))
	a.fund(500_000*deposit, a.pool.Address)
	return a
}

// run signs, lands and confirms a transaction of any signer; a failing one costs its fee.
func (a *arena) run(payer solana.PrivateKey, instructions ...solana.Instruction) *bank.TransactionError {
	a.t.Helper()
	return a.land(payer, must[*solana.Transaction](a.t)(shieldpool.Versioned(payer.PublicKey(), shieldpool.Compute{Limit: 1_400_000}, a.hash(), nil, instructions...)))
}

func (a *arena) land(payer solana.PrivateKey, tx *solana.Transaction) *bank.TransactionError {
	a.t.Helper()
	tx.Signatures = []solana.Signature{must[solana.Signature](a.t)(payer.Sign(must[[]byte](a.t)(tx.Message.MarshalBinary())))}
	landed, failure := a.Submit(must[*bank.Transaction](a.t)(bank.DecodeTransaction(must[[]byte](a.t)(tx.MarshalBinary()))))
	if !landed {
		a.t.Fatalf("a transaction does not land: %v", failure)
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

// price sets the market's price, in hundredths of its first price.
func (a *arena) price(hundredths uint64) {
	a.t.Helper()
	a.fallen = hundredths < 100
	a.mustRun(a.admin, a.at.SetReserves(a.admin.PublicKey(), market.Reserves{Lamports: marketLamports, Tokens: marketTokens / 100 * hundredths}))
}

// attacked is a swap in which client and strangers work against the relay. It implements the
// planner's chain and router, and carries out the planner's orders as the engine does.
type attacked struct {
	*arena
	// relay pays for both legs; wallet belongs to the client, stranger to another attacker.
	relay, wallet, stranger solana.PrivateKey
	swap                    *shieldpool.Swap
	saga                    *swap.Planner
	c                       *submission.Submission
	net                     uint64
	// crowded: routes leave no room for the token accounts unless fewer accounts are asked for.
	crowded bool
	// attack acts in the nth gap between two actions of the relay.
	attack func(s *attacked, gap int)
	gap    int
	dipped bool
	// sent counts the relay's transactions.
	sent     int
	how      shieldpool.SwapEnding
	refunded bool
}

// Accounts implements swap.Chain.
func (s *attacked) Accounts(_ context.Context, keys []solana.PublicKey, _ onchain.Commitment, _ uint64) (out []*onchain.Account, slot uint64, err error) {
	s.Read(bank.Confirmed, func(v bank.View) {
		slot = v.Slot()
		for _, key := range keys {
			var found *onchain.Account
			if held := v.Account(key); held != nil {
				found = &onchain.Account{Owner: held.Owner, Lamports: held.Lamports, Data: held.Data}
			}
			out = append(out, found)
		}
	})
	return out, slot, nil
}

// Corroborated implements swap.Chain.
func (s *attacked) Corroborated(uint64) bool { return true }

// FindSwapEnd implements swap.Chain.
func (s *attacked) FindSwapEnd(context.Context, *shieldpool.Swap, uint64, uint64) (*onchain.SwapEnd, error) {
	return &onchain.SwapEnd{How: s.how, Signature: solana.Signature{1}, Confirmation: onchain.Confirmed}, nil
}

func (s *attacked) output() uint64 {
	return must[*market.State](s.t)(market.ParseState(s.account(s.at.Address).Data)).Output(s.net)
}

// Quote implements swap.Router.
func (s *attacked) Quote(_ context.Context, r swap.QuoteRequest) (*swap.Quote, error) {
	out := s.output()
	quote := &swap.Quote{InAmount: r.Amount, OutAmount: out, Threshold: out - out*uint64(r.SlippageBps)/10_000, Received: s.now()}
	if s.crowded && (r.MaxAccounts == 0 || r.MaxAccounts > 20) {
		quote.ContextSlot = s.slot() // shows Instructions that the route is wide
	}
	return quote, nil
}

// Instructions implements swap.Router.
func (s *attacked) Instructions(_ context.Context, q *swap.Quote, user solana.PublicKey) (*swap.Instructions, error) {
	trade := s.at.Swap(market.Trade{User: user, WSOL: s.swap.WSOL, Tokens: s.swap.Output, AmountIn: q.InAmount, MinOut: q.Threshold})
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
func (s *attacked) Keys() []solana.PublicKey { return []solana.PublicKey{s.relay.PublicKey()} }

// now is a clock that advances with the slots.
func (s *attacked) now() time.Time {
	return time.Unix(1_700_000_000, 0).Add(time.Duration(s.slot()) * 400 * time.Millisecond)
}

// begin funds all parties and lands the first leg, which the relay pays for.
func (a *arena) begin(crowded bool, attack func(*attacked, int)) *attacked {
	a.t.Helper()
	a.swaps++
	n := a.swaps
	name := func(who string) solana.PrivateKey { return keyOf(fmt.Sprint(who, n)) }
	s := &attacked{arena: a, relay: name("relay"), wallet: name("wallet"), stranger: name("stranger"), crowded: crowded, attack: attack}
	a.fund(deposit, s.relay.PublicKey(), s.wallet.PublicKey(), s.stranger.PublicKey())
	var ok bool
	if s.net, ok = a.pool.Profile.Fees.Net(deposit); !ok {
		a.t.Fatal("the fee takes it all")
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
	s.c = &submission.Submission{
		ID: uuid.New(), Parent: &parent, Kind: submission.KindSwapExecution, State: submission.Processing, Call: call, CreatedAt: s.now(),
		Swap: &submission.Swap{Phase: submission.PhaseFunded, TimeoutSlot: state.TimeoutSlot},
	}
	s.saga = must[*swap.Planner](a.t)(swap.New(swap.Options{
		Chain: s, Router: s, Pool: a.pool, RouterProgram: market.ProgramID, Payers: s, SlippageBps: 50, Observer: new(counted), Log: slog.New(slog.DiscardHandler), Now: s.now,
	}))
	return s
}

// hostile lets the attackers act in the next gap. A price that fell for a moment recovers before
// that.
func (s *attacked) hostile() {
	s.rise()
	s.attack(s, s.gap)
	s.gap++
	s.noteEnd(nil, false)
}

func (s *attacked) rise() {
	if s.dipped {
		s.dipped = false
		s.price(100)
	}
}

// noteEnd records how the swap ended, if it has.
func (s *attacked) noteEnd(d *txmgr.Draft, ours bool) {
	if held := s.account(s.swap.State); s.how != "" || held != nil && held.Owner.Equals(s.pool.Profile.ProgramID) {
		return
	}
	s.how = shieldpool.Executed
	if ours && d.Purpose == txmgr.PurposeRefund || !ours && s.refunded {
		s.how = shieldpool.Refunded
	}
	s.refunded = s.how == shieldpool.Refunded
}

// carry runs the swap to its end as the engine does: a draft that would fail is deferred, and
// after a transaction that failed on the chain no other is sent before that failure is final.
func (s *attacked) carry() {
	s.t.Helper()
	s.hostile()
	for range 200 {
		late := s.slot() >= s.c.Swap.TimeoutSlot
		order, err := s.saga.Next(s.t.Context(), s.c, 0)
		if err == nil && order.Ended != nil {
			return
		}
		if err == nil {
			err = s.try(order.Draft)
		}
		var wait *txmgr.Deferral
		if errors.As(err, &wait) {
			s.rise()
			s.Skip(max(uint64(wait.Delay/(400*time.Millisecond)), 1))
			s.Advance(2)
			if !late && s.slot() >= s.c.Swap.TimeoutSlot {
				s.hostile()
			}
		} else if err != nil {
			s.t.Fatal(err)
		}
	}
	s.t.Fatal("the swap does not end")
}

// try simulates a draft and, when it would succeed, signs and lands it.
func (s *attacked) try(d *txmgr.Draft) error {
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
		return s.saga.Rejected(s.c, d, &txmgr.Failure{Err: must[*shieldpool.TransactionError](s.t)(shieldpool.ParseTransactionError(must[[]byte](s.t)(failure.MarshalJSON())))})
	}
	if tx, err = build(s.hash()); err != nil {
		return err
	}
	s.hostile()
	_ = s.land(s.relay, tx) // some orders make the transaction fail
	s.sent++
	s.noteEnd(d, true)
	if s.how == "" {
		s.Advance(finalAfter)
	}
	s.hostile()
	return nil
}

// hostileAct is an action of an attacker between two of the relay's transactions. A transaction
// that the chain refuses costs the attacker the fee.
type hostileAct struct {
	what string
	do   func(*attacked)
}

func hostileActs() []hostileAct {
	return []hostileAct{
		{"nothing", func(*attacked) {}},
		{"the recipient opens his account", func(s *attacked) { s.attempt(s.wallet, s.swap.Accounts(s.wallet.PublicKey(), s.wallet.PublicKey())[2]) }},
		{"the recipient closes his account", (*attacked).closeAccount},
		{"a stranger makes the state's accounts", func(s *attacked) {
			s.attempt(s.stranger, s.swap.Accounts(s.stranger.PublicKey(), s.wallet.PublicKey())[:2]...)
		}},
		{"a stranger wraps the lamports", func(s *attacked) { s.attempt(s.stranger, append(s.accountsBy()[:2], s.prepareBy())...) }},
		{"a stranger executes", func(s *attacked) { s.attempt(s.stranger, append(s.accountsBy(), s.prepareBy(), s.executeBy())...) }},
		{"a stranger refunds", (*attacked).refundBy},
		{"a stranger sends lamports to all accounts", func(s *attacked) {
			for _, to := range []solana.PublicKey{s.swap.State, s.swap.WSOL, s.swap.Output, s.swap.Terms.RecipientATA} {
				s.attempt(s.stranger, system.NewTransferInstruction(3_000_000, s.stranger.PublicKey(), to).Build())
			}
		}},
		{"the mint freezes the recipient's account, or thaws it", (*attacked).freeze},
		{"the price falls", func(s *attacked) { s.price(50) }},
		{"the price falls for a moment", func(s *attacked) { s.price(50); s.dipped = true }},
	}
}

// attempt sends a transaction that the chain may refuse.
func (s *attacked) attempt(by solana.PrivateKey, instructions ...solana.Instruction) {
	_ = s.run(by, instructions...)
}

func (s *attacked) accountsBy() []solana.Instruction {
	return s.swap.Accounts(s.stranger.PublicKey(), s.wallet.PublicKey())
}

func (s *attacked) prepareBy() solana.Instruction {
	return must[solana.Instruction](s.t)(s.swap.Prepare(s.stranger.PublicKey()))
}

// executeBy trades honestly: a worse trade would only cost the client.
func (s *attacked) executeBy() solana.Instruction {
	trade := s.at.Swap(market.Trade{User: s.swap.State, WSOL: s.swap.WSOL, Tokens: s.swap.Output, AmountIn: s.net})
	return must[solana.Instruction](s.t)(s.swap.Execute(s.stranger.PublicKey(), market.ProgramID, trade.AccountValues, trade.DataBytes))
}

func (s *attacked) refundBy() {
	for _, wrapped := range []bool{false, true} {
		if failure := s.run(s.stranger, must[solana.Instruction](s.t)(s.swap.Close(s.stranger.PublicKey(), s.wallet.PublicKey(), wrapped))); failure == nil {
			s.refunded = s.how == ""
		}
	}
}

func (s *attacked) recipient() *shieldpool.TokenAccount {
	held := s.account(s.swap.Terms.RecipientATA)
	if held == nil || !held.Owner.Equals(solana.TokenProgramID) {
		return nil
	}
	return must[*shieldpool.TokenAccount](s.t)(shieldpool.ParseTokenAccount(held.Data))
}

// closeAccount burns the recipient's tokens and closes the account, which pays its rent to the
// wallet.
func (s *attacked) closeAccount() {
	var instructions []solana.Instruction
	ata, wallet := s.swap.Terms.RecipientATA, s.wallet.PublicKey()
	if held := s.recipient(); held != nil && held.Amount > 0 {
		instructions = append(instructions, token.NewBurnInstruction(held.Amount, ata, s.mint, wallet, nil).Build())
	}
	s.attempt(s.wallet, append(instructions, token.NewCloseAccountInstruction(ata, wallet, wallet, nil).Build())...)
}

func (s *attacked) freeze() {
	switch held := s.recipient(); {
	case held == nil:
	case held.Frozen:
		s.attempt(s.admin, token.NewThawAccountInstruction(s.swap.Terms.RecipientATA, s.mint, s.admin.PublicKey(), nil).Build())
	default:
		s.attempt(s.admin, token.NewFreezeAccountInstruction(s.swap.Terms.RecipientATA, s.mint, s.admin.PublicKey(), nil).Build())
	}
}

// judge runs the swap to its end and lets all parties collect what they can. It returns how
// many lamports the relay spent and the others gained.
func (s *attacked) judge() (spent, gained int64) {
	s.t.Helper()
	others := []solana.PublicKey{s.wallet.PublicKey(), s.stranger.PublicKey()}
	s.carry()
	if held := s.recipient(); held != nil && held.Frozen {
		s.freeze()
	}
	if s.recipient() != nil {
		s.closeAccount()
	}
	if s.fallen {
		s.price(100)
	}
	spent = int64(deposit) - int64(s.lamports(s.relay.PublicKey()))
	gained = int64(s.lamports(others...)) - 2*int64(deposit)
	if s.how == shieldpool.Refunded {
		gained -= int64(s.net)
	}
	return spent, gained
}

// TestNoOrderOfHostileTransactionsPays: client and strangers put transactions between the
// relay's own. They do so in every order of up to swap.depth transactions, or again and again
// before each read and before each landing. A swap then costs the relay no more than
// docs/guides/swaps.md states, and brings the attackers less than the pool's fee has cost them.
func TestNoOrderOfHostileTransactionsPays(t *testing.T) {
	t.Parallel()
	acts := hostileActs()
	for name, crowded := range map[string]bool{"routes that leave room for the accounts": false, "crowded routes": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newArena(t)
			h := &held{arena: a, crowded: crowded}
			// One action before each read, and another before each landing.
			for _, before := range acts {
				for _, between := range acts {
					h.hold(fmt.Sprintf("always %s, then %s", before.what, between.what), func(s *attacked, gap int) {
						if gap%2 == 0 {
							before.do(s)
						} else {
							between.do(s)
						}
					})
				}
			}
			depth := *swapDepth
			if testing.Short() || !crowded {
				depth = 1
			}
			h.orders(make([][]hostileAct, hostileGaps), depth, 0)
			t.Logf("%d orders; the dearest cost the relay %d lamports of rent, the one with most transactions had %d, and the most that others gained is %d",
				h.count, h.rent, h.sent, h.gained)
		})
	}
}

// held checks the bounds over many orders.
type held struct {
	*arena
	crowded bool
	count   int
	rent    int64
	sent    int
	gained  int64
}

func (h *held) hold(what string, attack func(*attacked, int)) {
	h.t.Helper()
	if h.t.Failed() {
		return
	}
	h.count++
	s := h.begin(h.crowded, attack)
	spent, gained := s.judge()
	rent := spent - int64(s.sent)*5000
	h.rent, h.sent, h.gained = max(h.rent, rent), max(h.sent, s.sent), max(h.gained, gained)
	if rent > mostRent || s.sent > mostSent {
		h.t.Errorf("%s: it was %s, and cost the relay %d lamports of rent and %d fees, want at most %d and %d", what, s.how, rent, s.sent, mostRent, mostSent)
	}
	if gained > mostGained || gained >= int64(s.pool.Profile.Fees.Base) {
		h.t.Errorf("%s: it was %s, and others gained %d lamports, want at most %d, and less than the least fee of the pool, %d", what, s.how, gained, mostGained, s.pool.Profile.Fees.Base)
	}
}

// orders goes through all ways to put up to left more acts into the gaps, starting at gap from.
func (h *held) orders(gaps [][]hostileAct, left, from int) {
	h.hold(described(gaps), func(s *attacked, gap int) {
		if gap < len(gaps) {
			for _, act := range gaps[gap] {
				act.do(s)
			}
		}
	})
	if left == 0 {
		return
	}
	for gap := from; gap < len(gaps); gap++ {
		for _, act := range hostileActs()[1:] {
			gaps[gap] = append(gaps[gap], act)
			h.orders(gaps, left-1, gap)
			gaps[gap] = gaps[gap][:len(gaps[gap])-1]
		}
	}
}

func described(gaps [][]hostileAct) (text string) {
	for i, acts := range gaps {
		for _, act := range acts {
			text += fmt.Sprintf("in gap %d %s; ", i, act.what)
		}
	}
	return text
}

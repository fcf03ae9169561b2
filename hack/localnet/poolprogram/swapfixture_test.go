package poolprogram_test

import (
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
	tokenprogram "github.com/gagliardetto/solana-go/programs/token"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/market"
	"github.com/relaypool/relaypool/hack/localnet/token"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// The market of a world: 150 tokens a SOL, 6 decimals, and a fee of 30 basis points.
	marketLamports = 10_000 * solana.LAMPORTS_PER_SOL
	marketTokens   = 1_500_000_000_000
	marketFee      = 30
	marketStock    = 1_000_000_000_000_000
)

var (
	stateRent = bank.RentExemption(161)
	tokenRent = bank.RentExemption(bank.TokenAccountSize)
)

// swapAccounts are the accounts at genesis for swaps: the native mint, a mint and its market.
func swapAccounts(t testing.TB) map[solana.PublicKey]bank.Account {
	t.Helper()
	m := usdMarket(t)
	authority := address("authority")
	accounts := m.Genesis(authority, market.Reserves{Lamports: marketLamports, Tokens: marketTokens}, marketFee, marketStock)
	accounts[solana.WrappedSol] = token.NativeMint()
	accounts[m.Mint] = token.MintAccount(tokenprogram.Mint{
		MintAuthority: &authority, Supply: marketStock, Decimals: 6, IsInitialized: true, FreezeAuthority: &authority,
	})
	return accounts
}

func usdMarket(t testing.TB) *market.Market {
	t.Helper()
	m, err := market.For(address("usd"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// swapFixture is a swap after its first leg (TransactSwap), with the user's wallet.
type swapFixture struct {
	*world
	*shieldpool.Swap
	market *market.Market
	wallet solana.PublicKey
	// net is the swap's lamports after the fee.
	net uint64
}

// terms are the terms of a swap for usd into the wallet's associated token account.
func (w *world) terms(wallet solana.PublicKey, minOutput uint64) shieldpool.SwapTerms {
	w.t.Helper()
	ata, _, err := solana.FindAssociatedTokenAddress(wallet, address("usd"))
	if err != nil {
		w.t.Fatal(err)
	}
	return shieldpool.SwapTerms{OutputMint: address("usd"), RecipientATA: ata, MinOutput: minOutput}
}

// swapOf is a change for call that makes a TransactSwap of gross lamports.
func swapOf(gross int64, terms shieldpool.SwapTerms) func(*shieldpool.PublicInputs, *shieldpool.Destination) {
	return func(in *shieldpool.PublicInputs, d *shieldpool.Destination) {
		d.Swap = &terms
		in.PublicAmount = -gross
		in.ExtDataHash = shieldpool.ExtDataHash(*d)
	}
}

// fundedSwap runs a TransactSwap of one SOL with a minimum output.
func (w *world) fundedSwap(minOutput uint64) *swapFixture {
	w.t.Helper()
	return w.fundedSwapOf(w.terms(address("wallet"), minOutput))
}

func (w *world) fundedSwapOf(terms shieldpool.SwapTerms) *swapFixture {
	w.t.Helper()
	s := &swapFixture{world: w, market: usdMarket(w.t), wallet: address("wallet")}
	call := w.call(swapOf(sol, terms))
	var err error
	if s.Swap, err = w.pool.Swap(call.Inputs.Nullifiers[0], terms); err != nil {
		w.t.Fatal(err)
	}
	w.mustRun(call)
	s.net, _ = w.pool.Profile.Fees.Net(uint64(sol))
	return s
}

// newSwap is a funded swap in a new world. Its token accounts exist.
func newSwap(t testing.TB, minOutput uint64) *swapFixture {
	t.Helper()
	s := newWorld(t).fundedSwap(minOutput)
	s.must(s.CreateAccounts(s.payer.PublicKey(), s.wallet)...)
	return s
}

// must runs instructions of the payer, which must succeed, and opens the next slot.
func (w *world) must(instructions ...solana.Instruction) bank.Meta {
	w.t.Helper()
	tx, err := w.run(w.payer, instructions...)
	if err != nil {
		w.t.Fatalf("the transaction failed: %v\n%v", err, w.meta(tx).Logs)
	}
	w.checkConservation(tx)
	w.Advance(1)
	return w.meta(tx)
}

// checkConservation checks that a transaction created and destroyed no lamports.
func (w *world) checkConservation(tx *bank.Transaction) {
	w.t.Helper()
	meta := w.meta(tx)
	before, after := uint64(0), meta.Fee
	for i := range meta.PreBalances {
		before += meta.PreBalances[i]
		after += meta.PostBalances[i]
	}
	if before != after {
		w.t.Errorf("%d lamports before and %d after, fee included", before, after)
	}
}

func (s *swapFixture) prepare(payer solana.PublicKey) *solana.GenericInstruction {
	s.t.Helper()
	return generic(s.t)(s.Prepare(payer))
}

// execute is ExecuteSwap with the market as router. change may alter the trade.
func (s *swapFixture) execute(change func(*market.Trade)) *solana.GenericInstruction {
	s.t.Helper()
	trade := market.Trade{User: s.State, WSOL: s.WSOL, Tokens: s.Output, AmountIn: s.net}
	if change != nil {
		change(&trade)
	}
	swap := s.market.Swap(trade)
	return generic(s.t)(s.Execute(s.payer.PublicKey(), market.ProgramID, swap.AccountValues, swap.DataBytes))
}

func (s *swapFixture) refund(payer solana.PublicKey, wrapped bool) *solana.GenericInstruction {
	s.t.Helper()
	return generic(s.t)(s.Close(payer, s.wallet, wrapped))
}

// generic makes an instruction that a test can alter.
func generic(t testing.TB) func(solana.Instruction, error) *solana.GenericInstruction {
	t.Helper()
	return func(ix solana.Instruction, err error) *solana.GenericInstruction {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		data, err := ix.Data()
		if err != nil {
			t.Fatal(err)
		}
		return solana.NewInstruction(ix.ProgramID(), ix.Accounts(), data)
	}
}

// state is the swap's state, or nil when the swap does not exist.
func (s *swapFixture) state() *shieldpool.SwapState {
	s.t.Helper()
	account := s.account(s.State)
	if account == nil || account.Owner != s.pool.Profile.ProgramID {
		return nil
	}
	state, err := shieldpool.ParseSwapState(account.Data)
	if err != nil {
		s.t.Fatal(err)
	}
	return state
}

// tokens is the balance of a token account, or 0 when there is no such account.
func (w *world) tokens(at solana.PublicKey) uint64 {
	w.t.Helper()
	account := w.account(at)
	if account == nil || account.Owner != solana.TokenProgramID {
		return 0
	}
	parsed, err := shieldpool.ParseTokenAccount(account.Data)
	if err != nil {
		w.t.Fatal(err)
	}
	return parsed.Amount
}

// marketOutput is the market's current output for the swap's lamports.
func (s *swapFixture) marketOutput() uint64 {
	s.t.Helper()
	state, err := market.ParseState(s.account(s.market.Address).Data)
	if err != nil {
		s.t.Fatal(err)
	}
	return state.Output(s.net)
}

// toTimeout advances until the open slot is the timeout slot plus past.
func (s *swapFixture) toTimeout(past int) {
	s.t.Helper()
	var slot uint64
	s.Read(bank.Processed, func(v bank.View) { slot = v.Slot() })
	s.Advance(s.state().TimeoutSlot + uint64(past) - slot)
}

// sendLamports, sendWrapped and mintTo send lamports, wrapped SOL and tokens, as a stranger may.
func (w *world) sendLamports(to solana.PublicKey, lamports uint64) {
	w.t.Helper()
	w.must(system.NewTransferInstruction(lamports, w.payer.PublicKey(), to).Build())
}

func (w *world) sendWrapped(to solana.PublicKey, lamports uint64) {
	w.t.Helper()
	w.must(system.NewTransferInstruction(lamports, w.payer.PublicKey(), to).Build(),
		tokenprogram.NewSyncNativeInstruction(to).Build())
}

func (w *world) mintTo(account solana.PublicKey, amount uint64) {
	w.t.Helper()
	authority := key("authority")
	w.fund(authority.PublicKey(), uint64(sol))
	if _, err := w.run(authority, tokenprogram.NewMintToInstruction(amount, address("usd"), account, authority.PublicKey(), nil).Build()); err != nil {
		w.t.Fatalf("mint: %v", err)
	}
	w.Advance(1)
}

package market_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
	tokenprogram "github.com/gagliardetto/solana-go/programs/token"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/market"
	"github.com/relaypool/relaypool/hack/localnet/token"
)

const (
	sol   = solana.LAMPORTS_PER_SOL
	stock = 2_000_000_000_000
)

var reserves = market.Reserves{Lamports: 10_000 * sol, Tokens: 1_500_000_000_000}

func key(name string) solana.PrivateKey {
	seed := sha256.Sum256([]byte(name))
	return solana.PrivateKey(ed25519.NewKeyFromSeed(seed[:]))
}

func address(name string) solana.PublicKey { return key(name).PublicKey() }

// world is a chain with a mint, "mint", and its market. "admin" is the authority of
// both and pays all fees. "user" has wrapped SOL and a token account.
type world struct {
	*bank.Bank
	t      testing.TB
	market *market.Market
	// wsol and tokens are the user's token accounts.
	wsol, tokens solana.PublicKey
	runs         uint32
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t}
	var err error
	if w.market, err = market.For(address("mint")); err != nil {
		t.Fatal(err)
	}
	admin := address("admin")
	accounts := w.market.Genesis(admin, reserves, 30, stock)
	accounts[solana.WrappedSol] = token.NativeMint()
	accounts[address("mint")] = token.MintAccount(tokenprogram.Mint{MintAuthority: &admin, Supply: stock, Decimals: 6, IsInitialized: true})
	w.Bank, err = bank.New(bank.Options{
		Genesis: sha256.Sum256([]byte("test")), ConfirmAfter: 1, FinalizeAfter: 32, History: 1000,
		Clock:    func() time.Time { return time.Unix(1_700_000_000, 0) },
		Programs: slices.Concat([]bank.Program{bank.SystemProgram(), bank.ComputeBudgetProgram(), market.Program()}, token.Programs()),
		Accounts: accounts, Faucet: admin, FaucetLamports: 1_000_000 * sol,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.wsol, w.tokens = w.associated("user", solana.WrappedSol), w.associated("user", address("mint"))
	w.must(system.NewTransferInstruction(100*sol, admin, w.wsol).Build(), tokenprogram.NewSyncNativeInstruction(w.wsol).Build())
	return w
}

// associated creates the associated token account of a named wallet.
func (w *world) associated(name string, mint solana.PublicKey) solana.PublicKey {
	w.t.Helper()
	return w.associatedOf(address(name), mint)
}

func (w *world) associatedOf(wallet, mint solana.PublicKey) solana.PublicKey {
	w.t.Helper()
	create, err := token.CreateIdempotent(address("admin"), wallet, mint)
	if err != nil {
		w.t.Fatal(err)
	}
	w.must(create)
	at, _, err := solana.FindAssociatedTokenAddress(wallet, mint)
	if err != nil {
		w.t.Fatal(err)
	}
	return at
}

// run lands a transaction of the admin, which the user signs too if necessary. It returns the
// units used, the error as in JSON-RPC without the wrapping InstructionError, and the logs. The
// error "null" means success.
func (w *world) run(instructions ...solana.Instruction) (units uint64, failure string, logs []string) {
	w.t.Helper()
	var hash solana.Hash
	w.Read(bank.Processed, func(v bank.View) { hash, _ = v.LatestBlockhash() })
	w.runs++
	limit := binary.LittleEndian.AppendUint32([]byte{2}, 1_000_000+w.runs)
	instructions = append([]solana.Instruction{solana.NewInstruction(solana.ComputeBudget, nil, limit)}, instructions...)
	tx, err := solana.NewTransaction(instructions, hash, solana.TransactionPayer(address("admin")))
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := tx.Sign(func(of solana.PublicKey) *solana.PrivateKey {
		for _, name := range []string{"admin", "user"} {
			if k := key(name); k.PublicKey() == of {
				return &k
			}
		}
		return nil
	}); err != nil {
		w.t.Fatal(err)
	}
	raw, err := tx.MarshalBinary()
	if err != nil {
		w.t.Fatal(err)
	}
	decoded, err := bank.DecodeTransaction(raw)
	if err != nil {
		w.t.Fatal(err)
	}
	_, txErr := w.Submit(decoded)
	encoded, err := json.Marshal(txErr)
	if err != nil {
		w.t.Fatal(err)
	}
	w.Read(bank.Processed, func(v bank.View) {
		if landed := v.Transaction(decoded.Signature()); landed != nil {
			units, logs = landed.Meta.Units, landed.Meta.Logs
		}
	})
	w.Advance(1)
	return units, strings.TrimSuffix(strings.TrimPrefix(string(encoded), `{"InstructionError":[1,`), `]}`), logs
}

func (w *world) must(instructions ...solana.Instruction) uint64 {
	w.t.Helper()
	units, failure, logs := w.run(instructions...)
	if failure != "null" {
		w.t.Fatalf("got error %s, want none; logs %q", failure, logs)
	}
	return units
}

func (w *world) account(at solana.PublicKey) (a *bank.Account) {
	w.Read(bank.Processed, func(v bank.View) { a = v.Account(at) })
	return a
}

func (w *world) state() *market.State {
	w.t.Helper()
	account := w.account(w.market.Address)
	if account == nil {
		w.t.Fatal("there is no market")
	}
	state, err := market.ParseState(account.Data)
	if err != nil {
		w.t.Fatal(err)
	}
	return state
}

func (w *world) amount(at solana.PublicKey) uint64 {
	w.t.Helper()
	return bank.ParseToken(w.account(at).Data).Amount
}

func (w *world) trade(in, minimum uint64) market.Trade {
	return market.Trade{User: address("user"), WSOL: w.wsol, Tokens: w.tokens, AmountIn: in, MinOut: minimum}
}

func generic(t testing.TB, ix solana.Instruction) *solana.GenericInstruction {
	t.Helper()
	data, err := ix.Data()
	if err != nil {
		t.Fatal(err)
	}
	return solana.NewInstruction(ix.ProgramID(), ix.Accounts(), data)
}

func TestSetReservesSetsPriceAndDepth(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	want := market.Reserves{Lamports: 5 * sol, Tokens: stock}
	w.must(w.market.SetReserves(address("admin"), want))
	if diff := cmp.Diff(want, w.state().Reserves); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.must(w.market.Swap(w.trade(sol, 1)))
	if got, want := w.amount(w.tokens), output(want, 30, sol).Uint64(); got != want {
		t.Errorf("a swap at the new reserves gives %d tokens, want %d", got, want)
	}
}

func TestSetReservesRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reserves market.Reserves
		altered  func(*solana.GenericInstruction)
		want     string
	}{
		"more tokens than the vault holds": {market.Reserves{Lamports: 1, Tokens: stock + 1}, nil, `"InvalidArgument"`},
		"no lamports":                      {market.Reserves{Tokens: 1}, nil, `"InvalidArgument"`},
		"somebody who is not the admin":    {reserves, func(ix *solana.GenericInstruction) { ix.AccountValues[0] = solana.Meta(address("user")).SIGNER() }, `"InvalidArgument"`},
		"an admin who did not sign":        {reserves, func(ix *solana.GenericInstruction) { ix.AccountValues[0] = solana.Meta(address("x")) }, `"MissingRequiredSignature"`},
		"another vault":                    {reserves, func(ix *solana.GenericInstruction) { ix.AccountValues[2].PublicKey = address("x") }, `"InvalidSeeds"`},
		"an account that is no market":     {reserves, func(ix *solana.GenericInstruction) { ix.AccountValues[1].PublicKey = address("x") }, `"UninitializedAccount"`},
		"data that ends early":             {reserves, func(ix *solana.GenericInstruction) { ix.DataBytes = ix.DataBytes[:16] }, `"InvalidInstructionData"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			ix := generic(t, w.market.SetReserves(address("admin"), test.reserves))
			if test.altered != nil {
				test.altered(ix)
			}
			if _, got, logs := w.run(ix); got != test.want {
				t.Errorf("got %s, want %s; logs %q", got, test.want, logs)
			}
			if diff := cmp.Diff(reserves, w.state().Reserves); diff != "" {
				t.Errorf("a refused instruction changed the reserves (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSwapMovesBothSides(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	in, out := reserves.Lamports, reserves.Tokens
	for range 3 {
		want := output(market.Reserves{Lamports: in, Tokens: out}, 30, 7*sol).Uint64()
		tokens, wsol := w.amount(w.tokens), w.amount(w.wsol)
		units := w.must(w.market.Swap(w.trade(7*sol, want)))
		if units < 60_000 || units > 120_000 {
			t.Errorf("a swap uses %d units, want 60000 to 120000, like one hop of a real router", units)
		}
		in, out = in+7*sol, out-want
		got := []uint64{w.amount(w.tokens) - tokens, wsol - w.amount(w.wsol), w.state().Lamports, w.state().Tokens}
		if diff := cmp.Diff([]uint64{want, 7 * sol, in, out}, got); diff != "" {
			t.Errorf("output, input and reserves (-want +got):\n%s", diff)
		}
	}
	if got, want := w.amount(w.market.VaultSOL), 21*sol; got != want {
		t.Errorf("the vault has %d lamports, want %d", got, want)
	}
	if got, want := w.amount(w.market.VaultTokens), stock-w.amount(w.tokens); got != want {
		t.Errorf("the vault has %d tokens, want %d", got, want)
	}
}

func TestShortSwapIgnoresTheMinimum(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	trade := w.trade(sol, math.MaxUint64)
	trade.KeepBPS = 2500
	w.must(w.market.Swap(trade))
	full := output(reserves, 30, sol).Uint64()
	if got, want := w.amount(w.tokens), full*3/4; got != want {
		t.Errorf("got %d tokens, want %d", got, want)
	}
}

func TestSwapRefuses(t *testing.T) {
	t.Parallel()
	full := output(reserves, 30, sol).Uint64()
	at := func(i int, key solana.PublicKey) func(*world, *solana.GenericInstruction) {
		return func(_ *world, ix *solana.GenericInstruction) { ix.AccountValues[i].PublicKey = key }
	}
	for name, test := range map[string]struct {
		in, minimum uint64
		altered     func(*world, *solana.GenericInstruction)
		want        string
	}{
		"one unit less than the minimum":    {in: sol, minimum: full + 1, want: `{"Custom":6001}`},
		"nothing in":                        {in: 0, want: `"InvalidArgument"`},
		"more in than the user has":         {in: 101 * sol, want: `{"Custom":1}`},
		"more in than the reserve can hold": {in: math.MaxUint64, want: `"InvalidArgument"`},
		"another market":                    {in: sol, altered: at(0, address("x")), want: `"UninitializedAccount"`},
		"a user who did not sign":           {in: sol, altered: func(_ *world, ix *solana.GenericInstruction) { ix.AccountValues[1] = solana.Meta(address("x")) }, want: `"MissingRequiredSignature"`},
		"wrapped SOL of somebody else": {in: sol, altered: func(w *world, ix *solana.GenericInstruction) {
			ix.AccountValues[2].PublicKey = w.associated("other", solana.WrappedSol)
		}, want: `{"Custom":6025}`},
		"tokens into an account of somebody else": {in: sol, altered: func(w *world, ix *solana.GenericInstruction) {
			ix.AccountValues[3].PublicKey = w.associated("other", w.market.Mint)
		}, want: `{"Custom":6025}`},
		"tokens into a missing account": {in: sol, altered: at(3, address("x")), want: `{"Custom":6025}`},
		"tokens into wrapped SOL":       {in: sol, altered: func(w *world, ix *solana.GenericInstruction) { ix.AccountValues[3].PublicKey = w.wsol }, want: `{"Custom":3}`},
		"another vault of SOL":          {in: sol, altered: func(w *world, ix *solana.GenericInstruction) { ix.AccountValues[4].PublicKey = w.wsol }, want: `"InvalidSeeds"`},
		"another vault of tokens":       {in: sol, altered: func(w *world, ix *solana.GenericInstruction) { ix.AccountValues[5].PublicKey = w.tokens }, want: `"InvalidSeeds"`},
		"another token program":         {in: sol, altered: at(6, solana.Token2022ProgramID), want: `"IncorrectProgramId"`},
		"data that ends early":          {in: sol, altered: func(_ *world, ix *solana.GenericInstruction) { ix.DataBytes = ix.DataBytes[:16] }, want: `"InvalidInstructionData"`},
		"too few accounts":              {in: sol, altered: func(_ *world, ix *solana.GenericInstruction) { ix.AccountValues = ix.AccountValues[:6] }, want: `"NotEnoughAccountKeys"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			ix := w.market.Swap(w.trade(test.in, test.minimum))
			if test.altered != nil {
				test.altered(w, ix)
			}
			if _, got, logs := w.run(ix); got != test.want {
				t.Errorf("got %s, want %s; logs %q", got, test.want, logs)
			}
			if w.amount(w.wsol) != 100*sol || w.amount(w.market.VaultTokens) != stock {
				t.Error("a refused swap moved tokens")
			}
		})
	}
}

func TestSwapIgnoresFurtherAccounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ix := w.market.Swap(w.trade(sol, 1))
	for i := range 10 {
		ix.AccountValues = append(ix.AccountValues, solana.Meta(address(string(rune('a'+i)))))
	}
	w.must(ix)
}

package token_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
	tokenprogram "github.com/gagliardetto/solana-go/programs/token"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/token"
)

// key derives a key pair from a name, so that every run uses the same keys.
func key(name string) solana.PrivateKey {
	seed := sha256.Sum256([]byte(name))
	return solana.PrivateKey(ed25519.NewKeyFromSeed(seed[:]))
}

func address(name string) solana.PublicKey { return key(name).PublicKey() }

func pointer[T any](v T) *T { return &v }

// world is a chain with the token programs and a mint, "mint", with 6 decimals.
// "authority" is the mint's mint and freeze authority. "payer" pays all fees.
type world struct {
	*bank.Bank
	t testing.TB
	// landings counts transactions, so that otherwise equal transactions differ.
	landings uint32
}

var reserve = bank.RentExemption(bank.TokenAccountSize)

func newWorld(t testing.TB, more map[string]bank.Account, programs ...bank.Program) *world {
	t.Helper()
	authority := address("authority")
	accounts := map[solana.PublicKey]bank.Account{
		solana.WrappedSol: token.NativeMint(),
		address("mint"): token.MintAccount(tokenprogram.Mint{
			MintAuthority: &authority, Decimals: 6, IsInitialized: true, FreezeAuthority: &authority,
		}),
		address("other mint"): token.MintAccount(tokenprogram.Mint{MintAuthority: &authority, Decimals: 6, IsInitialized: true}),
		address("fixed mint"): token.MintAccount(tokenprogram.Mint{Supply: 1, IsInitialized: true}),
	}
	for name, account := range more {
		accounts[address(name)] = account
	}
	b, err := bank.New(bank.Options{
		Genesis: sha256.Sum256([]byte("test")), ConfirmAfter: 2, FinalizeAfter: 32, History: 1000,
		Clock:    func() time.Time { return time.Unix(1_700_000_000, 0) },
		Programs: append(append([]bank.Program{bank.SystemProgram(), bank.ComputeBudgetProgram()}, token.Programs()...), programs...),
		Accounts: accounts,
		Faucet:   address("payer"), FaucetLamports: 1_000_000 * solana.LAMPORTS_PER_SOL,
	})
	if err != nil {
		t.Fatal(err)
	}
	return &world{Bank: b, t: t}
}

// landError lands a transaction that the payer and the named accounts sign. It returns the transaction's
// error as in JSON-RPC; "null" means no error.
func (w *world) landError(instruction solana.Instruction, signers ...string) string {
	w.t.Helper()
	_, err := w.land(instruction, signers...)
	raw, marshalErr := json.Marshal(err)
	if marshalErr != nil {
		w.t.Fatal(marshalErr)
	}
	return string(raw)
}

func (w *world) land(instruction solana.Instruction, signers ...string) (*bank.Transaction, *bank.TransactionError) {
	w.t.Helper()
	var hash solana.Hash
	w.Read(bank.Processed, func(v bank.View) { hash, _ = v.LatestBlockhash() })
	w.landings++
	tx, err := solana.NewTransaction([]solana.Instruction{unitLimit(1_000_000 + w.landings), instruction}, hash, solana.TransactionPayer(address("payer")))
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := tx.Sign(func(of solana.PublicKey) *solana.PrivateKey {
		for _, name := range append(signers, "payer") {
			if address(name) == of {
				return pointer(key(name))
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
	landed, failure := w.Submit(decoded)
	if !landed {
		w.t.Fatalf("the transaction did not land: %v", failure)
	}
	return decoded, failure
}

func (w *world) must(instruction solana.Instruction, signers ...string) {
	w.t.Helper()
	if got := w.landError(instruction, signers...); got != "null" {
		w.t.Fatalf("got error %s, want none", got)
	}
}

func (w *world) account(of solana.PublicKey) (out *bank.Account) {
	w.Read(bank.Processed, func(v bank.View) { out = v.Account(of) })
	return out
}

func (w *world) lamports(of solana.PublicKey) uint64 {
	if account := w.account(of); account != nil {
		return account.Lamports
	}
	return 0
}

// token reads the token account at an address.
func (w *world) token(at solana.PublicKey) *tokenprogram.Account {
	w.t.Helper()
	account := w.account(at)
	if account == nil {
		w.t.Fatalf("no account at %s", at)
	}
	if account.Owner != solana.TokenProgramID {
		w.t.Fatalf("the owner is %s, want the token program", account.Owner)
	}
	parsed := bank.ParseToken(account.Data)
	if parsed == nil {
		w.t.Fatalf("%s has %d bytes, want a token account", at, len(account.Data))
	}
	return parsed
}

func (w *world) supply(mint string) uint64 {
	w.t.Helper()
	return bank.ParseMint(w.account(address(mint)).Data).Supply
}

// ata creates the associated token account of a wallet and returns its address.
func (w *world) ata(wallet string, mint solana.PublicKey) solana.PublicKey {
	w.t.Helper()
	ix, err := token.CreateIdempotent(address("payer"), address(wallet), mint)
	if err != nil {
		w.t.Fatal(err)
	}
	w.must(ix)
	return ataOf(wallet, mint)
}

func ataOf(wallet string, mint solana.PublicKey) solana.PublicKey {
	out, _, err := solana.FindAssociatedTokenAddress(address(wallet), mint)
	if err != nil {
		panic(err)
	}
	return out
}

// ataWithTokens creates the associated token account of a wallet for "mint", with an amount.
func (w *world) ataWithTokens(wallet string, amount uint64) solana.PublicKey {
	w.t.Helper()
	at := w.ata(wallet, address("mint"))
	w.must(tokenprogram.NewMintToInstruction(amount, address("mint"), at, address("authority"), nil).Build(), "authority")
	return at
}

func unitLimit(units uint32) solana.Instruction {
	return solana.NewInstruction(solana.ComputeBudget, nil, []byte{2, byte(units), byte(units >> 8), byte(units >> 16), byte(units >> 24)})
}

func (w *world) fund(to solana.PublicKey, lamports uint64) {
	w.t.Helper()
	w.must(system.NewTransferInstruction(lamports, address("payer"), to).Build())
}

func custom(code string) string { return `{"InstructionError":[1,{"Custom":` + code + `}]}` }

func builtin(name string) string { return `{"InstructionError":[1,"` + name + `"]}` }

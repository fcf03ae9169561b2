package localnet_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/gagliardetto/solana-go"
	tokenprogram "github.com/gagliardetto/solana-go/programs/token"
	"github.com/gagliardetto/solana-go/rpc"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/token"
)

// mint creates a mint with 6 decimals.
func (f *fixture) mint() solana.PublicKey {
	f.t.Helper()
	mint, err := f.CreateMint(6, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	return mint
}

// mintTo mints tokens and returns the owner's associated token account.
func (f *fixture) mintTo(mint, owner solana.PublicKey, amount uint64) solana.PublicKey {
	f.t.Helper()
	account, _, err := f.MintTo(mint, owner, amount)
	if err != nil {
		f.t.Fatal(err)
	}
	return account
}

// decode reads the result of a call as JSON.
func decode[T any](t testing.TB, from answer) (out T) {
	t.Helper()
	if from.Error != nil {
		t.Fatalf("error %d, %s", from.Error.Code, from.Error.Message)
	}
	if err := json.Unmarshal(from.Result, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

type tokenBalance struct {
	AccountIndex           int
	Mint, Owner, ProgramID string
	UITokenAmount          struct {
		UIAmount       *float64
		Decimals       int
		Amount         string
		UIAmountString string
	}
}

func TestHistoryHasTokenBalances(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	mint, to := f.mint(), address("to")
	from := f.mintTo(mint, f.payer.PublicKey(), 1_000_000)
	create, err := token.CreateIdempotent(f.payer.PublicKey(), to, mint)
	if err != nil {
		t.Fatal(err)
	}
	at, _, err := solana.FindAssociatedTokenAddress(to, mint)
	if err != nil {
		t.Fatal(err)
	}
	tx := f.sign(f.blockhash(rpc.CommitmentProcessed), create,
		tokenprogram.NewTransferInstruction(1_000_000, from, at, f.payer.PublicKey(), nil).Build())
	signature := f.send(tx)
	lamportTransfer := f.send(f.sign(f.blockhash(rpc.CommitmentProcessed), f.transfer(1_000_000)))
	f.Finalize()
	type transaction struct {
		Meta struct{ PreTokenBalances, PostTokenBalances []tokenBalance }
	}
	index := func(key solana.PublicKey) int {
		i, err := tx.GetAccountIndex(key)
		if err != nil {
			t.Fatal(err)
		}
		return int(i)
	}
	got := decode[transaction](t, f.call("getTransaction", `["`+signature.String()+`",{"maxSupportedTransactionVersion":0}]`)).Meta
	if n := len(got.PreTokenBalances); n != 1 || got.PreTokenBalances[0].UITokenAmount.Amount != "1000000" {
		t.Errorf("token balances before are %+v, want only the payer's", got.PreTokenBalances)
	}
	byIndex := map[int]tokenBalance{}
	for _, b := range got.PostTokenBalances {
		byIndex[b.AccountIndex] = b
	}
	emptied, filled := byIndex[index(from)], byIndex[index(at)]
	if emptied.UITokenAmount.Amount != "0" || emptied.UITokenAmount.UIAmount != nil || emptied.UITokenAmount.UIAmountString != "0" {
		t.Errorf("the payer's balance afterwards is %+v, want 0 and uiAmount null", emptied)
	}
	if len(got.PostTokenBalances) != 2 || filled.Owner != to.String() || filled.Mint != mint.String() ||
		filled.ProgramID != solana.TokenProgramID.String() || filled.UITokenAmount.Decimals != 6 || filled.UITokenAmount.UIAmountString != "1" {
		t.Errorf("token balances afterwards are %+v, want one token of the recipient", got.PostTokenBalances)
	}
	none := decode[transaction](t, f.call("getTransaction", `["`+lamportTransfer.String()+`",{"maxSupportedTransactionVersion":0}]`)).Meta
	if none.PreTokenBalances == nil || len(none.PreTokenBalances)+len(none.PostTokenBalances) != 0 {
		t.Errorf("a transfer of lamports has %+v, want empty lists", none)
	}
}

// TestAChainHasTheGivenAccounts puts a mint of Token-2022 on the chain. A relay must recognise and
// refuse such a mint.
func TestAChainHasTheGivenAccounts(t *testing.T) {
	t.Parallel()
	mint := token.MintAccount(tokenprogram.Mint{Decimals: 6, IsInitialized: true})
	mint.Owner = solana.Token2022ProgramID
	f := newFixture(t, localnet.Options{Accounts: map[solana.PublicKey]bank.Account{address("mint"): mint}})
	for key, owner := range map[solana.PublicKey]solana.PublicKey{
		address("mint"): solana.Token2022ProgramID, solana.WrappedSol: solana.TokenProgramID,
	} {
		info, err := f.GetAccountInfo(context.Background(), key)
		if err != nil || info.Value.Owner != owner {
			t.Errorf("%s is %+v with error %v, want it owned by %s", key, info, err, owner)
		}
	}
}

// TestChainMintsFreezesAndThaws mints tokens twice, freezes the token account and thaws it.
func TestChainMintsFreezesAndThaws(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	mint, owner := f.mint(), address("owner")
	account := f.mintTo(mint, owner, 1_500_000)
	if again := f.mintTo(mint, owner, 250_000); again != account {
		t.Errorf("the tokens went to %s, want the associated account %s again", again, account)
	}
	state := func() *tokenprogram.Account {
		info, err := f.GetAccountInfoWithOpts(t.Context(), account, &rpc.GetAccountInfoOpts{Commitment: rpc.CommitmentProcessed})
		if err != nil {
			t.Fatal(err)
		}
		return bank.ParseToken(info.Value.Data.GetBinary())
	}
	if got := state(); got.Amount != 1_750_000 || got.Owner != owner || got.Mint != mint || got.State != tokenprogram.Initialized {
		t.Errorf("the account is %+v, want the owner's tokens", got)
	}
	if _, err := f.Freeze(mint, owner); err != nil || state().State != tokenprogram.Frozen {
		t.Errorf("after a freeze the account is %+v with error %v, want it frozen", state(), err)
	}
	if _, err := f.Thaw(mint, owner); err != nil || state().State != tokenprogram.Initialized {
		t.Errorf("after a thaw the account is %+v with error %v, want it thawed", state(), err)
	}
	if _, err := f.Thaw(mint, owner); err == nil {
		t.Error("a thaw of an account that is not frozen succeeds, want an error")
	}
	if _, err := f.CreateMint(20, nil); err == nil {
		t.Error("a mint with 20 decimals is created, want an error: one token would not fit in 64 bits")
	}
}

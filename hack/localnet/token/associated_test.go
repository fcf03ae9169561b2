package token_test

import (
	"slices"
	"testing"

	"github.com/gagliardetto/solana-go"
	associated "github.com/gagliardetto/solana-go/programs/associated-token-account"
	tokenprogram "github.com/gagliardetto/solana-go/programs/token"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/token"
)

func create(t testing.TB, wallet string, mint solana.PublicKey) solana.Instruction {
	t.Helper()
	ix, err := token.CreateIdempotent(address("payer"), address(wallet), mint)
	if err != nil {
		t.Fatal(err)
	}
	ix.DataBytes = []byte{0}
	return ix
}

func TestAssociatedAccountsAreCreated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, preset())
	idempotent := func(wallet string, mint solana.PublicKey) solana.Instruction {
		ix, err := token.CreateIdempotent(address("payer"), address(wallet), mint)
		if err != nil {
			t.Fatal(err)
		}
		return ix
	}
	for name, test := range map[string]struct {
		ix     solana.Instruction
		wallet string
		mint   solana.PublicKey
		// sent is the number of lamports sent to the address before the creation.
		sent uint64
	}{
		"by Create":                    {create(t, "a", address("mint")), "a", address("mint"), 0},
		"by CreateIdempotent":          {idempotent("b", address("mint")), "b", address("mint"), 0},
		"by another library's Create":  {associated.NewCreateInstruction(address("payer"), address("c"), address("mint")).Build(), "c", address("mint"), 0},
		"of the native mint":           {idempotent("d", solana.WrappedSol), "d", solana.WrappedSol, 0},
		"with a part of the rent":      {idempotent("e", address("mint")), "e", address("mint"), 890_880},
		"with the rent":                {idempotent("f", address("mint")), "f", address("mint"), reserve},
		"of the native mint with more": {idempotent("g", solana.WrappedSol), "g", solana.WrappedSol, reserve + 7},
	} {
		at := ataOf(test.wallet, test.mint)
		if test.sent > 0 {
			w.fund(at, test.sent)
		}
		w.must(test.ix)
		want := &tokenprogram.Account{Mint: test.mint, Owner: address(test.wallet), State: tokenprogram.Initialized}
		if test.mint == solana.WrappedSol {
			want.IsNative = pointer(reserve)
			want.Amount = max(test.sent, reserve) - reserve
		}
		if diff := cmp.Diff(want, w.token(at)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got := w.lamports(at); got != max(test.sent, reserve) {
			t.Errorf("%s: the account has %d lamports, want %d", name, got, max(test.sent, reserve))
		}
	}
}

// TestCreationRecordsItsInnerInstructions compares the inner instructions, logs and units of a
// creation with mainnet's.
func TestCreationRecordsItsInnerInstructions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	tx, failure := w.land(create(t, "alice", address("mint")))
	if failure != nil {
		t.Fatal(failure)
	}
	var meta bank.Meta
	w.Read(bank.Processed, func(v bank.View) { meta = v.Transaction(tx.Signature()).Meta })
	type inner struct {
		program solana.PublicKey
		tag     byte
	}
	var got []inner
	for _, in := range meta.Inner {
		for _, ix := range in.Instructions {
			got = append(got, inner{tx.Keys[ix.ProgramIDIndex], ix.Data[0]})
		}
	}
	want := []inner{
		{solana.TokenProgramID, getAccountDataSize}, {solana.SystemProgramID, 0},
		{solana.TokenProgramID, initializeImmutableOwner}, {solana.TokenProgramID, initializeAccount3},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(inner{})); diff != "" {
		t.Errorf("inner instructions (-want +got):\n%s", diff)
	}
	for _, line := range []string{
		"Program log: Create", "Program log: Instruction: GetAccountDataSize",
		"Program log: Initialize the associated token account",
		"Program log: Please upgrade to SPL Token 2022 for immutable owner support",
	} {
		if !slices.Contains(meta.Logs, line) {
			t.Errorf("the logs lack %q", line)
		}
	}
	if meta.Units < 15_000 || meta.Units > 60_000 {
		t.Errorf("the creation used %d units, want about 20000 to 30000, as on mainnet", meta.Units)
	}
}

func TestCreationOfAnExistingAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, preset())
	at := w.ataWithTokens("alice", 5)
	before := w.account(at)
	if again := w.ata("alice", address("mint")); again != at {
		t.Fatalf("the second CreateIdempotent is for %s, want %s", again, at)
	}
	if diff := cmp.Diff(before, w.account(at)); diff != "" {
		t.Errorf("CreateIdempotent changed the account (-want +got):\n%s", diff)
	}
	if got, want := w.landError(create(t, "alice", address("mint"))), builtin("IllegalOwner"); got != want {
		t.Errorf("Create gives %s, want %s", got, want)
	}
	w.must(tokenprogram.NewSetAuthorityInstruction(tokenprogram.AuthorityAccountOwner, address("bob"), at, address("alice"), nil).Build(), "alice")
	idempotent, err := token.CreateIdempotent(address("payer"), address("alice"), address("mint"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := w.landError(idempotent), custom("0"); got != want {
		t.Errorf("CreateIdempotent for an account of another owner gives %s, want %s", got, want)
	}
	w.must(tokenprogram.NewTransferInstruction(5, at, address("bob's"), address("bob"), nil).Build(), "bob")
	w.must(tokenprogram.NewCloseAccountInstruction(at, address("bob"), address("bob"), nil).Build(), "bob")
	w.must(idempotent)
	if a := w.token(at); a.Owner != address("alice") || a.Amount != 0 {
		t.Errorf("after a close, CreateIdempotent creates %+v, want an empty account of alice", a)
	}
}

func TestInvalidCreationsAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, preset())
	with := func(data []byte, change func(solana.AccountMetaSlice)) solana.Instruction {
		ix, err := token.CreateIdempotent(address("payer"), address("alice"), address("mint"))
		if err != nil {
			t.Fatal(err)
		}
		metas := solana.AccountMetaSlice{}
		for _, meta := range ix.Accounts() {
			metas = append(metas, solana.NewAccountMeta(meta.PublicKey, meta.IsWritable, meta.IsSigner))
		}
		change(metas)
		return solana.NewInstruction(solana.SPLAssociatedTokenAccountProgramID, metas, data)
	}
	wrong := func(i int, key solana.PublicKey) func(solana.AccountMetaSlice) {
		return func(metas solana.AccountMetaSlice) { metas[i].PublicKey = key }
	}
	token2022Address, _, err := solana.FindProgramAddress([][]byte{
		address("alice").Bytes(), solana.Token2022ProgramID.Bytes(), address("foreign mint").Bytes(),
	}, solana.SPLAssociatedTokenAccountProgramID)
	if err != nil {
		t.Fatal(err)
	}
	keep := func(solana.AccountMetaSlice) {}
	for name, test := range map[string]struct {
		ix   solana.Instruction
		want string
	}{
		"an unknown instruction":  {with([]byte{2}, keep), builtin("InvalidInstructionData")},
		"a byte after the tag":    {with([]byte{1, 0}, keep), builtin("InvalidInstructionData")},
		"another wallet":          {with([]byte{1}, wrong(2, address("bob"))), builtin("InvalidSeeds")},
		"another mint":            {with([]byte{1}, wrong(3, address("other mint"))), builtin("InvalidSeeds")},
		"another address":         {with([]byte{1}, wrong(1, address("bob"))), builtin("InvalidSeeds")},
		"a read-only account":     {with([]byte{1}, func(m solana.AccountMetaSlice) { m[1].IsWritable = false }), builtin("PrivilegeEscalation")},
		"a payer who cannot pay":  {with([]byte{1}, func(m solana.AccountMetaSlice) { m[0].PublicKey, m[0].IsSigner = address("bob's"), false }), builtin("PrivilegeEscalation")},
		"a token account as mint": {create(t, "alice", address("alice's")), custom("2")},
		"a missing mint":          {create(t, "alice", address("nowhere")), builtin("IncorrectProgramId")},
		"a Token-2022 mint":       {create(t, "alice", address("foreign mint")), builtin("IncorrectProgramId")},
		"Token-2022's program": {with([]byte{1}, func(m solana.AccountMetaSlice) {
			m[1].PublicKey, m[3].PublicKey, m[5].PublicKey = token2022Address, address("foreign mint"), solana.Token2022ProgramID
		}), builtin("UnsupportedProgramId")},
	} {
		if got := w.landError(test.ix); got != test.want {
			t.Errorf("%s: got error %s, want %s", name, got, test.want)
		}
	}
}

// TestAProgramMovesTokensOfItsAddress runs a program that owns tokens by a program address, as the
// pool's swaps do. The program invokes the token program to move the tokens and close the account.
func TestAProgramMovesTokensOfItsAddress(t *testing.T) {
	t.Parallel()
	vaultProgram := address("vault program")
	vault, bump, err := solana.FindProgramAddress([][]byte{[]byte("vault")}, vaultProgram)
	if err != nil {
		t.Fatal(err)
	}
	seeds := [][]byte{[]byte("vault"), {bump}}
	from, _, err := solana.FindAssociatedTokenAddress(vault, address("mint"))
	if err != nil {
		t.Fatal(err)
	}
	program := bank.Program{
		ID: vaultProgram, Account: bank.ProgramAccount(),
		Process: func(v *bank.Invocation) error {
			signer := seeds
			if v.Data[0] == 0 {
				signer = nil
			}
			invoke := func(ix solana.Instruction) error {
				if signer == nil {
					return v.Invoke(ix)
				}
				return v.Invoke(ix, signer)
			}
			if err := invoke(tokenprogram.NewTransferInstruction(30, from, address("bob's"), vault, nil).Build()); err != nil {
				return err
			}
			return invoke(tokenprogram.NewCloseAccountInstruction(from, address("payer"), vault, nil).Build())
		},
	}
	w := newWorld(t, preset(), program)
	createATA, err := token.CreateIdempotent(address("payer"), vault, address("mint"))
	if err != nil {
		t.Fatal(err)
	}
	w.must(createATA)
	w.must(tokenprogram.NewMintToInstruction(30, address("mint"), from, address("authority"), nil).Build(), "authority")
	call := func(data byte) solana.Instruction {
		return solana.NewInstruction(vaultProgram, solana.AccountMetaSlice{
			solana.Meta(vault), solana.Meta(from).WRITE(), solana.Meta(address("bob's")).WRITE(),
			solana.Meta(address("payer")).WRITE(), solana.Meta(solana.TokenProgramID),
		}, []byte{data})
	}
	if got, want := w.landError(call(0)), builtin("PrivilegeEscalation"); got != want {
		t.Errorf("without its seeds the program gets %s, want %s", got, want)
	}
	w.must(call(1))
	if got := w.token(address("bob's")).Amount; got != 30 {
		t.Errorf("bob has %d tokens, want the vault's 30", got)
	}
	if got := w.account(from); got != nil {
		t.Errorf("the vault's account is %+v, want it closed", got)
	}
}

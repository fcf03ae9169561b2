package token_test

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
	tokenprogram "github.com/gagliardetto/solana-go/programs/token"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/token"
)

// preset are the accounts of the tests below, by name: token accounts of alice and bob, and
// accounts that are frozen, blank or invalid.
func preset() map[string]bank.Account {
	of := func(owner, mint string, amount uint64, change func(*tokenprogram.Account)) bank.Account {
		account := tokenprogram.Account{Mint: address(mint), Owner: address(owner), Amount: amount, State: tokenprogram.Initialized}
		if change != nil {
			change(&account)
		}
		return token.Account(account)
	}
	ownedBy := func(by solana.PublicKey, account bank.Account) bank.Account {
		account.Owner = by
		return account
	}
	blank := func(size uint64, lamports uint64) bank.Account {
		return bank.Account{Lamports: lamports, Data: make([]byte, size), Owner: solana.TokenProgramID}
	}
	freeze := func(a *tokenprogram.Account) { a.State = tokenprogram.Frozen }
	native := func(a *tokenprogram.Account) { a.Mint, a.IsNative = solana.WrappedSol, pointer(reserve) }
	return map[string]bank.Account{
		"alice's":             of("alice", "mint", 100, nil),
		"bob's":               of("bob", "mint", 0, nil),
		"full":                of("bob", "mint", math.MaxUint64, nil),
		"other":               of("alice", "other mint", 100, nil),
		"frozen":              of("alice", "mint", 100, freeze),
		"native":              of("alice", "mint", 5000, native),
		"native 2":            of("bob", "mint", 0, native),
		"foreign":             ownedBy(solana.Token2022ProgramID, of("alice", "mint", 100, nil)),
		"foreign mint":        ownedBy(solana.Token2022ProgramID, token.MintAccount(tokenprogram.Mint{MintAuthority: pointer(address("authority")), Decimals: 6, IsInitialized: true})),
		"blank":               blank(bank.TokenAccountSize, reserve),
		"blank mint":          blank(bank.TokenMintSize, bank.RentExemption(bank.TokenMintSize)),
		"below rent":          blank(bank.TokenAccountSize, reserve-1),
		"mint below rent":     blank(bank.TokenMintSize, bank.RentExemption(bank.TokenMintSize)-1),
		"blank, a byte short": blank(bank.TokenAccountSize-1, reserve),
		"no account":          blank(10, reserve),
	}
}

// ix builds an instruction of the token program. The names are accounts, which are writable. A ! at
// the end of a name marks a signer, a - marks a read-only account.
func ix(tag byte, args []byte, names ...string) solana.Instruction {
	metas := make(solana.AccountMetaSlice, len(names))
	for i, name := range names {
		bare := strings.TrimRight(name, "!-")
		metas[i] = solana.NewAccountMeta(address(bare), !strings.HasSuffix(name, "-"), strings.Contains(name, "!"))
		if bare == "wrapped sol" {
			metas[i].PublicKey, metas[i].IsWritable = solana.WrappedSol, false
		}
	}
	return solana.NewInstruction(solana.TokenProgramID, metas, append([]byte{tag}, args...))
}

func u64(n uint64, more ...byte) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, n), more...)
}

func tagAndKey(tag byte, name string) []byte {
	of := address(name)
	return append([]byte{tag}, of[:]...)
}

// The tags of the instructions, as the token program publishes them.
const (
	initializeMultisig, transfer                                         = 2, 3
	setAuthority, mintTo, burn, closeAccount, freezeAccount, thawAccount = 6, 7, 8, 9, 10, 11
	syncNative, initializeAccount3, initializeMint2                      = 17, 18, 20
	getAccountDataSize, initializeImmutableOwner                         = 21, 22
)

func TestInvalidInstructionsAreRefusedAsOnMainnet(t *testing.T) {
	t.Parallel()
	alice := address("alice")
	tests := map[string]struct {
		ix      solana.Instruction
		signers []string
		want    string
	}{
		"no data":                                 {solana.NewInstruction(solana.TokenProgramID, nil, nil), nil, custom("12")},
		"an unknown tag":                          {ix(99, nil), nil, custom("12")},
		"a multisignature account":                {ix(initializeMultisig, []byte{1}, "blank", "rent", "alice"), nil, custom("12")},
		"too few accounts":                        {ix(transfer, u64(1), "alice's", "bob's"), nil, builtin("NotEnoughAccountKeys")},
		"a transfer without its amount":           {ix(transfer, []byte{1}, "alice's", "bob's", "alice!"), []string{"alice"}, custom("12")},
		"a transfer above the balance":            {ix(transfer, u64(101), "alice's", "bob's", "alice!"), []string{"alice"}, custom("1")},
		"a transfer to another mint's account":    {ix(transfer, u64(1), "alice's", "other", "alice!"), []string{"alice"}, custom("3")},
		"a transfer by somebody else":             {ix(transfer, u64(1), "alice's", "bob's", "bob!"), []string{"bob"}, custom("4")},
		"a transfer that the owner did not sign":  {ix(transfer, u64(1), "alice's", "bob's", "alice"), nil, builtin("MissingRequiredSignature")},
		"a transfer from a frozen account":        {ix(transfer, u64(1), "frozen", "bob's", "alice!"), []string{"alice"}, custom("17")},
		"a transfer to a frozen account":          {ix(transfer, u64(1), "alice's", "frozen", "alice!"), []string{"alice"}, custom("17")},
		"a transfer that overflows":               {ix(transfer, u64(1), "alice's", "full", "alice!"), []string{"alice"}, custom("14")},
		"a transfer to no account":                {ix(transfer, u64(1), "alice's", "no account", "alice!"), []string{"alice"}, builtin("InvalidAccountData")},
		"a transfer to a blank account":           {ix(transfer, u64(1), "alice's", "blank", "alice!"), []string{"alice"}, builtin("UninitializedAccount")},
		"a transfer from a mint":                  {ix(transfer, u64(1), "mint", "bob's", "alice!"), []string{"alice"}, builtin("InvalidAccountData")},
		"a transfer from a foreign account":       {ix(transfer, u64(1), "foreign", "bob's", "alice!"), []string{"alice"}, builtin("ExternalAccountDataModified")},
		"a transfer of 0 from a foreign account":  {ix(transfer, u64(0), "foreign", "bob's", "alice!"), []string{"alice"}, builtin("IncorrectProgramId")},
		"a foreign account's transfer to itself":  {ix(transfer, u64(1), "foreign", "foreign", "alice!"), []string{"alice"}, builtin("IncorrectProgramId")},
		"a transfer from a read-only account":     {ix(transfer, u64(1), "alice's-", "bob's", "alice!"), []string{"alice"}, builtin("ReadonlyDataModified")},
		"a mint of tokens by somebody else":       {ix(mintTo, u64(1), "mint", "alice's", "alice!"), []string{"alice"}, custom("4")},
		"a mint of tokens with a fixed supply":    {ix(mintTo, u64(1), "fixed mint", "fixed", "authority!"), []string{"authority"}, custom("5")},
		"a mint to an account of another mint":    {ix(mintTo, u64(1), "mint", "other", "authority!"), []string{"authority"}, custom("3")},
		"a mint to a frozen account":              {ix(mintTo, u64(1), "mint", "frozen", "authority!"), []string{"authority"}, custom("17")},
		"a mint of native tokens":                 {ix(mintTo, u64(1), "wrapped sol", "native", "authority!"), []string{"authority"}, custom("10")},
		"a mint that overflows":                   {ix(mintTo, u64(1), "mint", "full", "authority!"), []string{"authority"}, custom("14")},
		"a mint of 0 tokens to a foreign account": {ix(mintTo, u64(0), "mint", "foreign", "authority!"), []string{"authority"}, builtin("IncorrectProgramId")},
		"a burn above the balance":                {ix(burn, u64(101), "alice's", "mint", "alice!"), []string{"alice"}, custom("1")},
		"a burn by somebody else":                 {ix(burn, u64(1), "alice's", "mint", "bob!"), []string{"bob"}, custom("4")},
		"a burn of native tokens":                 {ix(burn, u64(1), "native", "wrapped sol", "alice!"), []string{"alice"}, custom("10")},
		"a burn of frozen tokens":                 {ix(burn, u64(1), "frozen", "mint", "alice!"), []string{"alice"}, custom("17")},
		"a burn with another mint":                {ix(burn, u64(1), "alice's", "other mint", "alice!"), []string{"alice"}, custom("3")},
		"a close of an account with tokens":       {ix(closeAccount, nil, "alice's", "alice", "alice!"), []string{"alice"}, custom("11")},
		"a close by somebody else":                {ix(closeAccount, nil, "bob's", "alice", "alice!"), []string{"alice"}, custom("4")},
		"a close to the account itself":           {ix(closeAccount, nil, "bob's", "bob's", "bob!"), []string{"bob"}, builtin("InvalidAccountData")},
		"a close of another program's account":    {ix(closeAccount, nil, "foreign", "alice", "alice!"), []string{"alice"}, custom("11")},
		"a freeze of a frozen account":            {ix(freezeAccount, nil, "frozen", "mint-", "authority!"), []string{"authority"}, custom("13")},
		"a thaw of an account not frozen":         {ix(thawAccount, nil, "alice's", "mint-", "authority!"), []string{"authority"}, custom("13")},
		"a freeze by the account's owner":         {ix(freezeAccount, nil, "alice's", "mint-", "alice!"), []string{"alice"}, custom("4")},
		"a freeze with another mint":              {ix(freezeAccount, nil, "alice's", "other mint-", "authority!"), []string{"authority"}, custom("3")},
		"a freeze of a mint that cannot freeze":   {ix(freezeAccount, nil, "other", "other mint-", "authority!"), []string{"authority"}, custom("16")},
		"a freeze of a native account":            {ix(freezeAccount, nil, "native", "wrapped sol", "authority!"), []string{"authority"}, custom("10")},
		"a sync of an account that is not native": {ix(syncNative, nil, "alice's"), nil, custom("19")},
		"a sync of another program's account":     {ix(syncNative, nil, "foreign"), nil, builtin("IncorrectProgramId")},
		"an owner set to nobody":                  {ix(setAuthority, []byte{2, 0}, "alice's", "alice!"), []string{"alice"}, custom("12")},
		"an owner set by somebody else":           {ix(setAuthority, append([]byte{2}, tagAndKey(1, "bob")...), "alice's", "bob!"), []string{"bob"}, custom("4")},
		"a mint authority set on an account":      {ix(setAuthority, append([]byte{0}, tagAndKey(1, "bob")...), "alice's", "alice!"), []string{"alice"}, custom("15")},
		"an owner set on a frozen account":        {ix(setAuthority, append([]byte{2}, tagAndKey(1, "bob")...), "frozen", "alice!"), []string{"alice"}, custom("17")},
		"a mint initialised twice":                {ix(initializeMint2, append(tagAndKey(6, "authority"), 0), "mint"), nil, custom("6")},
		"a mint below its rent":                   {ix(initializeMint2, append(tagAndKey(6, "authority"), 0), "mint below rent"), nil, custom("0")},
		"a mint with a token account's size":      {ix(initializeMint2, append(tagAndKey(6, "authority"), 0), "blank"), nil, builtin("InvalidAccountData")},
		"a mint without an authority":             {ix(initializeMint2, []byte{6}, "blank mint"), nil, custom("12")},
		"a mint with half an authority":           {ix(initializeMint2, append(tagAndKey(6, "authority"), 1, 2), "blank mint"), nil, custom("12")},
		"an account initialised twice":            {ix(initializeAccount3, alice[:], "alice's", "mint-"), nil, custom("6")},
		"an account below its rent":               {ix(initializeAccount3, alice[:], "below rent", "mint-"), nil, custom("0")},
		"an account of another size":              {ix(initializeAccount3, alice[:], "blank, a byte short", "mint-"), nil, builtin("InvalidAccountData")},
		"an account of no mint":                   {ix(initializeAccount3, alice[:], "blank", "blank mint-"), nil, custom("2")},
		"an account of a Token-2022 mint":         {ix(initializeAccount3, alice[:], "blank", "foreign mint-"), nil, builtin("IncorrectProgramId")},
		"an account without an owner":             {ix(initializeAccount3, alice[:5], "blank", "mint-"), nil, custom("12")},
		"the size for a Token-2022 mint":          {ix(getAccountDataSize, nil, "foreign mint-"), nil, builtin("IncorrectProgramId")},
		"the size for no mint":                    {ix(getAccountDataSize, nil, "alice's-"), nil, custom("2")},
		"an immutable owner after initialisation": {ix(initializeImmutableOwner, nil, "alice's"), nil, custom("6")},
		"any instruction of Token-2022": {
			solana.NewInstruction(solana.Token2022ProgramID, nil, []byte{transfer}), nil, builtin("UnsupportedProgramId"),
		},
	}
	fixed := tokenprogram.Account{Mint: address("fixed mint"), Owner: alice, State: tokenprogram.Initialized}
	accounts := preset()
	accounts["fixed"] = token.Account(fixed)
	w := newWorld(t, accounts)
	for name, test := range tests {
		if got := w.landError(test.ix, test.signers...); got != test.want {
			t.Errorf("%s: got error %s, want %s", name, got, test.want)
		}
	}
	for name, before := range accounts {
		if diff := cmp.Diff(&before, w.account(address(name))); diff != "" {
			t.Errorf("a refused instruction changed account %s (-want +got):\n%s", name, diff)
		}
	}
}

// TestInstructionsBuiltBySolanaGoWork runs the program with instructions that solana-go
// builds.
func TestInstructionsBuiltBySolanaGoWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, preset())
	at := address
	amount := func(name string) uint64 { return w.token(at(name)).Amount }
	steps := []struct {
		name    string
		ix      solana.Instruction
		signers []string
		check   func() bool
	}{
		{
			"a mint", tokenprogram.NewInitializeMint2Instruction(3, at("carol"), at("dave"), at("blank mint")).Build(), nil,
			func() bool {
				m := bank.ParseMint(w.account(at("blank mint")).Data)
				return m.IsInitialized && m.Decimals == 3 && *m.MintAuthority == at("carol") && *m.FreezeAuthority == at("dave")
			},
		},
		{
			"an account", tokenprogram.NewInitializeAccount3Instruction(at("carol"), at("blank"), at("mint")).Build(), nil,
			func() bool {
				a := w.token(at("blank"))
				return a.Owner == at("carol") && a.Mint == at("mint") && a.State == tokenprogram.Initialized && a.Amount == 0 && a.IsNative == nil
			},
		},
		{
			"a mint of tokens", tokenprogram.NewMintToInstruction(7, at("mint"), at("blank"), at("authority"), nil).Build(), []string{"authority"},
			func() bool { return amount("blank") == 7 && w.supply("mint") == 7 },
		},
		{
			"a transfer", tokenprogram.NewTransferInstruction(4, at("blank"), at("bob's"), at("carol"), nil).Build(), []string{"carol"},
			func() bool { return amount("blank") == 3 && amount("bob's") == 4 },
		},
		{
			"a transfer to itself", tokenprogram.NewTransferInstruction(3, at("blank"), at("blank"), at("carol"), nil).Build(), []string{"carol"},
			func() bool { return amount("blank") == 3 },
		},
		{
			"a burn", tokenprogram.NewBurnInstruction(3, at("blank"), at("mint"), at("carol"), nil).Build(), []string{"carol"},
			func() bool { return amount("blank") == 0 && w.supply("mint") == 4 },
		},
		{
			"a freeze", tokenprogram.NewFreezeAccountInstruction(at("blank"), at("mint"), at("authority"), nil).Build(), []string{"authority"},
			func() bool { return w.token(at("blank")).State == tokenprogram.Frozen },
		},
		{
			"a thaw", tokenprogram.NewThawAccountInstruction(at("blank"), at("mint"), at("authority"), nil).Build(), []string{"authority"},
			func() bool { return w.token(at("blank")).State == tokenprogram.Initialized },
		},
		{
			"a change of owner", tokenprogram.NewSetAuthorityInstruction(tokenprogram.AuthorityAccountOwner, at("dave"), at("blank"), at("carol"), nil).Build(), []string{"carol"},
			func() bool { return w.token(at("blank")).Owner == at("dave") },
		},
		{
			"a close of an empty account", tokenprogram.NewCloseAccountInstruction(at("blank"), at("dave"), at("dave"), nil).Build(), []string{"dave"},
			func() bool { return w.account(at("blank")) == nil && w.lamports(at("dave")) == reserve },
		},
		{
			"a native transfer", tokenprogram.NewTransferInstruction(2000, at("native"), at("native 2"), at("alice"), nil).Build(), []string{"alice"},
			func() bool {
				return amount("native") == 3000 && w.lamports(at("native")) == reserve+3000 &&
					amount("native 2") == 2000 && w.lamports(at("native 2")) == reserve+2000
			},
		},
		{
			"a close of a native account with a balance", tokenprogram.NewCloseAccountInstruction(at("native"), at("erin"), at("alice"), nil).Build(), []string{"alice"},
			func() bool { return w.account(at("native")) == nil && w.lamports(at("erin")) == reserve+3000 },
		},
		{
			"lamports sent to a native account", system.NewTransferInstruction(500, at("payer"), at("native 2")).Build(), nil,
			func() bool { return amount("native 2") == 2000 },
		},
		{
			"a sync of the native account", tokenprogram.NewSyncNativeInstruction(at("native 2")).Build(), nil,
			func() bool { return amount("native 2") == 2500 },
		},
		{
			"a second sync", tokenprogram.NewSyncNativeInstruction(at("native 2")).Build(), nil,
			func() bool { return amount("native 2") == 2500 },
		},
	}
	for _, step := range steps {
		if got := w.landError(step.ix, step.signers...); got != "null" {
			t.Fatalf("%s: got error %s, want none", step.name, got)
		}
		if !step.check() {
			t.Fatalf("%s: the accounts afterwards are wrong", step.name)
		}
	}
}

func TestNativeAccountStartsWithItsLamportsAsAmount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(system.NewCreateAccountInstruction(reserve+123, bank.TokenAccountSize, solana.TokenProgramID, address("payer"), address("new")).Build(), "new")
	w.must(tokenprogram.NewInitializeAccount3Instruction(address("alice"), address("new"), solana.WrappedSol).Build())
	want := &tokenprogram.Account{
		Mint: solana.WrappedSol, Owner: address("alice"), Amount: 123, State: tokenprogram.Initialized, IsNative: pointer(reserve),
	}
	if diff := cmp.Diff(want, w.token(address("new"))); diff != "" {
		t.Errorf("native account (-want +got):\n%s", diff)
	}
	if reserve != 1_488_440 {
		t.Errorf("the reserve is %d lamports, want mainnet's 1488440", reserve)
	}
}

func TestLogsNameInstructionAndError(t *testing.T) {
	t.Parallel()
	w := newWorld(t, preset())
	tx, failure := w.land(ix(transfer, u64(101), "alice's", "bob's", "alice!"), "alice")
	if failure == nil {
		t.Fatal("the transfer succeeded, want it refused")
	}
	var logs []string
	w.Read(bank.Processed, func(v bank.View) { logs = v.Transaction(tx.Signature()).Meta.Logs })
	for _, want := range []string{
		"Program log: Instruction: Transfer", "Program log: Error: insufficient funds",
		"Program " + solana.TokenProgramID.String() + " failed: custom program error: 0x1",
	} {
		if !slices.Contains(logs, want) {
			t.Errorf("the logs lack %q:\n%s", want, strings.Join(logs, "\n"))
		}
	}
}

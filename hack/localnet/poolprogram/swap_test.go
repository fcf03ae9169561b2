package poolprogram_test

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
	tokenprogram "github.com/gagliardetto/solana-go/programs/token"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/market"
	"github.com/relaypool/relaypool/hack/localnet/poolprogram"
	"github.com/relaypool/relaypool/hack/localnet/token"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	uninitialized = `"UninitializedAccount"`
	swapNotReady  = `{"Custom":4151}`
)

// refusal is the error of an instruction as in JSON-RPC, without the wrapping
// InstructionError, or "" for a nil err. instruction is the expected index: the
// compute limit is instruction 0.
func refusal(t testing.TB, err *bank.TransactionError, instruction string) string {
	t.Helper()
	if err == nil {
		return ""
	}
	text := strings.TrimSuffix(strings.TrimPrefix(wire(t, err), `{"InstructionError":[`+instruction+`,`), `]}`)
	return text
}

func TestPrepareSwapSolWrapsOnce(t *testing.T) {
	t.Parallel()
	s := newSwap(t, 1)
	if got := s.must(s.prepare(s.payer.PublicKey())).Units; got == 0 {
		t.Error("PrepareSwapSol used no compute units")
	}
	wrapped := func() []uint64 {
		return []uint64{s.balance(s.State), s.balance(s.WSOL), s.tokens(s.WSOL)}
	}
	want := []uint64{stateRent, tokenRent + s.net, s.net}
	if diff := cmp.Diff(want, wrapped()); diff != "" {
		t.Errorf("state, account and tokens (-want +got):\n%s", diff)
	}
	state := s.state()
	s.must(s.prepare(s.payer.PublicKey()))
	stranger := key("stranger")
	s.fund(stranger.PublicKey(), uint64(sol))
	if _, err := s.run(stranger, s.prepare(stranger.PublicKey())); err != nil {
		t.Errorf("PrepareSwapSol of a stranger: %v", err)
	}
	if diff := cmp.Diff(want, wrapped()); diff != "" {
		t.Errorf("after repeated PrepareSwapSol, state, account and tokens (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(state, s.state()); diff != "" {
		t.Errorf("the state changed (-want +got):\n%s", diff)
	}
}

func TestPrepareSwapSolIgnoresLamportsOfOthers(t *testing.T) {
	t.Parallel()
	// The amount sent equals the swap's, so that by its balances the swap looks wrapped.
	t.Run("lamports to the state, before and after", func(t *testing.T) {
		t.Parallel()
		s := newSwap(t, 1)
		s.sendLamports(s.State, s.net)
		s.must(s.prepare(s.payer.PublicKey()))
		s.sendLamports(s.State, s.net)
		s.must(s.prepare(s.payer.PublicKey()))
		if got := []uint64{s.balance(s.State), s.tokens(s.WSOL)}; !slices.Equal(got, []uint64{stateRent + 2*s.net, s.net}) {
			t.Errorf("the state has %d lamports and %d wrapped, want %d and %d", got[0], got[1], stateRent+2*s.net, s.net)
		}
	})
	t.Run("wrapped SOL to its account", func(t *testing.T) {
		t.Parallel()
		s := newSwap(t, 1)
		s.sendWrapped(s.WSOL, s.net)
		s.must(s.prepare(s.payer.PublicKey()))
		if got := []uint64{s.balance(s.State), s.tokens(s.WSOL)}; !slices.Equal(got, []uint64{stateRent, 2 * s.net}) {
			t.Errorf("the state has %d lamports and %d wrapped, want %d and %d", got[0], got[1], stateRent, 2*s.net)
		}
	})
	t.Run("lamports to the account of wrapped SOL, not synced", func(t *testing.T) {
		t.Parallel()
		s := newSwap(t, 1)
		s.sendLamports(s.WSOL, 5)
		s.must(s.prepare(s.payer.PublicKey()))
		if got := s.tokens(s.WSOL); got != s.net+5 {
			t.Errorf("%d wrapped, want %d", got, s.net+5)
		}
	})
}

func TestPrepareSwapSolRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		altered func(s *swapFixture, ix *solana.GenericInstruction)
		want    string
	}{
		"data after the tag":             {func(_ *swapFixture, ix *solana.GenericInstruction) { ix.DataBytes = []byte{11, 0} }, `{"Custom":4193}`},
		"too few accounts":               {func(_ *swapFixture, ix *solana.GenericInstruction) { ix.AccountValues = ix.AccountValues[:4] }, `"NotEnoughAccountKeys"`},
		"an address without a state":     {func(_ *swapFixture, ix *solana.GenericInstruction) { ix.AccountValues[1].PublicKey = address("x") }, uninitialized},
		"the pool in the state's place":  {func(s *swapFixture, ix *solana.GenericInstruction) { ix.AccountValues[1].PublicKey = s.pool.Address }, `"InvalidAccountData"`},
		"another account of wrapped SOL": {func(_ *swapFixture, ix *solana.GenericInstruction) { ix.AccountValues[2].PublicKey = address("x") }, `"InvalidSeeds"`},
		"the account of the output":      {func(s *swapFixture, ix *solana.GenericInstruction) { ix.AccountValues[2].PublicKey = s.Output }, `"InvalidSeeds"`},
		"another token program": {func(_ *swapFixture, ix *solana.GenericInstruction) {
			ix.AccountValues[3].PublicKey = solana.Token2022ProgramID
		}, `"IncorrectProgramId"`},
		"another system program":      {func(_ *swapFixture, ix *solana.GenericInstruction) { ix.AccountValues[4].PublicKey = address("x") }, `"IncorrectProgramId"`},
		"a state passed as read-only": {func(_ *swapFixture, ix *solana.GenericInstruction) { ix.AccountValues[1].IsWritable = false }, `"InvalidArgument"`},
		"a payer that did not sign": {func(_ *swapFixture, ix *solana.GenericInstruction) {
			ix.AccountValues[0] = solana.Meta(address("x")).WRITE()
		}, `"MissingRequiredSignature"`},
		"a missing account of wrapped SOL": {nil, `"InvalidAccountOwner"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newWorld(t).fundedSwap(1)
			if test.altered != nil {
				s.must(s.CreateAccounts(s.payer.PublicKey(), s.wallet)...)
			}
			ix := s.prepare(s.payer.PublicKey())
			if test.altered != nil {
				test.altered(s, ix)
			}
			_, err := s.run(s.payer, ix)
			if got := refusal(t, err, "1"); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if got := s.balance(s.State); got != stateRent+s.net {
				t.Errorf("the state has %d lamports, want %d", got, stateRent+s.net)
			}
		})
	}
}

func TestExecuteSwapPaysTheRecipientAndReturnsTheRents(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		before func(*swapFixture)
		// wantPayer is the number of lamports that the payer gets in addition to rents.
		// wantTokens is the number of tokens that the recipient gets in addition to the
		// market's output.
		wantPayer, wantTokens uint64
	}{
		"no interference":                                       {},
		"a stranger prepared":                                   {before: func(s *swapFixture) { s.strangerPrepares() }},
		"lamports were sent to the state":                       {before: func(s *swapFixture) { s.sendLamports(s.State, 11) }, wantPayer: 11},
		"wrapped SOL was sent to the wSOL account":              {before: func(s *swapFixture) { s.sendWrapped(s.WSOL, s.net) }, wantPayer: netOf(sol)},
		"lamports were sent to the wSOL account without a sync": {before: func(s *swapFixture) { s.sendLamports(s.WSOL, 13) }, wantPayer: 13},
		"tokens were sent to the output account":                {before: func(s *swapFixture) { s.mintTo(s.Output, 17) }, wantTokens: 17},
		"lamports were sent to the output account":              {before: func(s *swapFixture) { s.sendLamports(s.Output, 19) }, wantPayer: 19},
		"the recipient had tokens before":                       {before: func(s *swapFixture) { s.mintTo(s.Terms.RecipientATA, 23) }},
		"the timeout slot is past":                              {before: func(s *swapFixture) { s.toTimeout(50) }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSwap(t, 1)
			s.Terms.MinOutput = s.marketOutput()
			if test.before != nil {
				test.before(s)
			}
			payer, had, out := s.balance(s.payer.PublicKey()), s.tokens(s.Terms.RecipientATA), s.marketOutput()
			meta := s.must(s.prepare(s.payer.PublicKey()), s.execute(nil))
			if got, want := s.tokens(s.Terms.RecipientATA)-had, out+test.wantTokens; got != want {
				t.Errorf("the recipient got %d, want %d", got, want)
			}
			if got, want := s.balance(s.payer.PublicKey()), payer-meta.Fee+stateRent+2*tokenRent+test.wantPayer; got != want {
				t.Errorf("the payer has %d lamports, want %d, including all rents and the lamports that others sent", got, want)
			}
			for what, at := range map[string]solana.PublicKey{"state": s.State, "wrapped SOL": s.WSOL, "output": s.Output} {
				if a := s.account(at); a != nil {
					t.Errorf("the account of %s is still there: %+v", what, a)
				}
			}
			if got := s.tokens(s.market.VaultSOL); got != s.net {
				t.Errorf("the market got %d lamports, want %d", got, s.net)
			}
		})
	}
}

// netOf is the net amount of a swap of gross lamports.
func netOf(gross int64) uint64 {
	net, _ := shieldpool.Development().Fees.Net(uint64(gross))
	return net
}

func (s *swapFixture) strangerPrepares() {
	s.t.Helper()
	stranger := key("stranger")
	s.fund(stranger.PublicKey(), uint64(sol))
	if _, err := s.run(stranger, s.prepare(stranger.PublicKey())); err != nil {
		s.t.Fatalf("a stranger's PrepareSwapSol: %v", err)
	}
	s.Advance(1)
}

func TestExecuteSwapChecksTheUsersMinimum(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		// above is the minimum minus the market's output. had is the recipient's balance
		// before the swap.
		above, had uint64
		want       string
	}{
		"exactly the minimum":                                {0, 0, ""},
		"one unit less than the minimum":                     {1, 0, `{"Custom":4152}`},
		"a minimum far above the output":                     {1 << 62, 0, `{"Custom":4152}`},
		"less than the minimum to an account with a balance": {1, 1 << 50, `{"Custom":4152}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			probe := newSwap(t, 1)
			s := newSwap(t, probe.marketOutput()+test.above)
			if test.had > 0 {
				s.mintTo(s.Terms.RecipientATA, test.had)
			}
			_, err := s.run(s.payer, s.prepare(s.payer.PublicKey()), s.execute(nil))
			if got := refusal(t, err, "2"); got != test.want {
				t.Errorf("got %s, want %q", got, test.want)
			}
			if err != nil && (s.state() == nil || s.balance(s.State) != stateRent+s.net) {
				t.Error("the refused execution changed the state")
			}
		})
	}
}

// TestDonatedTokensGoToTheRecipient checks that tokens that a stranger sent to the output
// account go to the recipient and count towards the minimum.
func TestDonatedTokensGoToTheRecipient(t *testing.T) {
	t.Parallel()
	probe := newSwap(t, 1)
	s := newSwap(t, probe.marketOutput()+5)
	s.mintTo(s.Output, 5)
	s.must(s.prepare(s.payer.PublicKey()), s.execute(nil))
	if got, want := s.tokens(s.Terms.RecipientATA), probe.marketOutput()+5; got != want {
		t.Errorf("the recipient got %d, want %d", got, want)
	}
}

func TestExecuteSwapRefuses(t *testing.T) {
	t.Parallel()
	type change = func(s *swapFixture, ix *solana.GenericInstruction)
	at := func(i int, key func(*swapFixture) solana.PublicKey) change {
		return func(s *swapFixture, ix *solana.GenericInstruction) { ix.AccountValues[i].PublicKey = key(s) }
	}
	stranger := func(*swapFixture) solana.PublicKey { return address("x") }
	tests := map[string]struct {
		trade   func(*swapFixture, *market.Trade)
		altered change
		before  func(*swapFixture)
		// unprepared leaves out PrepareSwapSol.
		unprepared bool
		want       string
	}{
		"lamports that are not wrapped": {unprepared: true, want: `"InvalidArgument"`},
		"a stranger's wrapped SOL in place of the user's lamports": {
			unprepared: true, before: func(s *swapFixture) { s.sendWrapped(s.WSOL, s.net) }, want: `"InvalidArgument"`},
		"data without a whole nullifier":                 {altered: func(_ *swapFixture, ix *solana.GenericInstruction) { ix.DataBytes = ix.DataBytes[:32] }, want: `{"Custom":4193}`},
		"another nullifier":                              {altered: func(_ *swapFixture, ix *solana.GenericInstruction) { ix.DataBytes[32]++ }, want: `"InvalidSeeds"`},
		"too few accounts":                               {altered: func(_ *swapFixture, ix *solana.GenericInstruction) { ix.AccountValues = ix.AccountValues[:7] }, want: `"NotEnoughAccountKeys"`},
		"another pool":                                   {altered: at(1, stranger), want: `"InvalidSeeds"`},
		"another state":                                  {altered: at(2, stranger), want: `"InvalidSeeds"`},
		"another account of wrapped SOL":                 {altered: at(3, stranger), want: `"InvalidSeeds"`},
		"the market's vault in place of the wrapped SOL": {altered: at(3, func(s *swapFixture) solana.PublicKey { return s.market.VaultSOL }), want: `"InvalidSeeds"`},
		"another output account":                         {altered: at(4, stranger), want: `"InvalidSeeds"`},
		"the recipient in place of the output account":   {altered: at(4, func(s *swapFixture) solana.PublicKey { return s.Terms.RecipientATA }), want: `"InvalidSeeds"`},
		"another recipient":                              {altered: at(5, func(s *swapFixture) solana.PublicKey { return s.market.VaultTokens }), want: `"InvalidArgument"`},
		"another token program":                          {altered: at(6, func(*swapFixture) solana.PublicKey { return solana.Token2022ProgramID }), want: `"IncorrectProgramId"`},
		"the pool program as router":                     {altered: at(7, func(s *swapFixture) solana.PublicKey { return s.pool.Profile.ProgramID }), want: `"IncorrectProgramId"`},
		"a router that is no program":                    {altered: at(7, stranger), want: `"UnsupportedProgramId"`},
		"a recipient passed as read-only":                {altered: func(_ *swapFixture, ix *solana.GenericInstruction) { ix.AccountValues[5].IsWritable = false }, want: `"InvalidArgument"`},

		"a router that takes half of the input": {
			trade: func(s *swapFixture, t *market.Trade) { t.AmountIn = s.net / 2 }, want: `{"Custom":4153}`},
		"a router that takes one lamport less": {
			trade: func(s *swapFixture, t *market.Trade) { t.AmountIn = s.net - 1 }, want: `{"Custom":4153}`},
		"a router that takes one lamport more": {
			trade: func(s *swapFixture, t *market.Trade) { t.AmountIn = s.net + 1 }, want: `{"Custom":1}`},
		"a router that keeps half of the output": {
			trade: func(_ *swapFixture, t *market.Trade) { t.KeepBPS = 5000 }, want: `{"Custom":4152}`},
		"a router that keeps all of the output": {
			trade: func(_ *swapFixture, t *market.Trade) { t.KeepBPS = market.MaxBPS }, want: `{"Custom":4152}`},
		"a router that fails with its own code": {
			trade: func(s *swapFixture, t *market.Trade) { t.MinOut = s.marketOutput() + 1 }, want: `{"Custom":6001}`},
		"a destination that the state does not own": {
			trade: func(s *swapFixture, t *market.Trade) { t.Tokens = s.Terms.RecipientATA }, want: `{"Custom":6025}`},
		"a router that gives the wrapped SOL to a thief": {
			altered: func(s *swapFixture, ix *solana.GenericInstruction) { s.steal(ix) }, want: `{"Custom":4152}`},
		"a router that takes over the account of wrapped SOL": {
			altered: func(s *swapFixture, ix *solana.GenericInstruction) {
				s.viaTokenProgram(ix, tokenprogram.NewSetAuthorityInstruction(
					tokenprogram.AuthorityAccountOwner, address("thief"), s.WSOL, s.State, nil).Build())
			}, want: `"InvalidAccountData"`},
		"a router that takes over the output account": {
			altered: func(s *swapFixture, ix *solana.GenericInstruction) {
				s.viaTokenProgram(ix, tokenprogram.NewSetAuthorityInstruction(
					tokenprogram.AuthorityAccountOwner, address("thief"), s.Output, s.State, nil).Build())
			}, want: `{"Custom":4153}`},
		"a recipient's account that was closed": {
			before: func(s *swapFixture) { s.closeRecipient() }, want: `"InvalidAccountOwner"`},
		"a recipient's account that is frozen": {
			before: func(s *swapFixture) { s.freezeRecipient() }, want: `{"Custom":17}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			probe := newSwap(t, 1)
			s := newSwap(t, probe.marketOutput()-probe.marketOutput()/100)
			if test.before != nil {
				test.before(s)
			}
			ix := s.execute(func(trade *market.Trade) {
				if test.trade != nil {
					test.trade(s, trade)
				}
			})
			if test.altered != nil {
				test.altered(s, ix)
			}
			vault, state := s.tokens(s.market.VaultSOL), s.account(s.State)
			instructions, failing := []solana.Instruction{s.prepare(s.payer.PublicKey()), ix}, "2"
			if test.unprepared {
				instructions, failing = instructions[1:], "1"
			}
			tx, err := s.run(s.payer, instructions...)
			if got := refusal(t, err, failing); got != test.want {
				t.Errorf("got %s, want %s; logs %q", got, test.want, s.meta(tx).Logs)
			}
			if diff := cmp.Diff(state, s.account(s.State)); diff != "" || s.tokens(s.market.VaultSOL) != vault {
				t.Errorf("a refused execution changed the market or the state (-want +got):\n%s", diff)
			}
			s.Advance(1)
			s.toTimeout(0)
			s.must(s.refund(s.payer.PublicKey(), test.before != nil && test.unprepared))
			if got := s.balance(s.wallet); got < stateRent+s.net {
				t.Errorf("after the refund the wallet has %d lamports, want %d", got, stateRent+s.net)
			}
		})
	}
}

// steal changes ix so that the token program, as the router, moves the wrapped SOL to a thief.
func (s *swapFixture) steal(ix *solana.GenericInstruction) {
	s.t.Helper()
	thief, _, err := solana.FindAssociatedTokenAddress(address("thief"), solana.WrappedSol)
	if err != nil {
		s.t.Fatal(err)
	}
	create, err := token.CreateIdempotent(s.payer.PublicKey(), address("thief"), solana.WrappedSol)
	if err != nil {
		s.t.Fatal(err)
	}
	s.must(create)
	s.viaTokenProgram(ix, tokenprogram.NewTransferInstruction(s.net, s.WSOL, thief, s.State, nil).Build())
}

// viaTokenProgram changes ix so that the token program is the router and runs the instruction call.
func (s *swapFixture) viaTokenProgram(ix *solana.GenericInstruction, call solana.Instruction) {
	s.t.Helper()
	data, err := call.Data()
	if err != nil {
		s.t.Fatal(err)
	}
	ix.AccountValues[7].PublicKey = solana.TokenProgramID
	ix.AccountValues = ix.AccountValues[:8]
	for _, m := range call.Accounts() {
		ix.AccountValues = append(ix.AccountValues, &solana.AccountMeta{PublicKey: m.PublicKey, IsWritable: m.IsWritable})
	}
	ix.DataBytes = append(ix.DataBytes[:33:33], data...)
}

func (s *swapFixture) closeRecipient() {
	s.t.Helper()
	wallet := key("wallet")
	s.fund(wallet.PublicKey(), uint64(sol))
	if _, err := s.run(wallet, tokenprogram.NewCloseAccountInstruction(s.Terms.RecipientATA, wallet.PublicKey(), wallet.PublicKey(), nil).Build()); err != nil {
		s.t.Fatal(err)
	}
	s.Advance(1)
}

func (s *swapFixture) freezeRecipient() {
	s.t.Helper()
	authority := key("authority")
	s.fund(authority.PublicKey(), uint64(sol))
	freeze := tokenprogram.NewFreezeAccountInstruction(s.Terms.RecipientATA, s.market.Mint, authority.PublicKey(), nil).Build()
	if _, err := s.run(authority, freeze); err != nil {
		s.t.Fatal(err)
	}
	s.Advance(1)
}

// TestARecipientOfAnotherMintIsNotPaid executes a swap whose proof names a token account of another
// mint than the output mint.
func TestARecipientOfAnotherMintIsNotPaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	create, err := token.CreateIdempotent(w.payer.PublicKey(), address("wallet"), solana.WrappedSol)
	if err != nil {
		t.Fatal(err)
	}
	w.must(create)
	terms := w.terms(address("wallet"), 1)
	if terms.RecipientATA, _, err = solana.FindAssociatedTokenAddress(address("wallet"), solana.WrappedSol); err != nil {
		t.Fatal(err)
	}
	s := w.fundedSwapOf(terms)
	s.must(s.CreateAccounts(s.payer.PublicKey(), s.wallet)[:2]...)
	_, failure := s.run(s.payer, s.prepare(s.payer.PublicKey()), s.execute(nil))
	if got := refusal(t, failure, "2"); got != `"InvalidAccountData"` {
		t.Errorf("got %s, want InvalidAccountData", got)
	}
}

// TestASwapBelongsToOnePool uses a profile with the mint in the seeds, under which the program has
// several pools.
func TestASwapBelongsToOnePool(t *testing.T) {
	t.Parallel()
	profile := shieldpool.Development()
	byMint := shieldpool.Seed{Value: shieldpool.SeedMint}
	for _, seeds := range []*[]shieldpool.Seed{&profile.Seeds.Pool, &profile.Seeds.MerkleTree, &profile.Seeds.Treasury} {
		*seeds = append(*seeds, byMint)
	}
	profile.Mints = append(profile.Mints, shieldpool.Mint{Address: address("second"), Field: field("second", 1)})
	w := emptyWorld(t, profile, nil)
	w.initialize()
	w.mustRun(w.call(func(in *shieldpool.PublicInputs, _ *shieldpool.Destination) { in.PublicAmount = 100 * sol }))
	s := w.fundedSwap(1)
	s.must(s.CreateAccounts(s.payer.PublicKey(), s.wallet)...)
	second, err := profile.Pool(profile.Mints[1])
	if err != nil {
		t.Fatal(err)
	}
	s.toTimeout(0)
	runOnSecondPool := func(ix *solana.GenericInstruction) string {
		ix.AccountValues[1].PublicKey = second.Address
		_, failure := s.run(s.payer, ix)
		return refusal(t, failure, "1")
	}
	if got := runOnSecondPool(s.refund(s.payer.PublicKey(), false)); got != `"InvalidSeeds"` {
		t.Errorf("a refund by another pool: got %s, want InvalidSeeds", got)
	}
	s.must(s.prepare(s.payer.PublicKey()))
	if got := runOnSecondPool(s.execute(nil)); got != `"InvalidSeeds"` {
		t.Errorf("an execution by another pool: got %s, want InvalidSeeds", got)
	}
	s.must(s.execute(nil))
}

func TestCloseSwapStateReturnsEverythingToTheWallet(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		before   func(*swapFixture)
		stranger bool
		wrapped  bool
		// want is the number of lamports that the wallet gets in addition to the state's
		// rent and the swap's lamports.
		want uint64
	}{
		"unwrapped":                                   {},
		"unwrapped, by a stranger":                    {stranger: true},
		"wrapped":                                     {before: func(s *swapFixture) { s.must(s.prepare(s.payer.PublicKey())) }, wrapped: true, want: tokenRent},
		"wrapped, by a stranger":                      {before: func(s *swapFixture) { s.must(s.prepare(s.payer.PublicKey())) }, wrapped: true, stranger: true, want: tokenRent},
		"wrapped by a stranger":                       {before: func(s *swapFixture) { s.strangerPrepares() }, wrapped: true, want: tokenRent},
		"with lamports sent to the state":             {before: func(s *swapFixture) { s.sendLamports(s.State, 29) }, want: 29},
		"unwrapped, closing a wSOL account with dust": {before: func(s *swapFixture) { s.sendWrapped(s.WSOL, 31) }, wrapped: true, want: tokenRent + 31},
		"unwrapped, leaving a wSOL account with dust": {before: func(s *swapFixture) { s.sendWrapped(s.WSOL, 31) }},
		"wrapped, with dust": {before: func(s *swapFixture) {
			s.must(s.prepare(s.payer.PublicKey()))
			s.sendWrapped(s.WSOL, 37)
			s.sendLamports(s.State, 41)
		}, wrapped: true, want: tokenRent + 37 + 41},
		"with tokens sent to the output account": {before: func(s *swapFixture) { s.mintTo(s.Output, 43) }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSwap(t, 1)
			if test.before != nil {
				test.before(s)
			}
			payer := s.payer
			if test.stranger {
				payer = key("another stranger")
				s.fund(payer.PublicKey(), uint64(sol))
			}
			s.toTimeout(0)
			payerBefore, output := s.balance(payer.PublicKey()), s.account(s.Output)
			tx, err := s.run(payer, s.refund(payer.PublicKey(), test.wrapped))
			if err != nil {
				t.Fatalf("the refund failed: %v\n%v", err, s.meta(tx).Logs)
			}
			s.checkConservation(tx)
			if got, want := s.balance(s.wallet), stateRent+s.net+test.want; got != want {
				t.Errorf("the wallet has %d lamports, want %d", got, want)
			}
			if got, want := s.balance(payer.PublicKey()), payerBefore-s.meta(tx).Fee; got != want {
				t.Errorf("the payer has %d lamports, want %d: the payer pays the fee and gets nothing", got, want)
			}
			if a := s.account(s.State); a != nil {
				t.Errorf("the state is still there: %+v", a)
			}
			if diff := cmp.Diff(output, s.account(s.Output)); diff != "" {
				t.Errorf("the output account changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCloseSwapStateWaitsForTheTimeoutSlot(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		past int
		want string
	}{
		"one slot before":  {-1, swapNotReady},
		"exactly the slot": {0, ""},
		"one slot after":   {1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSwap(t, 1)
			if got := s.state().TimeoutSlot - s.state().CreatedSlot; got != 200 {
				t.Errorf("the swap has %d slots, want 200", got)
			}
			s.toTimeout(test.past)
			_, err := s.run(s.payer, s.refund(s.payer.PublicKey(), false))
			if got := refusal(t, err, "1"); got != test.want {
				t.Errorf("got %s, want %q", got, test.want)
			}
		})
	}
}

func TestCloseSwapStateRefuses(t *testing.T) {
	t.Parallel()
	type change = func(s *swapFixture, ix *solana.GenericInstruction)
	at := func(i int, key func(*swapFixture) solana.PublicKey) change {
		return func(s *swapFixture, ix *solana.GenericInstruction) { ix.AccountValues[i].PublicKey = key(s) }
	}
	stranger := func(*swapFixture) solana.PublicKey { return address("x") }
	tests := map[string]struct {
		wrapped bool
		altered change
		want    string
	}{
		"data after the tag":                 {altered: func(_ *swapFixture, ix *solana.GenericInstruction) { ix.DataBytes = []byte{13, 0} }, want: `{"Custom":4193}`},
		"another pool":                       {altered: at(1, stranger), want: `"InvalidSeeds"`},
		"an address without a state":         {altered: at(2, stranger), want: uninitialized},
		"the tree in the state's place":      {altered: at(2, func(s *swapFixture) solana.PublicKey { return s.pool.MerkleTree }), want: `"InvalidAccountData"`},
		"another wallet":                     {altered: at(3, stranger), want: `"InvalidSeeds"`},
		"the payer as wallet":                {altered: at(3, func(s *swapFixture) solana.PublicKey { return s.payer.PublicKey() }), want: `"InvalidSeeds"`},
		"the recipient's ATA as wallet":      {altered: at(3, func(s *swapFixture) solana.PublicKey { return s.Terms.RecipientATA }), want: `"InvalidSeeds"`},
		"a wallet passed as read-only":       {altered: func(_ *swapFixture, ix *solana.GenericInstruction) { ix.AccountValues[3].IsWritable = false }, want: `"InvalidArgument"`},
		"another system program":             {altered: at(4, stranger), want: `"IncorrectProgramId"`},
		"wrapped without the wSOL account":   {wrapped: true, altered: func(_ *swapFixture, ix *solana.GenericInstruction) { ix.AccountValues = ix.AccountValues[:5] }, want: `"NotEnoughAccountKeys"`},
		"wrapped with another wSOL account":  {wrapped: true, altered: at(5, stranger), want: `"InvalidSeeds"`},
		"wrapped with the output account":    {wrapped: true, altered: at(5, func(s *swapFixture) solana.PublicKey { return s.Output }), want: `"InvalidSeeds"`},
		"wrapped with another token program": {wrapped: true, altered: at(6, stranger), want: `"IncorrectProgramId"`},
		"wrapped without a token program":    {wrapped: true, altered: func(_ *swapFixture, ix *solana.GenericInstruction) { ix.AccountValues = ix.AccountValues[:6] }, want: `"NotEnoughAccountKeys"`},
		"a payer that did not sign": {altered: func(_ *swapFixture, ix *solana.GenericInstruction) {
			ix.AccountValues[0] = solana.Meta(address("x")).WRITE()
		}, want: `"MissingRequiredSignature"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSwap(t, 1)
			if test.wrapped {
				s.must(s.prepare(s.payer.PublicKey()))
			}
			s.toTimeout(0)
			ix, state := s.refund(s.payer.PublicKey(), test.wrapped), s.account(s.State)
			test.altered(s, ix)
			tx, err := s.run(s.payer, ix)
			if got := refusal(t, err, "1"); got != test.want {
				t.Errorf("got %s, want %s; logs %q", got, test.want, s.meta(tx).Logs)
			}
			if diff := cmp.Diff(state, s.account(s.State)); diff != "" {
				t.Errorf("a refused refund changed the state (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRefundWithAMissingTokenAccountFails sends a refund of wrapped lamports to a chain
// without the token accounts, as after a fork that undid them.
func TestRefundWithAMissingTokenAccountFails(t *testing.T) {
	t.Parallel()
	s := newWorld(t).fundedSwap(1)
	s.toTimeout(0)
	_, err := s.run(s.payer, s.refund(s.payer.PublicKey(), true))
	if got := refusal(t, err, "1"); got != `"InvalidAccountOwner"` {
		t.Errorf("got %s, want InvalidAccountOwner", got)
	}
	s.must(s.refund(s.payer.PublicKey(), false))
}

// TestSwapEndsOnlyOnce ends each swap twice, by execution or refund, in one block and
// in one transaction. The second must fail.
func TestSwapEndsOnlyOnce(t *testing.T) {
	t.Parallel()
	type end func(*swapFixture) []solana.Instruction
	execute := func(s *swapFixture) []solana.Instruction { return []solana.Instruction{s.execute(nil)} }
	refund := func(s *swapFixture) []solana.Instruction {
		return []solana.Instruction{s.refund(s.payer.PublicKey(), true)}
	}
	for name, ends := range map[string][2]end{
		"executed, then refunded":   {execute, refund},
		"refunded, then executed":   {refund, execute},
		"executed, then executed":   {execute, execute},
		"refunded, then refunded":   {refund, refund},
		"executed, then prepared":   {execute, func(s *swapFixture) []solana.Instruction { return []solana.Instruction{s.prepare(s.payer.PublicKey())} }},
		"refunded, then prepared":   {refund, func(s *swapFixture) []solana.Instruction { return []solana.Instruction{s.prepare(s.payer.PublicKey())} }},
		"executed, revived by dust": {execute, func(s *swapFixture) []solana.Instruction { return s.reviveThen(refund(s)) }},
		"refunded, revived by dust": {refund, func(s *swapFixture) []solana.Instruction { return s.reviveThen(execute(s)) }},
	} {
		ready := func(t *testing.T) *swapFixture {
			s := newSwap(t, 1)
			s.must(s.prepare(s.payer.PublicKey()))
			s.toTimeout(0)
			return s
		}
		t.Run(name+", in one block", func(t *testing.T) {
			t.Parallel()
			s := ready(t)
			second := ends[1](s)
			if _, err := s.run(s.payer, ends[0](s)...); err != nil {
				t.Fatal(err)
			}
			// The priority fee makes the second transaction differ from the first.
			price := binary.LittleEndian.AppendUint64([]byte{3}, 1)
			_, err := s.run(s.payer, append([]solana.Instruction{solana.NewInstruction(solana.ComputeBudget, nil, price)}, second...)...)
			if got, want := refusal(t, err, digit(1+len(second))), uninitialized; got != want {
				t.Errorf("the second returns %s, want %s", got, want)
			}
		})
		t.Run(name+", in one transaction", func(t *testing.T) {
			t.Parallel()
			s := ready(t)
			wallet := s.balance(s.wallet)
			second := ends[1](s)
			_, err := s.run(s.payer, append(ends[0](s), second...)...)
			if got, want := refusal(t, err, digit(1+len(second))), uninitialized; got != want {
				t.Errorf("the second returns %s, want %s", got, want)
			}
			if s.state() == nil || s.balance(s.wallet) != wallet {
				t.Error("the failed transaction ended the swap")
			}
		})
	}
}

func digit(n int) string { return string(rune('0' + n)) }

// reviveThen adds, before the instructions, a transfer of lamports to the ended swap's state.
func (s *swapFixture) reviveThen(then []solana.Instruction) []solana.Instruction {
	return append([]solana.Instruction{system.NewTransferInstruction(stateRent, s.payer.PublicKey(), s.State).Build()}, then...)
}

func TestSwapErrorCodesHaveTheirClass(t *testing.T) {
	t.Parallel()
	profile := shieldpool.Development()
	for _, code := range []uint32{poolprogram.CodeOutputBelowMinimum, poolprogram.CodeInputNotConsumed} {
		if got := profile.ClassOf(code); got != shieldpool.ClassBadInput {
			t.Errorf("%#x is of class %s, want %s", code, got, shieldpool.ClassBadInput)
		}
	}
	if got := profile.ClassOf(uint32(market.ErrSlippage)); got != shieldpool.ClassTransient {
		t.Errorf("slippage is of class %s, want %s", got, shieldpool.ClassTransient)
	}
}

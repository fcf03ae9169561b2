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
		t.Error("it cost nothing")
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
		t.Errorf("a stranger's: %v", err)
	}
	if diff := cmp.Diff(want, wrapped()); diff != "" {
		t.Errorf("once wrapped, state, account and tokens (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(state, s.state()); diff != "" {
		t.Errorf("the state changed (-want +got):\n%s", diff)
	}
}

func TestPrepareSwapSolIgnoresLamportsOfOthers(t *testing.T) {
	t.Parallel()
	// The amount sent equals the swap's, so that a program that looks only at balances
	// would take the swap for wrapped.
	t.Run("lamports to the state, before and after", func(t *testing.T) {
		t.Parallel()
		s := newSwap(t, 1)
		s.sendLamports(s.State, s.net)
		s.must(s.prepare(s.payer.PublicKey()))
		s.sendLamports(s.State, s.net)
		s.must(s.prepare(s.payer.PublicKey()))
		if got := []uint64{s.balance(s.State), s.tokens(s.WSOL)}; !slices.Equal(got, []uint64{stateRent + 2*s.net, s.net}) {
			t.Errorf("the state has %d lamports and %d wrapped, want what was sent and %d", got[0], got[1], s.net)
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
		altered func(s *swapping, ix *solana.GenericInstruction)
		want    string
	}{
		"data after the tag":             {func(_ *swapping, ix *solana.GenericInstruction) { ix.DataBytes = []byte{11, 0} }, `{"Custom":4193}`},
		"too few accounts":               {func(_ *swapping, ix *solana.GenericInstruction) { ix.AccountValues = ix.AccountValues[:4] }, `"NotEnoughAccountKeys"`},
		"an address without a state":     {func(_ *swapping, ix *solana.GenericInstruction) { ix.AccountValues[1].PublicKey = address("x") }, uninitialized},
		"the pool in the state's place":  {func(s *swapping, ix *solana.GenericInstruction) { ix.AccountValues[1].PublicKey = s.pool.Address }, `"InvalidAccountData"`},
		"another account of wrapped SOL": {func(_ *swapping, ix *solana.GenericInstruction) { ix.AccountValues[2].PublicKey = address("x") }, `"InvalidSeeds"`},
		"the account of the output":      {func(s *swapping, ix *solana.GenericInstruction) { ix.AccountValues[2].PublicKey = s.Output }, `"InvalidSeeds"`},
		"another token program": {func(_ *swapping, ix *solana.GenericInstruction) {
			ix.AccountValues[3].PublicKey = solana.Token2022ProgramID
		}, `"IncorrectProgramId"`},
		"another system program":      {func(_ *swapping, ix *solana.GenericInstruction) { ix.AccountValues[4].PublicKey = address("x") }, `"IncorrectProgramId"`},
		"a state passed as read-only": {func(_ *swapping, ix *solana.GenericInstruction) { ix.AccountValues[1].IsWritable = false }, `"InvalidArgument"`},
		"a payer that did not sign": {func(_ *swapping, ix *solana.GenericInstruction) {
			ix.AccountValues[0] = solana.Meta(address("x")).WRITE()
		}, `"MissingRequiredSignature"`},
		"an account of wrapped SOL not there": {nil, `"InvalidAccountOwner"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newWorld(t).fundedSwap(1)
			if test.altered != nil {
				s.must(s.Accounts(s.payer.PublicKey(), s.wallet)...)
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
		before func(*swapping)
		// wantPayer is the number of lamports that the payer gets in addition to rents.
		// wantTokens is the number of tokens that the recipient gets in addition to the
		// market's output.
		wantPayer, wantTokens uint64
	}{
		"no interference":                         {},
		"a stranger prepared":                     {before: func(s *swapping) { s.strangerPrepares() }},
		"lamports were sent to the state":         {before: func(s *swapping) { s.sendLamports(s.State, 11) }, wantPayer: 11},
		"wrapped SOL was sent to its account":     {before: func(s *swapping) { s.sendWrapped(s.WSOL, s.net) }, wantPayer: s2(sol)},
		"lamports were sent to wrapped, unsynced": {before: func(s *swapping) { s.sendLamports(s.WSOL, 13) }, wantPayer: 13},
		"tokens were sent to the output's":        {before: func(s *swapping) { s.mintTo(s.Output, 17) }, wantTokens: 17},
		"lamports were sent to the output's":      {before: func(s *swapping) { s.sendLamports(s.Output, 19) }, wantPayer: 19},
		"the recipient had tokens before":         {before: func(s *swapping) { s.mintTo(s.Terms.RecipientATA, 23) }},
		"the timeout slot is past":                {before: func(s *swapping) { s.toTimeout(50) }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSwap(t, 1)
			s.Terms.MinOutput = s.price()
			if test.before != nil {
				test.before(s)
			}
			payer, had, out := s.balance(s.payer.PublicKey()), s.tokens(s.Terms.RecipientATA), s.price()
			meta := s.must(s.prepare(s.payer.PublicKey()), s.execute(nil))
			if got, want := s.tokens(s.Terms.RecipientATA)-had, out+test.wantTokens; got != want {
				t.Errorf("the recipient got %d, want %d", got, want)
			}
			if got, want := s.balance(s.payer.PublicKey()), payer-meta.Fee+stateRent+2*tokenRent+test.wantPayer; got != want {
				t.Errorf("the payer has %d lamports, want %d: all rents back, and what others sent", got, want)
			}
			for what, at := range map[string]solana.PublicKey{"state": s.State, "wrapped SOL": s.WSOL, "output": s.Output} {
				if a := s.account(at); a != nil {
					t.Errorf("the account of %s is still there: %+v", what, a)
				}
			}
			if got := s.tokens(s.at.VaultSOL); got != s.net {
				t.Errorf("the market got %d lamports, want %d", got, s.net)
			}
		})
	}
}

// s2 is the net amount of a swap of gross lamports.
func s2(gross int64) uint64 {
	net, _ := shieldpool.Development().Fees.Net(uint64(gross))
	return net
}

func (s *swapping) strangerPrepares() {
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
		// above is the minimum less the market's output. had is the recipient's balance
		// before the swap.
		above, had uint64
		want       string
	}{
		"exactly the minimum":                           {0, 0, ""},
		"one unit less than the minimum":                {1, 0, `{"Custom":4152}`},
		"a minimum far out of reach":                    {1 << 62, 0, `{"Custom":4152}`},
		"less than the minimum to a full token account": {1, 1 << 50, `{"Custom":4152}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			probe := newSwap(t, 1)
			s := newSwap(t, probe.price()+test.above)
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

// TestDonatedTokensCountForTheRecipientAlone checks that tokens that a stranger sent to the output
// account go to the recipient and count towards the minimum.
func TestDonatedTokensCountForTheRecipientAlone(t *testing.T) {
	t.Parallel()
	probe := newSwap(t, 1)
	s := newSwap(t, probe.price()+5)
	s.mintTo(s.Output, 5)
	s.must(s.prepare(s.payer.PublicKey()), s.execute(nil))
	if got, want := s.tokens(s.Terms.RecipientATA), probe.price()+5; got != want {
		t.Errorf("the recipient got %d, want %d", got, want)
	}
}

func TestExecuteSwapRefuses(t *testing.T) {
	t.Parallel()
	type change = func(s *swapping, ix *solana.GenericInstruction)
	at := func(i int, key func(*swapping) solana.PublicKey) change {
		return func(s *swapping, ix *solana.GenericInstruction) { ix.AccountValues[i].PublicKey = key(s) }
	}
	stranger := func(*swapping) solana.PublicKey { return address("x") }
	tests := map[string]struct {
		trade   func(*swapping, *market.Trade)
		altered change
		before  func(*swapping)
		// unprepared leaves out PrepareSwapSol.
		unprepared bool
		want       string
	}{
		"lamports that are not wrapped": {unprepared: true, want: `"InvalidArgument"`},
		"a stranger's wrapped SOL in place of the user's lamports": {
			unprepared: true, before: func(s *swapping) { s.sendWrapped(s.WSOL, s.net) }, want: `"InvalidArgument"`},
		"data without a whole nullifier":                 {altered: func(_ *swapping, ix *solana.GenericInstruction) { ix.DataBytes = ix.DataBytes[:32] }, want: `{"Custom":4193}`},
		"another nullifier":                              {altered: func(_ *swapping, ix *solana.GenericInstruction) { ix.DataBytes[32]++ }, want: `"InvalidSeeds"`},
		"too few accounts":                               {altered: func(_ *swapping, ix *solana.GenericInstruction) { ix.AccountValues = ix.AccountValues[:7] }, want: `"NotEnoughAccountKeys"`},
		"another pool":                                   {altered: at(1, stranger), want: `"InvalidSeeds"`},
		"another state":                                  {altered: at(2, stranger), want: `"InvalidSeeds"`},
		"another account of wrapped SOL":                 {altered: at(3, stranger), want: `"InvalidSeeds"`},
		"the market's vault in place of the wrapped SOL": {altered: at(3, func(s *swapping) solana.PublicKey { return s.at.VaultSOL }), want: `"InvalidSeeds"`},
		"another output account":                         {altered: at(4, stranger), want: `"InvalidSeeds"`},
		"the recipient in place of the output account":   {altered: at(4, func(s *swapping) solana.PublicKey { return s.Terms.RecipientATA }), want: `"InvalidSeeds"`},
		"another recipient":                              {altered: at(5, func(s *swapping) solana.PublicKey { return s.at.VaultTokens }), want: `"InvalidArgument"`},
		"another token program":                          {altered: at(6, func(*swapping) solana.PublicKey { return solana.Token2022ProgramID }), want: `"IncorrectProgramId"`},
		"the pool program as router":                     {altered: at(7, func(s *swapping) solana.PublicKey { return s.pool.Profile.ProgramID }), want: `"IncorrectProgramId"`},
		"a router that is no program":                    {altered: at(7, stranger), want: `"UnsupportedProgramId"`},
		"a recipient passed as read-only":                {altered: func(_ *swapping, ix *solana.GenericInstruction) { ix.AccountValues[5].IsWritable = false }, want: `"InvalidArgument"`},

		"a router that takes half of the input": {
			trade: func(s *swapping, t *market.Trade) { t.AmountIn = s.net / 2 }, want: `{"Custom":4153}`},
		"a router that takes one lamport less": {
			trade: func(s *swapping, t *market.Trade) { t.AmountIn = s.net - 1 }, want: `{"Custom":4153}`},
		"a router that takes more than there is": {
			trade: func(s *swapping, t *market.Trade) { t.AmountIn = s.net + 1 }, want: `{"Custom":1}`},
		"a router that keeps half of the output": {
			trade: func(_ *swapping, t *market.Trade) { t.KeepBPS = 5000 }, want: `{"Custom":4152}`},
		"a router that keeps all of the output": {
			trade: func(_ *swapping, t *market.Trade) { t.KeepBPS = market.MaxBPS }, want: `{"Custom":4152}`},
		"a router that fails by its own minimum, with the router's code": {
			trade: func(s *swapping, t *market.Trade) { t.MinOut = s.price() + 1 }, want: `{"Custom":6001}`},
		"a destination that the state does not own": {
			trade: func(s *swapping, t *market.Trade) { t.Tokens = s.Terms.RecipientATA }, want: `{"Custom":6025}`},
		"a router that gives the wrapped SOL to a thief": {
			altered: func(s *swapping, ix *solana.GenericInstruction) { s.steal(ix) }, want: `{"Custom":4152}`},
		"a router that takes over the account of wrapped SOL": {
			altered: func(s *swapping, ix *solana.GenericInstruction) {
				s.viaTokenProgram(ix, tokenprogram.NewSetAuthorityInstruction(
					tokenprogram.AuthorityAccountOwner, address("thief"), s.WSOL, s.State, nil).Build())
			}, want: `"InvalidAccountData"`},
		"a router that takes over the output account": {
			altered: func(s *swapping, ix *solana.GenericInstruction) {
				s.viaTokenProgram(ix, tokenprogram.NewSetAuthorityInstruction(
					tokenprogram.AuthorityAccountOwner, address("thief"), s.Output, s.State, nil).Build())
			}, want: `{"Custom":4153}`},
		"a recipient's account that was closed": {
			before: func(s *swapping) { s.closeRecipient() }, want: `"InvalidAccountOwner"`},
		"a recipient's account that is frozen": {
			before: func(s *swapping) { s.freezeRecipient() }, want: `{"Custom":17}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			probe := newSwap(t, 1)
			s := newSwap(t, probe.price()-probe.price()/100)
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
			vault, state := s.tokens(s.at.VaultSOL), s.account(s.State)
			instructions, failing := []solana.Instruction{s.prepare(s.payer.PublicKey()), ix}, "2"
			if test.unprepared {
				instructions, failing = instructions[1:], "1"
			}
			tx, err := s.run(s.payer, instructions...)
			if got := refusal(t, err, failing); got != test.want {
				t.Errorf("got %s, want %s; logs %q", got, test.want, s.meta(tx).Logs)
			}
			if diff := cmp.Diff(state, s.account(s.State)); diff != "" || s.tokens(s.at.VaultSOL) != vault {
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
func (s *swapping) steal(ix *solana.GenericInstruction) {
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

// viaTokenProgram changes ix so that the token program is the router and runs the instruction of.
func (s *swapping) viaTokenProgram(ix *solana.GenericInstruction, of solana.Instruction) {
	s.t.Helper()
	data, err := of.Data()
	if err != nil {
		s.t.Fatal(err)
	}
	ix.AccountValues[7].PublicKey = solana.TokenProgramID
	ix.AccountValues = ix.AccountValues[:8]
	for _, m := range of.Accounts() {
		ix.AccountValues = append(ix.AccountValues, &solana.AccountMeta{PublicKey: m.PublicKey, IsWritable: m.IsWritable})
	}
	ix.DataBytes = append(ix.DataBytes[:33:33], data...)
}

func (s *swapping) closeRecipient() {
	s.t.Helper()
	wallet := key("wallet")
	s.fund(wallet.PublicKey(), uint64(sol))
	if _, err := s.run(wallet, tokenprogram.NewCloseAccountInstruction(s.Terms.RecipientATA, wallet.PublicKey(), wallet.PublicKey(), nil).Build()); err != nil {
		s.t.Fatal(err)
	}
	s.Advance(1)
}

func (s *swapping) freezeRecipient() {
	s.t.Helper()
	authority := key("authority")
	s.fund(authority.PublicKey(), uint64(sol))
	freeze := tokenprogram.NewFreezeAccountInstruction(s.Terms.RecipientATA, s.at.Mint, authority.PublicKey(), nil).Build()
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
	s.must(s.Accounts(s.payer.PublicKey(), s.wallet)[:2]...)
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
	s.must(s.Accounts(s.payer.PublicKey(), s.wallet)...)
	second, err := profile.Pool(profile.Mints[1])
	if err != nil {
		t.Fatal(err)
	}
	s.toTimeout(0)
	by := func(ix *solana.GenericInstruction) string {
		ix.AccountValues[1].PublicKey = second.Address
		_, failure := s.run(s.payer, ix)
		return refusal(t, failure, "1")
	}
	if got := by(s.refund(s.payer.PublicKey(), false)); got != `"InvalidSeeds"` {
		t.Errorf("a refund by another pool: got %s, want InvalidSeeds", got)
	}
	s.must(s.prepare(s.payer.PublicKey()))
	if got := by(s.execute(nil)); got != `"InvalidSeeds"` {
		t.Errorf("an execution by another pool: got %s, want InvalidSeeds", got)
	}
	s.must(s.execute(nil))
}

func TestCloseSwapStateReturnsEverythingToTheWallet(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		before   func(*swapping)
		stranger bool
		wrapped  bool
		// want is the number of lamports that the wallet gets in addition to the state's
		// rent and the swap's lamports.
		want uint64
	}{
		"unwrapped":                  {},
		"unwrapped, by a stranger":   {stranger: true},
		"wrapped":                    {before: func(s *swapping) { s.must(s.prepare(s.payer.PublicKey())) }, wrapped: true, want: tokenRent},
		"wrapped, by a stranger":     {before: func(s *swapping) { s.must(s.prepare(s.payer.PublicKey())) }, wrapped: true, stranger: true, want: tokenRent},
		"wrapped by a stranger":      {before: func(s *swapping) { s.strangerPrepares() }, wrapped: true, want: tokenRent},
		"with lamports sent to it":   {before: func(s *swapping) { s.sendLamports(s.State, 29) }, want: 29},
		"unwrapped, but with dust":   {before: func(s *swapping) { s.sendWrapped(s.WSOL, 31) }, wrapped: true, want: tokenRent + 31},
		"unwrapped, dust left there": {before: func(s *swapping) { s.sendWrapped(s.WSOL, 31) }},
		"wrapped, with dust": {before: func(s *swapping) {
			s.must(s.prepare(s.payer.PublicKey()))
			s.sendWrapped(s.WSOL, 37)
			s.sendLamports(s.State, 41)
		}, wrapped: true, want: tokenRent + 37 + 41},
		"with tokens sent to the output's": {before: func(s *swapping) { s.mintTo(s.Output, 43) }},
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
			paid, output := s.balance(payer.PublicKey()), s.account(s.Output)
			tx, err := s.run(payer, s.refund(payer.PublicKey(), test.wrapped))
			if err != nil {
				t.Fatalf("the refund failed: %v\n%v", err, s.meta(tx).Logs)
			}
			s.conserved(tx)
			if got, want := s.balance(s.wallet), stateRent+s.net+test.want; got != want {
				t.Errorf("the wallet has %d lamports, want %d", got, want)
			}
			if got, want := s.balance(payer.PublicKey()), paid-s.meta(tx).Fee; got != want {
				t.Errorf("the payer has %d lamports, want %d: the fee less, and nothing of the swap's", got, want)
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
	type change = func(s *swapping, ix *solana.GenericInstruction)
	at := func(i int, key func(*swapping) solana.PublicKey) change {
		return func(s *swapping, ix *solana.GenericInstruction) { ix.AccountValues[i].PublicKey = key(s) }
	}
	stranger := func(*swapping) solana.PublicKey { return address("x") }
	tests := map[string]struct {
		wrapped bool
		altered change
		want    string
	}{
		"data after the tag":                 {altered: func(_ *swapping, ix *solana.GenericInstruction) { ix.DataBytes = []byte{13, 0} }, want: `{"Custom":4193}`},
		"another pool":                       {altered: at(1, stranger), want: `"InvalidSeeds"`},
		"an address without a state":         {altered: at(2, stranger), want: uninitialized},
		"the tree in the state's place":      {altered: at(2, func(s *swapping) solana.PublicKey { return s.pool.MerkleTree }), want: `"InvalidAccountData"`},
		"another wallet":                     {altered: at(3, stranger), want: `"InvalidSeeds"`},
		"the payer as wallet":                {altered: at(3, func(s *swapping) solana.PublicKey { return s.payer.PublicKey() }), want: `"InvalidSeeds"`},
		"the recipient's ATA as wallet":      {altered: at(3, func(s *swapping) solana.PublicKey { return s.Terms.RecipientATA }), want: `"InvalidSeeds"`},
		"a wallet passed as read-only":       {altered: func(_ *swapping, ix *solana.GenericInstruction) { ix.AccountValues[3].IsWritable = false }, want: `"InvalidArgument"`},
		"another system program":             {altered: at(4, stranger), want: `"IncorrectProgramId"`},
		"wrapped without the wSOL account":   {wrapped: true, altered: func(_ *swapping, ix *solana.GenericInstruction) { ix.AccountValues = ix.AccountValues[:5] }, want: `"NotEnoughAccountKeys"`},
		"wrapped with another wSOL account":  {wrapped: true, altered: at(5, stranger), want: `"InvalidSeeds"`},
		"wrapped with the output account":    {wrapped: true, altered: at(5, func(s *swapping) solana.PublicKey { return s.Output }), want: `"InvalidSeeds"`},
		"wrapped with another token program": {wrapped: true, altered: at(6, stranger), want: `"IncorrectProgramId"`},
		"wrapped without a token program":    {wrapped: true, altered: func(_ *swapping, ix *solana.GenericInstruction) { ix.AccountValues = ix.AccountValues[:6] }, want: `"NotEnoughAccountKeys"`},
		"a payer that did not sign": {altered: func(_ *swapping, ix *solana.GenericInstruction) {
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

// TestARefundThatNamesAnAccountWhichIsNotThereFails sends a refund of wrapped lamports to a chain
// without the token accounts, as after a fork that undid them.
func TestARefundThatNamesAnAccountWhichIsNotThereFails(t *testing.T) {
	t.Parallel()
	s := newWorld(t).fundedSwap(1)
	s.toTimeout(0)
	_, err := s.run(s.payer, s.refund(s.payer.PublicKey(), true))
	if got := refusal(t, err, "1"); got != `"InvalidAccountOwner"` {
		t.Errorf("got %s, want InvalidAccountOwner", got)
	}
	s.must(s.refund(s.payer.PublicKey(), false))
}

// TestOneEndOfASwapExcludesTheOther ends each swap twice, by execution or refund, in one block and
// in one transaction. The second must fail.
func TestOneEndOfASwapExcludesTheOther(t *testing.T) {
	t.Parallel()
	type end func(*swapping) []solana.Instruction
	execute := func(s *swapping) []solana.Instruction { return []solana.Instruction{s.execute(nil)} }
	refund := func(s *swapping) []solana.Instruction {
		return []solana.Instruction{s.refund(s.payer.PublicKey(), true)}
	}
	for name, ends := range map[string][2]end{
		"executed, then refunded":   {execute, refund},
		"refunded, then executed":   {refund, execute},
		"executed, then executed":   {execute, execute},
		"refunded, then refunded":   {refund, refund},
		"executed, then prepared":   {execute, func(s *swapping) []solana.Instruction { return []solana.Instruction{s.prepare(s.payer.PublicKey())} }},
		"refunded, then prepared":   {refund, func(s *swapping) []solana.Instruction { return []solana.Instruction{s.prepare(s.payer.PublicKey())} }},
		"executed, revived by dust": {execute, func(s *swapping) []solana.Instruction { return s.revived(refund(s)) }},
		"refunded, revived by dust": {refund, func(s *swapping) []solana.Instruction { return s.revived(execute(s)) }},
	} {
		ready := func(t *testing.T) *swapping {
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
			// A price, so that the second transaction has other bytes than the first.
			limit := binary.LittleEndian.AppendUint64([]byte{3}, 1)
			_, err := s.run(s.payer, append([]solana.Instruction{solana.NewInstruction(solana.ComputeBudget, nil, limit)}, second...)...)
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
				t.Error("the failed transaction settled the swap")
			}
		})
	}
}

func digit(n int) string { return string(rune('0' + n)) }

// revived adds a transfer of lamports to the ended swap's state before the instructions.
func (s *swapping) revived(then []solana.Instruction) []solana.Instruction {
	return append([]solana.Instruction{system.NewTransferInstruction(stateRent, s.payer.PublicKey(), s.State).Build()}, then...)
}

func TestTheCodesOfASwapAreOfTheProtocolsFamilies(t *testing.T) {
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

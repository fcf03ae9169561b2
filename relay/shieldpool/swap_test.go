package shieldpool_test

import (
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

func testSwap(t *testing.T) *shieldpool.Swap {
	t.Helper()
	profile := shieldpool.Development()
	pool, err := profile.Pool(profile.Mints[0])
	if err != nil {
		t.Fatal(err)
	}
	swap, err := pool.Swap([32]byte{31: 7}, shieldpool.SwapTerms{OutputMint: solana.PublicKey{1}, RecipientATA: solana.PublicKey{2}, MinOutput: 9})
	if err != nil {
		t.Fatal(err)
	}
	return swap
}

// flags formats an account list as in protocol §2: s marks a signer, w a writable account.
func flags(t *testing.T, ix solana.Instruction) (out []string) {
	t.Helper()
	for _, a := range ix.Accounts() {
		s := a.PublicKey.String()
		if a.IsSigner {
			s += " s"
		}
		if a.IsWritable {
			s += " w"
		}
		out = append(out, s)
	}
	return out
}

func TestSwapInstructionsNameTheirAccountsInOrder(t *testing.T) {
	t.Parallel()
	swap := testSwap(t)
	payer, wallet, router, market := solana.PublicKey{3}, solana.PublicKey{4}, solana.PublicKey{5}, solana.PublicKey{6}
	p, token, system := payer.String(), solana.TokenProgramID.String(), solana.SystemProgramID.String()
	pool, state, wsol, output := swap.Pool.Address.String(), swap.State.String(), swap.WSOL.String(), swap.Output.String()
	prepare, err := swap.Prepare(payer)
	if err != nil {
		t.Fatal(err)
	}
	execute, err := swap.Execute(payer, router, []*solana.AccountMeta{
		{PublicKey: swap.State, IsSigner: true}, {PublicKey: market, IsWritable: true},
	}, []byte{0xaa})
	if err != nil {
		t.Fatal(err)
	}
	refund, err := swap.Close(payer, wallet, false)
	if err != nil {
		t.Fatal(err)
	}
	wrapped, err := swap.Close(payer, wallet, true)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		ix       solana.Instruction
		want     []string
		wantData []byte
	}{
		"PrepareSwapSol": {prepare, []string{p + " s w", state + " w", wsol + " w", token, system}, []byte{11}},
		"ExecuteSwap, the state's signature cleared": {
			execute,
			[]string{
				p + " s w", pool, state + " w", wsol + " w", output + " w", swap.Terms.RecipientATA.String() + " w", token, router.String(),
				state, market.String() + " w",
			},
			append(append([]byte{12}, swap.Nullifier[:]...), 0xaa),
		},
		"CloseSwapState": {refund, []string{p + " s w", pool + " w", state + " w", wallet.String() + " w", system}, []byte{13}},
		"CloseSwapState of wrapped lamports": {
			wrapped,
			[]string{p + " s w", pool + " w", state + " w", wallet.String() + " w", system, wsol + " w", token}, []byte{13},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, flags(t, tc.ix)); diff != "" {
				t.Errorf("accounts (-want +got):\n%s", diff)
			}
			data, err := tc.ix.Data()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.wantData, data); diff != "" {
				t.Errorf("data (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEndedByReadsTagAndState(t *testing.T) {
	t.Parallel()
	swap := testSwap(t)
	program := swap.Pool.Profile.ProgramID
	other := solana.PublicKey{9}
	accounts := func(state solana.PublicKey) []solana.PublicKey {
		return []solana.PublicKey{{3}, swap.Pool.Address, state}
	}
	tests := map[string]struct {
		program  solana.PublicKey
		accounts []solana.PublicKey
		data     []byte
		want     shieldpool.SwapEnding
	}{
		"ExecuteSwap":                  {program, accounts(swap.State), []byte{12, 1}, shieldpool.Executed},
		"CloseSwapState":               {program, accounts(swap.State), []byte{13}, shieldpool.Refunded},
		"PrepareSwapSol, no ending":    {program, accounts(swap.State), []byte{11}, ""},
		"another swap's state":         {program, accounts(other), []byte{12}, ""},
		"another program":              {other, accounts(swap.State), []byte{12}, ""},
		"no data":                      {program, accounts(swap.State), nil, ""},
		"an account list cut short":    {program, accounts(swap.State)[:2], []byte{13}, ""},
		"TransactSwap starts the swap": {program, accounts(swap.State), []byte{1}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := swap.EndedBy(tc.program, tc.accounts, tc.data); got != tc.want {
				t.Errorf("the swap ended as %q, want %q", got, tc.want)
			}
		})
	}
}

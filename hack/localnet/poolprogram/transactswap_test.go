package poolprogram_test

import (
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

func TestTransactSwapMovesTheNetLamportsIntoANewState(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ sent, wantRentPaid, wantDust uint64 }{
		"where there is no account":                 {0, stateRent, 0},
		"where a stranger sent less than the rent":  {rentMinimum, stateRent - rentMinimum, 0},
		"where a stranger sent more than the rent":  {stateRent + 7, 0, 7},
		"where a stranger sent more than the swap":  {2 * uint64(sol), 0, 2*uint64(sol) - stateRent},
		"where a stranger sent just the exact rent": {stateRent, 0, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			terms := w.terms(address("wallet"), 140_000_000)
			call := w.call(swapOf(sol, terms))
			swap, err := w.pool.Swap(call.Inputs.Nullifiers[0], terms)
			if err != nil {
				t.Fatal(err)
			}
			if test.sent > 0 {
				w.sendLamports(swap.State, test.sent)
			}
			balances := func() []uint64 {
				return []uint64{w.balance(w.pool.Address), w.balance(w.pool.Treasury), w.balance(w.payer.PublicKey()), w.tree().NextIndex}
			}
			before, fee := balances(), w.pool.Profile.Fees.Fee(uint64(sol))
			tx, failure := w.run(w.payer, w.instruction(call))
			if failure != nil {
				t.Fatalf("the swap failed: %v\n%v", failure, w.meta(tx).Logs)
			}
			w.checkConservation(tx)
			want := []uint64{
				before[0] - uint64(sol), before[1] + fee, before[2] - w.meta(tx).Fee - 2*rentMinimum - test.wantRentPaid, before[3] + 2,
			}
			if diff := cmp.Diff(want, balances()); diff != "" {
				t.Errorf("pool, treasury, payer and leaves (-want +got):\n%s", diff)
			}
			var slot uint64
			w.Read(bank.Processed, func(v bank.View) { slot = v.Slot() })
			net := uint64(sol) - fee
			state := shieldpool.SwapState{
				Nullifier: call.Inputs.Nullifiers[0], Lamports: net, OutputMint: terms.OutputMint, RecipientATA: terms.RecipientATA,
				MinOutput: 140_000_000, CreatedSlot: slot, TimeoutSlot: slot + 200, Bump: swap.Bump,
			}
			wantState := &bank.Account{Lamports: stateRent + test.wantDust + net, Data: state.Bytes(), Owner: w.pool.Profile.ProgramID}
			if diff := cmp.Diff(wantState, w.account(swap.State)); diff != "" {
				t.Errorf("the state (-want +got):\n%s", diff)
			}
			for i := range 2 {
				if a := w.account(w.nullifier(call, i)); a == nil || a.Owner != w.pool.Profile.ProgramID {
					t.Errorf("nullifier %d is not spent", i)
				}
			}
		})
	}
}

func TestTransactSwapTakesNotes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	call := w.call(swapOf(sol, w.terms(address("wallet"), 1)))
	call.Notes = [][]byte{{1, 2, 3}, {4}}
	w.mustRun(call)
}

func TestTransactSwapRefuses(t *testing.T) {
	t.Parallel()
	const (
		proofInvalid, doubleSpend, conservation = "4112", "4128", "4145"
		invalidAmount, invalidData              = "4147", "4193"
	)
	custom := func(code string) string { return `{"InstructionError":[1,{"Custom":` + code + `}]}` }
	builtin := func(name string) string { return `{"InstructionError":[1,"` + name + `"]}` }
	const terms = 1 + 256 + 264
	tests := map[string]struct {
		inputs  func(w *world, in *shieldpool.PublicInputs, d *shieldpool.Destination)
		altered func(w *world, ix *solana.GenericInstruction)
		want    string
		wantLog string
	}{
		"a transfer": {
			inputs: func(_ *world, in *shieldpool.PublicInputs, _ *shieldpool.Destination) { in.PublicAmount = 0 },
			want:   custom(invalidAmount), wantLog: "negative amount"},
		"a deposit": {
			inputs: func(_ *world, in *shieldpool.PublicInputs, _ *shieldpool.Destination) { in.PublicAmount = sol },
			want:   custom(invalidAmount), wantLog: "negative amount"},
		"a first nullifier of zero": {
			inputs: func(_ *world, in *shieldpool.PublicInputs, _ *shieldpool.Destination) { in.Nullifiers[0] = [32]byte{} },
			want:   custom(invalidData), wantLog: "first nullifier"},
		"an amount equal to its fee": {
			inputs: func(_ *world, in *shieldpool.PublicInputs, _ *shieldpool.Destination) { in.PublicAmount = -5_015_045 },
			want:   custom(invalidAmount)},
		"an amount from the pool's rent exemption": {
			inputs: func(w *world, in *shieldpool.PublicInputs, _ *shieldpool.Destination) {
				in.PublicAmount = -int64(w.balance(w.pool.Address)-bank.RentExemption(32)) - 1
			}, want: custom(conservation)},
		"a nullifier that was spent": {
			inputs: func(_ *world, in *shieldpool.PublicInputs, _ *shieldpool.Destination) {
				in.Nullifiers[0] = field("nullifier 0", 1)
			},
			want: custom(doubleSpend)},
		"the proof of a withdrawal to a wallet": {
			inputs: func(_ *world, in *shieldpool.PublicInputs, _ *shieldpool.Destination) {
				in.ExtDataHash = shieldpool.ExtDataHash(shieldpool.Destination{Recipient: address("wallet")})
			}, want: custom(proofInvalid)},
		"another mint than the proof's": {
			altered: func(_ *world, ix *solana.GenericInstruction) { ix.DataBytes[terms]++ }, want: custom(proofInvalid)},
		"another recipient than the proof's": {
			altered: func(_ *world, ix *solana.GenericInstruction) { ix.DataBytes[terms+32]++ }, want: custom(proofInvalid)},
		"a lower minimum than the proof's": {
			altered: func(_ *world, ix *solana.GenericInstruction) { ix.DataBytes[terms+64]-- }, want: custom(proofInvalid)},
		"data that ends before the minimum": {
			altered: func(_ *world, ix *solana.GenericInstruction) { ix.DataBytes = ix.DataBytes[:terms+71] }, want: custom(invalidData)},
		"a byte after the data": {
			altered: func(_ *world, ix *solana.GenericInstruction) { ix.DataBytes = append(ix.DataBytes, 0) }, want: custom(invalidData)},
		"another state address": {
			altered: func(_ *world, ix *solana.GenericInstruction) { ix.AccountValues[6].PublicKey = address("x") }, want: builtin("InvalidSeeds")},
		"a state passed as read-only": {
			altered: func(_ *world, ix *solana.GenericInstruction) { ix.AccountValues[6].IsWritable = false }, want: builtin("InvalidArgument")},
		"another treasury": {
			altered: func(_ *world, ix *solana.GenericInstruction) { ix.AccountValues[2].PublicKey = address("x") }, want: builtin("InvalidSeeds")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			call := w.call(func(in *shieldpool.PublicInputs, d *shieldpool.Destination) {
				swapOf(sol, w.terms(address("wallet"), 140_000_000))(in, d)
				if test.inputs != nil {
					test.inputs(w, in, d)
				}
			})
			ix := w.instruction(call)
			if test.altered != nil {
				test.altered(w, ix)
			}
			tree, pool := w.account(w.pool.MerkleTree), w.balance(w.pool.Address)
			tx, err := w.run(w.payer, ix)
			if got := wire(t, err); got != test.want {
				t.Errorf("got %s, want %s; logs %q", got, test.want, w.meta(tx).Logs)
			}
			if logs := strings.Join(w.meta(tx).Logs, "\n"); !strings.Contains(logs, test.wantLog) {
				t.Errorf("logs are\n%s\nwant %q among them", logs, test.wantLog)
			}
			if diff := cmp.Diff(tree, w.account(w.pool.MerkleTree)); diff != "" || w.balance(w.pool.Address) != pool {
				t.Errorf("a refused swap changed the pool; tree (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEndedSwapCannotBeCreatedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	terms := w.terms(address("wallet"), 1)
	call := w.call(swapOf(sol, terms))
	swap, err := w.pool.Swap(call.Inputs.Nullifiers[0], terms)
	if err != nil {
		t.Fatal(err)
	}
	w.mustRun(call)
	s := &swapFixture{world: w, Swap: swap, wallet: address("wallet")}
	s.toTimeout(0)
	w.must(s.refund(w.payer.PublicKey(), false))
	if _, failure := w.run(w.payer, w.instruction(call)); wire(t, failure) != `{"InstructionError":[1,{"Custom":4128}]}` {
		t.Errorf("got %s, want DoubleSpend", wire(t, failure))
	}
}

func TestTransactSwapUsesTheMeasuredComputeUnits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lowest, highest := uint64(units), uint64(0)
	for range 40 {
		used := w.mustRun(w.call(swapOf(sol/2, w.terms(address("wallet"), 1)))).Units
		lowest, highest = min(lowest, used), max(highest, used)
	}
	const least, most = 175_000, 188_000
	if lowest < least || highest > most {
		t.Errorf("TransactSwap used %d to %d units, want between %d and %d", lowest, highest, least, most)
	}
	if highest-lowest < 3_000 {
		t.Errorf("TransactSwap used %d to %d units, want a spread of at least 3000 from the search for addresses", lowest, highest)
	}
}

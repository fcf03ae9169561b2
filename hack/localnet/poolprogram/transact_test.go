package poolprogram_test

import (
	"math/big"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const sol = int64(solana.LAMPORTS_PER_SOL)

var rentMinimum = bank.RentExemption(0)

func TestADepositMovesThePayersLamportsIntoThePool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pool, payer, leaves := w.balance(w.pool.Address), w.balance(w.payer.PublicKey()), w.tree().NextIndex
	c := w.call(func(in *shieldpool.PublicInputs, _ *shieldpool.Destination) { in.PublicAmount = 10_000_000 })
	meta := w.mustRun(c)
	if got := w.balance(w.pool.Address) - pool; got != 10_000_000 {
		t.Errorf("the pool got %d lamports, want 10000000", got)
	}
	if got, want := payer-w.balance(w.payer.PublicKey()), 10_000_000+meta.Fee+2*rentMinimum; got != want {
		t.Errorf("the payer paid %d lamports, want %d: deposit, fee and the rent of two nullifiers", got, want)
	}
	if got := w.tree().NextIndex - leaves; got != 2 {
		t.Errorf("%d leaves were appended, want 2", got)
	}
	if n := len(meta.Inner); n != 1 || len(meta.Inner[0].Instructions) != 3 {
		t.Errorf("inner instructions are %v, want a transfer and two account creations", meta.Inner)
	}
}

func TestAWithdrawalPaysRecipientAndTreasury(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tests := []struct {
		gross    int64
		fee, net uint64
	}{
		{100_000_000, 5_300_000, 94_700_000},
		{10_349_695, 5_031_049, 5_318_646},
		{5_015_046, 5_015_045, 1},
	}
	for i, test := range tests {
		recipient := address("recipient")
		before := []uint64{w.balance(w.pool.Address), w.balance(w.pool.Treasury), w.balance(recipient), w.balance(w.payer.PublicKey())}
		c := w.call(withdrawal(test.gross, recipient))
		meta := w.mustRun(c)
		got := []uint64{
			before[0] - w.balance(w.pool.Address), w.balance(w.pool.Treasury) - before[1],
			w.balance(recipient) - before[2], before[3] - w.balance(w.payer.PublicKey()),
		}
		want := []uint64{uint64(test.gross), test.fee, test.net, meta.Fee + 2*rentMinimum}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("withdrawal %d: pool, treasury, recipient, payer (-want +got):\n%s", i, diff)
		}
		for n := range 2 {
			spent := w.account(w.nullifier(c, n))
			want := &bank.Account{Lamports: rentMinimum, Data: []byte{}, Owner: w.pool.Profile.ProgramID}
			if diff := cmp.Diff(want, spent); diff != "" {
				t.Errorf("nullifier account %d (-want +got):\n%s", n, diff)
			}
		}
	}
}

func TestTransferMovesNoLamports(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pool, treasury := w.balance(w.pool.Address), w.balance(w.pool.Treasury)
	w.mustRun(w.call(nil))
	if w.balance(w.pool.Address) != pool || w.balance(w.pool.Treasury) != treasury {
		t.Error("a transfer changed the balance of pool or treasury")
	}
}

func TestEachLeafAddsARootToTheHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	want := w.tree()
	for _, change := range []func(*shieldpool.PublicInputs, *shieldpool.Destination){
		nil,
		func(in *shieldpool.PublicInputs, _ *shieldpool.Destination) { in.Commitments[0] = [32]byte{} },
		func(in *shieldpool.PublicInputs, _ *shieldpool.Destination) { in.Commitments[1] = [32]byte{} },
		func(in *shieldpool.PublicInputs, _ *shieldpool.Destination) { in.Commitments = [2][32]byte{} },
	} {
		c := w.call(change)
		w.mustRun(c)
		for _, leaf := range c.Inputs.Commitments {
			if leaf == ([32]byte{}) {
				continue
			}
			if err := want.Append(leaf); err != nil {
				t.Fatal(err)
			}
		}
		got := w.tree()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("tree account (-want +got):\n%s", diff)
		}
		if err := got.SelfCheck(); err != nil {
			t.Error(err)
		}
	}
	if want.NextIndex != 2+4 {
		t.Errorf("%d leaves, want 6: all-zero commitments are not leaves", want.NextIndex)
	}
}

func TestZeroNullifierCreatesNoAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 2 {
		// Each round has a zero nullifier, so that a second zero nullifier is accepted, too.
		c := w.call(func(in *shieldpool.PublicInputs, _ *shieldpool.Destination) { in.Nullifiers[i] = [32]byte{} })
		w.mustRun(c)
		if w.account(w.nullifier(c, i)) != nil {
			t.Error("an account was created for the zero nullifier")
		}
		if w.account(w.nullifier(c, 1-i)) == nil {
			t.Error("no account was created for the other nullifier")
		}
	}
}

func TestANullifierAddressWithLamportsIsNotSpent(t *testing.T) {
	t.Parallel()
	for name, lamports := range map[string]uint64{
		"rent exempt already": rentMinimum, "more than rent": rentMinimum + 77,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := w.call(nil)
			w.fund(w.nullifier(c, 0), lamports)
			before := w.balance(w.payer.PublicKey())
			meta := w.mustRun(c)
			spent := w.account(w.nullifier(c, 0))
			if spent.Owner != w.pool.Profile.ProgramID || spent.Lamports != lamports {
				t.Errorf("nullifier account is owned by %s with %d lamports, want the program with %d", spent.Owner, spent.Lamports, lamports)
			}
			if got, want := before-w.balance(w.payer.PublicKey()), meta.Fee+rentMinimum; got != want {
				t.Errorf("the payer paid %d lamports, want %d: fee and the rent of the other nullifier", got, want)
			}
		})
	}
}

func TestRootIsKnownForFiftyTransactionsOfTwoLeaves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	root := w.tree().Root
	callWithOldRoot := func() *shieldpool.Call {
		return w.call(func(in *shieldpool.PublicInputs, _ *shieldpool.Destination) { in.Root = root })
	}
	for range 49 {
		w.mustRun(w.call(nil))
		w.Advance(1)
	}
	last := callWithOldRoot()
	w.mustRun(last)
	if _, err := w.run(w.payer, w.instruction(callWithOldRoot())); wire(t, err) != `{"InstructionError":[1,{"Custom":4097}]}` {
		t.Errorf("after 100 leaves the root returns %s, want RootNotFound", wire(t, err))
	}
}

func TestTransactRefuses(t *testing.T) {
	t.Parallel()
	custom := func(code string) string { return `{"InstructionError":[1,{"Custom":` + code + `}]}` }
	builtin := func(name string) string { return `{"InstructionError":[1,"` + name + `"]}` }
	const (
		rootNotFound, proofInvalid, doubleSpend, conservation = "4097", "4112", "4128", "4145"
		invalidAmount, invalidData, proofFailed               = "4147", "4193", "4214"
	)
	type inputs = shieldpool.PublicInputs
	type destination = shieldpool.Destination
	tests := map[string]struct {
		inputs  func(w *world, in *inputs, d *destination) // runs before the proof is made
		altered func(w *world, ix *solana.GenericInstruction)
		want    string
		wantLog string
	}{
		"no data":           {altered: func(_ *world, ix *solana.GenericInstruction) { ix.DataBytes = nil }, want: custom(invalidData)},
		"TransactSwap":      {altered: func(_ *world, ix *solana.GenericInstruction) { ix.DataBytes[0] = 1 }, want: custom(invalidData)},
		"an unknown tag":    {altered: func(_ *world, ix *solana.GenericInstruction) { ix.DataBytes[0] = 99 }, want: custom(invalidData)},
		"data of 520 bytes": {altered: func(_ *world, ix *solana.GenericInstruction) { ix.DataBytes = ix.DataBytes[:520] }, want: custom(invalidData), wantLog: "Program log: Error: InvalidInstructionData"},
		"a byte after the data": {
			altered: func(_ *world, ix *solana.GenericInstruction) { ix.DataBytes = append(ix.DataBytes, 0) }, want: custom(invalidData)},
		"a note envelope with no notes": {
			altered: func(_ *world, ix *solana.GenericInstruction) { ix.DataBytes = append(ix.DataBytes, "CLVK\x01\x00"...) }, want: custom(invalidData)},
		"a byte after the last note": {
			altered: func(_ *world, ix *solana.GenericInstruction) {
				ix.DataBytes = append(ix.DataBytes, "CLVK\x01\x01\x01\x00ab"...)
			}, want: custom(invalidData)},
		"a nullifier plus r, which is not canonical": {
			altered: func(_ *world, ix *solana.GenericInstruction) {
				at := ix.DataBytes[1+256+104 : 1+256+136]
				sum := new(big.Int).Add(new(big.Int).SetBytes(at), shieldpool.FieldModulus())
				sum.FillBytes(at)
			}, want: custom(invalidData)},
		"the smallest amount": {
			altered: func(_ *world, ix *solana.GenericInstruction) {
				copy(ix.DataBytes[1+256+32:], []byte{0, 0, 0, 0, 0, 0, 0, 0x80})
			}, want: custom(invalidData)},
		"equal nullifiers": {
			inputs: func(_ *world, in *inputs, _ *destination) { in.Nullifiers[1] = in.Nullifiers[0] }, want: custom(invalidData)},
		"two zero nullifiers": {
			inputs: func(_ *world, in *inputs, _ *destination) { in.Nullifiers = [2][32]byte{} }, want: custom(invalidData)},
		"an unknown mint": {
			inputs: func(_ *world, in *inputs, _ *destination) { in.MintAddress[31]++ }, want: custom(invalidData), wantLog: "mint"},

		"too few accounts": {
			altered: func(_ *world, ix *solana.GenericInstruction) { ix.AccountValues = ix.AccountValues[:7] }, want: builtin("NotEnoughAccountKeys")},
		"a payer that did not sign": {
			altered: func(_ *world, ix *solana.GenericInstruction) {
				ix.AccountValues[0] = solana.NewAccountMeta(address("faucet"), true, false)
			}, want: builtin("MissingRequiredSignature")},
		"a pool passed as read-only": {
			altered: func(_ *world, ix *solana.GenericInstruction) { ix.AccountValues[1].IsWritable = false }, want: builtin("InvalidArgument")},
		"another pool": {
			altered: func(_ *world, ix *solana.GenericInstruction) { ix.AccountValues[1].PublicKey = address("x") }, want: builtin("InvalidSeeds")},
		"another treasury": {
			altered: func(_ *world, ix *solana.GenericInstruction) { ix.AccountValues[2].PublicKey = address("x") }, want: builtin("InvalidSeeds")},
		"another tree": {
			altered: func(_ *world, ix *solana.GenericInstruction) { ix.AccountValues[3].PublicKey = address("x") }, want: builtin("InvalidSeeds")},
		"another first nullifier account": {
			altered: func(_ *world, ix *solana.GenericInstruction) { ix.AccountValues[4].PublicKey = address("x") }, want: builtin("InvalidSeeds")},
		"another second nullifier account": {
			altered: func(_ *world, ix *solana.GenericInstruction) { ix.AccountValues[5].PublicKey = address("x") }, want: builtin("InvalidSeeds")},
		"another system program": {
			altered: func(_ *world, ix *solana.GenericInstruction) { ix.AccountValues[7].PublicKey = address("x") }, want: builtin("IncorrectProgramId")},
		"a transfer whose recipient is not the payer": {
			altered: func(_ *world, ix *solana.GenericInstruction) { ix.AccountValues[6].PublicKey = address("x") }, want: builtin("InvalidArgument")},
		"a deposit whose recipient is not the payer": {
			inputs:  func(_ *world, in *inputs, _ *destination) { in.PublicAmount = sol },
			altered: func(_ *world, ix *solana.GenericInstruction) { ix.AccountValues[6].PublicKey = address("x") }, want: builtin("InvalidArgument")},

		"an unknown root": {
			inputs: func(_ *world, in *inputs, _ *destination) { in.Root[31]++ }, want: custom(rootNotFound), wantLog: "Program log: Error: RootNotFound"},
		"the zero root, which fills unused entries of the root history": {
			inputs: func(_ *world, in *inputs, _ *destination) { in.Root = [32]byte{} }, want: custom(rootNotFound)},
		"a first nullifier that was spent": {
			inputs: func(_ *world, in *inputs, _ *destination) { in.Nullifiers[0] = field("nullifier 1", 1) }, want: custom(doubleSpend)},
		"a second nullifier that was spent": {
			inputs: func(_ *world, in *inputs, _ *destination) { in.Nullifiers[1] = field("nullifier 0", 1) }, want: custom(doubleSpend)},

		"a proof of other inputs": {
			altered: func(_ *world, ix *solana.GenericInstruction) { ix.DataBytes[1+256+263]++ }, want: custom(proofFailed)},
		"bytes that are no proof": {
			altered: func(_ *world, ix *solana.GenericInstruction) { ix.DataBytes[5]++ }, want: custom(proofFailed)},
		"a proof with A negated": {
			altered: func(_ *world, ix *solana.GenericInstruction) {
				y := ix.DataBytes[1+32 : 1+64]
				p, _ := new(big.Int).SetString("21888242871839275222246405745257275088696311157297823662689037894645226208583", 10)
				p.Sub(p, new(big.Int).SetBytes(y)).FillBytes(y)
			}, want: custom(proofFailed)},

		"a deposit below the minimum": {
			inputs: func(_ *world, in *inputs, _ *destination) { in.PublicAmount = 9_999_999 }, want: custom(invalidAmount)},
		"a deposit of more than the payer has": {
			inputs: func(_ *world, in *inputs, _ *destination) { in.PublicAmount = 10_000 * sol }, want: custom("1"), wantLog: "Transfer: insufficient lamports"},
		"a withdrawal equal to its fee": {
			inputs: func(_ *world, in *inputs, d *destination) { withdrawal(5_015_045, address("faucet"))(in, d) }, want: custom(invalidAmount)},
		"a withdrawal to another recipient than the proof's": {
			inputs:  func(_ *world, in *inputs, d *destination) { withdrawal(sol, address("a"))(in, d) },
			altered: func(_ *world, ix *solana.GenericInstruction) { ix.AccountValues[6].PublicKey = address("b") }, want: custom(proofInvalid)},
		"a withdrawal from the pool's rent exemption": {
			inputs: func(w *world, in *inputs, d *destination) {
				withdrawal(int64(w.balance(w.pool.Address)-bank.RentExemption(32))+1, address("faucet"))(in, d)
			}, want: custom(conservation)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := w.call(func(in *inputs, d *destination) {
				if test.inputs != nil {
					test.inputs(w, in, d)
				}
			})
			ix := w.instruction(c)
			if test.altered != nil {
				test.altered(w, ix)
			}
			tree, pool := w.account(w.pool.MerkleTree), w.balance(w.pool.Address)
			tx, err := w.run(w.payer, ix)
			meta := w.meta(tx)
			if got := wire(t, err); got != test.want {
				t.Errorf("got %s, want %s; logs %q", got, test.want, meta.Logs)
			}
			if logs := strings.Join(meta.Logs, "\n"); !strings.Contains(logs, test.wantLog) {
				t.Errorf("logs are\n%s\nwant %q among them", logs, test.wantLog)
			}
			if diff := cmp.Diff(tree, w.account(w.pool.MerkleTree)); diff != "" || w.balance(w.pool.Address) != pool {
				t.Errorf("a refused instruction changed the pool; tree (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPoolCanBeEmptiedDownToItsRent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rent := bank.RentExemption(32)
	w.mustRun(w.call(withdrawal(int64(w.balance(w.pool.Address)-rent), address("recipient"))))
	if got := w.balance(w.pool.Address); got != rent {
		t.Errorf("the pool has %d lamports, want its rent exemption of %d", got, rent)
	}
}

func TestRecipientLeftBelowRentFailsWithItsIndex(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tx, err := w.run(w.payer, w.instruction(w.call(withdrawal(5_100_000, address("recipient")))))
	for i, k := range tx.Keys {
		if k == address("recipient") {
			if want := (bank.TransactionError{Kind: bank.InsufficientFundsForRent, Index: i}); err == nil || *err != want {
				t.Errorf("got %v, want %v", err, &want)
			}
		}
	}
}

func TestAPayerWithoutTheRentOfNullifiersFailsWithTheSystemProgramsCode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	poor := key("poor")
	w.fund(poor.PublicKey(), rentMinimum+100_000)
	w.payer = poor
	_, err := w.run(poor, w.instruction(w.call(nil)))
	if got := wire(t, err); got != `{"InstructionError":[1,{"Custom":1}]}` {
		t.Errorf("got %s, want the system program's Custom(1)", got)
	}
}

func TestAnUninitialisedPoolRefuses(t *testing.T) {
	t.Parallel()
	w := emptyWorld(t, nil, nil)
	_, err := w.run(w.payer, w.instruction(w.call(nil)))
	if got := wire(t, err); got != `{"InstructionError":[1,"UninitializedAccount"]}` {
		t.Errorf("got %s, want UninitializedAccount", got)
	}
}

func TestFullTreeRefusesLeaves(t *testing.T) {
	t.Parallel()
	profile := shieldpool.Development()
	tree := profile.NewTree(address("admin"))
	tree.NextIndex = 1<<32 - 1
	w := emptyWorld(t, profile, nil, presetPool(t, profile, tree)...)
	_, failure := w.run(w.payer, w.instruction(w.call(nil)))
	if got := wire(t, failure); got != `{"InstructionError":[1,{"Custom":4224}]}` {
		t.Errorf("two leaves with room for one: got %s, want MerkleTreeFull", got)
	}
	w.mustRun(w.call(func(in *shieldpool.PublicInputs, _ *shieldpool.Destination) { in.Commitments[1] = [32]byte{} }))
}

func TestTransactUsesTheMeasuredComputeUnits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lowest, highest := uint64(units), uint64(0)
	for i := range 40 {
		change := withdrawal(sol/2, address("recipient"))
		if i%2 == 0 {
			change = nil
		}
		used := w.mustRun(w.call(change)).Units
		lowest, highest = min(lowest, used), max(highest, used)
	}
	const least, most = 150_000, 186_000
	if lowest < least || highest > most {
		t.Errorf("Transact used %d to %d units, want between %d and %d", lowest, highest, least, most)
	}
	if highest-lowest < 3_000 {
		t.Errorf("Transact used %d to %d units, want a spread of at least 3000 from the search for addresses", lowest, highest)
	}
}

// TestBlockHoldsAsManyTransactsAsOnMainnet checks the throughput of one pool. All its
// transactions write the tree account, so that all payers share the limit for one account.
func TestBlockHoldsAsManyTransactsAsOnMainnet(t *testing.T) {
	t.Parallel()
	w := emptyWorld(t, withRootHistory(4096), nil)
	w.initialize()
	payers := []solana.PrivateKey{key("payer"), key("another payer")}
	w.fund(payers[1].PublicKey(), walletStart)
	w.Advance(1)
	const sent = 150
	landed := 0
	for i := range sent {
		w.payer = payers[i%2]
		ok, err := w.Submit(w.sign(w.payer, w.instruction(w.call(nil))))
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			landed++
		}
	}
	if landed < 100 || landed > 134 {
		t.Errorf("%d Transacts in a block, want 100 to 134: 20 M units at 150 k to 186 k each", landed)
	}
	w.Advance(1)
	if got := w.tree().NextIndex; got != 2*sent || w.Waiting() != 0 {
		t.Errorf("after the next block the tree has %d leaves and %d transactions wait, want %d leaves and none waiting", got, w.Waiting(), 2*sent)
	}
}

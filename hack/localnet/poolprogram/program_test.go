package poolprogram_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/poolprogram"
	"github.com/relaypool/relaypool/hack/localnet/trapdoor"
	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

func TestNewRefusesInvalidOptions(t *testing.T) {
	t.Parallel()
	parse := func(publics int) *groth16.Key {
		raw, err := trapdoor.New("test", publics).VerifyingKey()
		if err != nil {
			t.Fatal(err)
		}
		k, err := groth16.ParseKey(raw)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	without := func(change func(*shieldpool.Profile)) *shieldpool.Profile {
		p := shieldpool.Development()
		change(p)
		return p
	}
	tests := map[string]struct {
		profile *shieldpool.Profile
		key     *groth16.Key
	}{
		"no profile":                     {nil, parse(9)},
		"no key":                         {shieldpool.Development(), nil},
		"a key of another circuit":       {shieldpool.Development(), parse(8)},
		"a profile without mints":        {without(func(p *shieldpool.Profile) { p.Mints = nil }), parse(9)},
		"an account list without a role": {without(func(p *shieldpool.Profile) { p.Accounts.Transact = p.Accounts.Transact[1:] }), parse(9)},
		"a seed of an unknown kind":      {without(func(p *shieldpool.Profile) { p.Seeds.Pool = []shieldpool.Seed{{Value: "moon"}} }), parse(9)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := poolprogram.New(test.profile, test.key); err == nil {
				t.Error("got a program, want an error")
			}
		})
	}
}

func TestInitializeMakesThePoolsAccounts(t *testing.T) {
	t.Parallel()
	for name, preset := range map[string]uint64{"without an account": 0, "where a stranger sent lamports": rentMinimum + 5} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := emptyWorld(t, nil, nil)
			if preset > 0 {
				w.fund(w.pool.Address, preset)
				w.fund(w.pool.MerkleTree, preset)
			}
			w.initialize()
			tree := shieldpool.Development().NewTree(address("admin"))
			admin := address("admin")
			want := map[solana.PublicKey]*bank.Account{
				w.pool.Address:    {Lamports: bank.RentExemption(32), Data: admin[:], Owner: w.pool.Profile.ProgramID},
				w.pool.MerkleTree: {Lamports: bank.RentExemption(4304), Data: tree.Bytes(), Owner: w.pool.Profile.ProgramID},
				w.pool.Treasury:   {Lamports: bank.RentExemption(0), Data: []byte{}, Owner: w.pool.Profile.ProgramID},
			}
			for at, account := range want {
				if diff := cmp.Diff(account, w.account(at)); diff != "" {
					t.Errorf("account %s (-want +got):\n%s", at, diff)
				}
			}
			if err := w.tree().SelfCheck(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestInitializeRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		initialised bool
		altered     func(*solana.GenericInstruction)
		want        string
	}{
		"a second time":        {true, func(*solana.GenericInstruction) {}, `{"InstructionError":[1,"AccountAlreadyInitialized"]}`},
		"data after the tag":   {false, func(ix *solana.GenericInstruction) { ix.DataBytes = append(ix.DataBytes, 0) }, `{"InstructionError":[1,{"Custom":4193}]}`},
		"another pool address": {false, func(ix *solana.GenericInstruction) { ix.AccountValues[1].PublicKey = address("x") }, `{"InstructionError":[1,"InvalidSeeds"]}`},
		"another tree address": {false, func(ix *solana.GenericInstruction) { ix.AccountValues[2].PublicKey = address("x") }, `{"InstructionError":[1,"InvalidSeeds"]}`},
		"another treasury":     {false, func(ix *solana.GenericInstruction) { ix.AccountValues[3].PublicKey = address("x") }, `{"InstructionError":[1,"InvalidSeeds"]}`},
		"too few accounts":     {false, func(ix *solana.GenericInstruction) { ix.AccountValues = ix.AccountValues[:3] }, `{"InstructionError":[1,"NotEnoughAccountKeys"]}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := emptyWorld(t, nil, nil)
			if test.initialised {
				w.initialize()
			}
			made, err := w.pool.Initialize(w.payer.PublicKey())
			if err != nil {
				t.Fatal(err)
			}
			data, err := made.Data()
			if err != nil {
				t.Fatal(err)
			}
			ix := solana.NewInstruction(made.ProgramID(), made.Accounts(), data)
			test.altered(ix)
			if _, failure := w.run(w.payer, ix); wire(t, failure) != test.want {
				t.Errorf("got %s, want %s", wire(t, failure), test.want)
			}
		})
	}
}

// TestProofsOfSnarkJSPass runs two deposits and a withdrawal that circom and snarkjs proved,
// starting with the empty tree. The test changes two points of the development profile, because the
// deposits are below its minimum and the withdrawal does not bind its destination in its way.
func TestProofsOfSnarkJSPass(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("testdata/verification_key.json")
	if err != nil {
		t.Fatal(err)
	}
	verifyingKey, err := groth16.ParseKey(file)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile("testdata/snarkjs_proofs.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Proof  string `json:"proof_bytes_hex"`
		Inputs string `json:"public_inputs_hex"`
	}
	if err := json.Unmarshal(raw, &vectors); err != nil {
		t.Fatal(err)
	}
	profile := shieldpool.Development()
	profile.ExtData = shieldpool.ExtDataOpaque
	profile.Fees = shieldpool.Fees{Base: 1000, Numerator: 3, Denominator: 1000, MinDeposit: 1_000_000}
	w := emptyWorld(t, profile, verifyingKey)
	w.initialize()
	for i, vector := range vectors {
		call := &shieldpool.Call{}
		if call.Proof, err = hex.DecodeString(vector.Proof); err != nil {
			t.Fatal(err)
		}
		bytes, err := hex.DecodeString(vector.Inputs)
		if err != nil {
			t.Fatal(err)
		}
		if call.Inputs, err = shieldpool.ParsePublicInputs(bytes); err != nil {
			t.Fatal(err)
		}
		if call.Inputs.PublicAmount < 0 {
			call.Recipient = address("recipient")
		}
		forged := *call
		forged.Proof = append([]byte{}, call.Proof...)
		other := vectors[(i+1)%len(vectors)].Proof
		if forged.Proof, err = hex.DecodeString(other); err != nil {
			t.Fatal(err)
		}
		if _, failure := w.run(w.payer, w.instruction(&forged)); wire(t, failure) != `{"InstructionError":[1,{"Custom":4214}]}` {
			t.Errorf("proof %d for the inputs of proof %d: %s, want ProofVerificationFailed", (i+1)%len(vectors), i, wire(t, failure))
		}
		w.mustRun(call)
	}
	if got, want := w.balance(address("recipient")), uint64(1_000_000-1000-3000); got != want {
		t.Errorf("the recipient has %d lamports, want %d", got, want)
	}
	if got := w.tree().NextIndex; got != 6 {
		t.Errorf("%d leaves, want 6", got)
	}
}

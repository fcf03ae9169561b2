package poolprogram_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// historyLengths are lengths of the root history: the shortest that holds both roots of a
// transaction with two leaves, the length in the real program, and longer ones.
var historyLengths = []int{2, 100, 4096, 100_000}

func withRootHistory(length int) *shieldpool.Profile {
	profile := shieldpool.Development()
	profile.RootHistory = length
	return profile
}

func TestPoolIsInitialisedWithAnyRootHistoryLength(t *testing.T) {
	t.Parallel()
	for _, length := range historyLengths {
		t.Run(fmt.Sprint(length, " roots"), func(t *testing.T) {
			t.Parallel()
			w := emptyWorld(t, withRootHistory(length), nil)
			w.initialize()
			size := 1096 + 32*length + 8
			account := w.account(w.pool.MerkleTree)
			if len(account.Data) != size || account.Lamports != uint64(128+size)*5080 {
				t.Errorf("the tree has %d bytes and %d lamports, want %d and its rent exemption of %d",
					len(account.Data), account.Lamports, size, (128+size)*5080)
			}
			if !bytes.Equal(w.pool.Profile.NewTree(address("admin")).Bytes(), account.Data) {
				t.Error("the new tree is not empty")
			}
			w.mustRun(w.call(nil))
			if err := w.tree().SelfCheck(); err != nil {
				t.Errorf("after a transfer: %v", err)
			}
		})
	}
}

// TestRootHistoryWrapsAroundAtAnyLength compares the account with the relay's model of
// the tree while the newest root moves past the end of the root history to its start.
func TestRootHistoryWrapsAroundAtAnyLength(t *testing.T) {
	t.Parallel()
	for _, length := range historyLengths {
		t.Run(fmt.Sprint(length, " roots"), func(t *testing.T) {
			t.Parallel()
			profile := withRootHistory(length)
			model := profile.NewTree(address("admin"))
			if err := model.Append(field("leaf", 0)); err != nil {
				t.Fatal(err)
			}
			model.History[length-1], model.RootIndex = model.Root, uint64(length-1)
			// The next leaf replaces this root.
			oldest := field("oldest root", 0)
			model.History[0] = oldest
			w := emptyWorld(t, profile, nil, presetPool(t, profile, model)...)
			callWithRoot := func(root [32]byte) *shieldpool.Call {
				return w.call(func(in *shieldpool.PublicInputs, _ *shieldpool.Destination) { in.Root = root })
			}

			for n := range 3 {
				c := w.call(nil)
				if n == 0 {
					c = callWithRoot(oldest)
				}
				w.mustRun(c)
				for _, leaf := range c.Inputs.Commitments {
					if err := model.Append(leaf); err != nil {
						t.Fatal(err)
					}
				}
				if got := w.account(w.pool.MerkleTree).Data; !bytes.Equal(model.Bytes(), got) {
					t.Fatalf("after transaction %d the account differs from the model", n)
				}
			}
			if err := w.tree().SelfCheck(); err != nil {
				t.Error(err)
			}
			for name, root := range map[string][32]byte{"evicted": oldest, "zero": {}} {
				if _, err := w.run(w.payer, w.instruction(callWithRoot(root))); wire(t, err) != `{"InstructionError":[1,{"Custom":4097}]}` {
					t.Errorf("%s root: got %s, want RootNotFound", name, wire(t, err))
				}
			}
		})
	}
}

func TestInvalidTreeDataIsRefused(t *testing.T) {
	t.Parallel()
	for name, corrupt := range map[string]func(*shieldpool.TreeAccount) []byte{
		"too short": func(a *shieldpool.TreeAccount) []byte { return a.Bytes()[:4303] },
		"a root index outside of the history": func(a *shieldpool.TreeAccount) []byte {
			a.RootIndex = 100
			return a.Bytes()
		},
		"more leaves than a tree has": func(a *shieldpool.TreeAccount) []byte {
			a.NextIndex = 1<<32 + 1
			return a.Bytes()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			profile := shieldpool.Development()
			tree := profile.NewTree(address("admin"))
			root := tree.Root
			preset := presetPool(t, profile, tree)
			preset[1].Account.Data = corrupt(tree)
			preset[1].Account.Lamports *= 2
			w := emptyWorld(t, profile, nil, preset...)
			c := &shieldpool.Call{Inputs: &shieldpool.PublicInputs{
				Root: root, MintAddress: w.pool.Mint.Field, Nullifiers: [2][32]byte{field("n", 0)}, Commitments: [2][32]byte{field("c", 0)},
			}}
			signals := c.Inputs.Signals()
			var err error
			if c.Proof, err = secrets.Prove(signals[:], 0); err != nil {
				t.Fatal(err)
			}
			if _, failure := w.run(w.payer, w.instruction(c)); wire(t, failure) != `{"InstructionError":[1,"InvalidAccountData"]}` {
				t.Errorf("got %s, want InvalidAccountData", wire(t, failure))
			}
		})
	}
}

// BenchmarkRootHistory measures how three operations depend on the length of the root
// history: the execution of a transaction with a verified proof, the search for an
// unknown root, which reads all of the history, and the relay's parsing.
func BenchmarkRootHistory(b *testing.B) {
	for _, length := range historyLengths[1:] {
		w := limitedWorld(b, bank.BlockLimits{Account: 1 << 40, Block: 1 << 40}, withRootHistory(length), nil)
		w.initialize()
		b.Run(fmt.Sprint("execute/", length), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				tx := w.sign(w.payer, w.instruction(w.call(nil)))
				w.simulate(tx)
				b.StartTimer()
				if landed, err := w.Submit(tx); !landed || err != nil {
					b.Fatalf("landed %v with error %v, want success", landed, err)
				}
			}
		})
		b.Run(fmt.Sprint("unknown root/", length), func(b *testing.B) {
			tx := w.sign(w.payer, w.instruction(w.call(func(in *shieldpool.PublicInputs, _ *shieldpool.Destination) {
				in.Root = field("unknown", 0)
			})))
			for b.Loop() {
				w.Simulate(tx, bank.Processed, true)
			}
		})
		b.Run(fmt.Sprint("parse by the relay/", length), func(b *testing.B) {
			data := w.account(w.pool.MerkleTree).Data
			for b.Loop() {
				if _, err := w.pool.Profile.ParseTree(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

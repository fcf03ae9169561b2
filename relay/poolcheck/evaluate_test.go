package poolcheck_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/merkle"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/poolcheck"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// fakeChain is a chain for the checks to read.
type fakeChain struct {
	genesis     solana.Hash
	accounts    map[solana.PublicKey]*onchain.Account
	genesisErr  error
	accountsErr error
	calls       [][]solana.PublicKey
}

func (l *fakeChain) GenesisHash(context.Context) (solana.Hash, error) { return l.genesis, l.genesisErr }

func (l *fakeChain) Accounts(_ context.Context, keys []solana.PublicKey) (uint64, []*onchain.Account, error) {
	l.calls = append(l.calls, slices.Clone(keys))
	if l.accountsErr != nil {
		return 0, nil, l.accountsErr
	}
	out := make([]*onchain.Account, len(keys))
	for i, key := range keys {
		out[i] = l.accounts[key]
	}
	return 7, out, nil
}

var mint = append(make([]byte, 45), append([]byte{1}, make([]byte, 36)...)...)

func pool(t *testing.T, p *shieldpool.Profile) *shieldpool.Pool {
	t.Helper()
	pools, err := poolcheck.Pools(p)
	if err != nil {
		t.Fatal(err)
	}
	return pools[0]
}

// initialisedChain is a chain on which the development profile's pool passes the checks.
func initialisedChain(t *testing.T) (*fakeChain, poolcheck.Target) {
	t.Helper()
	p := shieldpool.Development()
	shielded := pool(t, p)
	owned := func(data []byte) *onchain.Account {
		return &onchain.Account{Owner: p.ProgramID, Lamports: 1, Data: data}
	}
	content, err := os.ReadFile("../groth16/testdata/verification_key.json")
	if err != nil {
		t.Fatal(err)
	}
	key, err := poolcheck.ParseKey(content)
	if err != nil {
		t.Fatal(err)
	}
	return &fakeChain{genesis: shieldpool.DevelopmentGenesisHash, accounts: map[solana.PublicKey]*onchain.Account{
		solana.SystemProgramID: {Executable: true},
		p.ProgramID:            {Executable: true, Owner: solana.BPFLoaderUpgradeableProgramID},
		shielded.Address:       owned([]byte{1}), shielded.Treasury: owned([]byte{1}),
		shielded.MerkleTree: owned(p.NewTree(solana.PublicKey{1}).Bytes()),
		solana.WrappedSol:   {Owner: solana.TokenProgramID, Data: mint},
	}}, poolcheck.Target{Profile: p, Genesis: shieldpool.DevelopmentGenesisHash, Key: key}
}

func TestEvaluate(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change      func(*fakeChain, *poolcheck.Target, *shieldpool.Pool)
		wantState   poolcheck.State
		wantReason  poolcheck.Reason
		wantChecks  []string // those in the summary
		wantMessage []string
	}{
		"an initialised pool": {
			func(*fakeChain, *poolcheck.Target, *shieldpool.Pool) {},
			poolcheck.OK, poolcheck.ReasonInitialised,
			[]string{"genesis", "verifying_key", "program", "pool", "merkle_tree", "treasury", "tree_self_check", "tree_room", "mint"},
			[]string{"the pool is initialised"},
		},
		"any chain, when none is declared": {
			func(_ *fakeChain, t *poolcheck.Target, _ *shieldpool.Pool) { t.Genesis = solana.Hash{} },
			poolcheck.OK, poolcheck.ReasonInitialised, nil, nil,
		},
		"another cluster": {
			func(_ *fakeChain, t *poolcheck.Target, _ *shieldpool.Pool) { t.Genesis = solana.Hash{9} },
			poolcheck.Failed, poolcheck.ReasonWrongCluster, []string{"genesis"},
			[]string{"expected genesis hash " + solana.Hash{9}.String() + ", found genesis hash " + shieldpool.DevelopmentGenesisHash.String(), "correct the RPC endpoint's URL"},
		},
		"no program": {
			func(l *fakeChain, t *poolcheck.Target, _ *shieldpool.Pool) { delete(l.accounts, t.Profile.ProgramID) },
			poolcheck.Failed, poolcheck.ReasonProgramMissing, []string{"program"}, []string{"found no account", "check the program id"},
		},
		"a wallet in place of the program": {
			func(l *fakeChain, t *poolcheck.Target, _ *shieldpool.Pool) {
				l.accounts[t.Profile.ProgramID] = &onchain.Account{}
			},
			poolcheck.Failed, poolcheck.ReasonProgramMissing, []string{"program"}, []string{"not executable"},
		},
		"a pool that was never initialised": {
			func(l *fakeChain, _ *poolcheck.Target, p *shieldpool.Pool) {
				for _, key := range []solana.PublicKey{p.Address, p.MerkleTree, p.Treasury} {
					delete(l.accounts, key)
				}
			},
			poolcheck.Failed, poolcheck.ReasonAccountMissing, []string{"pool", "merkle_tree", "treasury"},
			[]string{"merkle tree", "found no account", "initialise the pool", "instruction Initialize of program", "data 0a", "the authority (signer)"},
		},
		"a treasury that only got lamports": {
			func(l *fakeChain, _ *poolcheck.Target, p *shieldpool.Pool) {
				l.accounts[p.Treasury] = &onchain.Account{Owner: solana.SystemProgramID, Lamports: 5}
			},
			poolcheck.Failed, poolcheck.ReasonAccountMissing, []string{"treasury"}, []string{"lamports that somebody sent there"},
		},
		"a treasury that is a nonce account": {
			func(l *fakeChain, _ *poolcheck.Target, p *shieldpool.Pool) {
				l.accounts[p.Treasury] = &onchain.Account{Owner: solana.SystemProgramID, Lamports: 5, Data: make([]byte, 80)} // a nonce account
			},
			poolcheck.Failed, poolcheck.ReasonAccountForeign, []string{"treasury"}, []string{"found an account of program " + solana.SystemProgramID.String()},
		},
		"a tree of another program": {
			func(l *fakeChain, _ *poolcheck.Target, p *shieldpool.Pool) {
				l.accounts[p.MerkleTree].Owner = solana.TokenProgramID
			},
			poolcheck.Failed, poolcheck.ReasonAccountForeign, []string{"merkle_tree"}, []string{"found an account of program " + solana.TokenProgramID.String()},
		},
		"a longer root history than the program's": {
			func(_ *fakeChain, t *poolcheck.Target, _ *shieldpool.Pool) { t.Profile.RootHistory = 128 },
			poolcheck.Failed, poolcheck.ReasonTreeMismatch, []string{"tree_self_check"}, []string{"rootHistory, which is 128"},
		},
		"a shorter root history than the program's": {
			func(l *fakeChain, t *poolcheck.Target, p *shieldpool.Pool) {
				tree := t.Profile.NewTree(solana.PublicKey{1})
				for i := range 90 {
					if err := tree.Append([32]byte{31: byte(i + 1)}); err != nil {
						panic(err)
					}
				}
				l.accounts[p.MerkleTree].Data = tree.Bytes()
				t.Profile.RootHistory = 50
			},
			poolcheck.Failed, poolcheck.ReasonTreeMismatch, []string{"tree_self_check"}, nil,
		},
		"a root that differs from the frontier's": {
			func(l *fakeChain, t *poolcheck.Target, p *shieldpool.Pool) {
				tree := t.Profile.NewTree(solana.PublicKey{1})
				tree.NextIndex = 2
				l.accounts[p.MerkleTree].Data = tree.Bytes()
			},
			poolcheck.Failed, poolcheck.ReasonTreeMismatch, []string{"tree_self_check"}, []string{"the root recomputed from its frontier differs"},
		},
		"a mint without an account": {
			func(l *fakeChain, _ *poolcheck.Target, _ *shieldpool.Pool) { delete(l.accounts, solana.WrappedSol) },
			poolcheck.Failed, poolcheck.ReasonMintUnknown, []string{"mint"}, []string{"found no account"},
		},
		"a mint of Token-2022": {
			func(l *fakeChain, _ *poolcheck.Target, _ *shieldpool.Pool) {
				l.accounts[solana.WrappedSol].Owner = solana.Token2022ProgramID
			},
			poolcheck.Failed, poolcheck.ReasonMintUnknown, []string{"mint"}, []string{"Token-2022"},
		},
		"a mint that is a wallet": {
			func(l *fakeChain, _ *poolcheck.Target, _ *shieldpool.Pool) {
				l.accounts[solana.WrappedSol] = &onchain.Account{}
			},
			poolcheck.Failed, poolcheck.ReasonMintUnknown, []string{"mint"}, nil,
		},
		"a token account in place of a mint": {
			func(l *fakeChain, _ *poolcheck.Target, _ *shieldpool.Pool) {
				l.accounts[solana.WrappedSol].Data = make([]byte, 165)
			},
			poolcheck.Failed, poolcheck.ReasonMintUnknown, []string{"mint"}, []string{"mint has 165 bytes, expected 82"},
		},
		"a key of another circuit": {
			func(_ *fakeChain, t *poolcheck.Target, _ *shieldpool.Pool) { t.Key = &poolcheck.Key{Publics: 8} },
			poolcheck.Failed, poolcheck.ReasonVerifyingKeyUnfit, []string{"verifying_key"}, []string{"expected a key with 9 public signals, found a key with 8"},
		},
		"no key yet": {
			func(_ *fakeChain, t *poolcheck.Target, _ *shieldpool.Pool) { t.Key = nil },
			poolcheck.Unknown, poolcheck.ReasonConfigurationIncomplete, []string{"verifying_key"}, []string{"the verifying key is not known"},
		},
		"no profile yet": {
			func(_ *fakeChain, t *poolcheck.Target, _ *shieldpool.Pool) { t.Profile = nil },
			poolcheck.Unknown, poolcheck.ReasonConfigurationIncomplete, []string{"program"}, []string{"the program profile is not known"},
		},
		"a profile without mints": {
			func(_ *fakeChain, t *poolcheck.Target, _ *shieldpool.Pool) { t.Profile.Mints = nil },
			poolcheck.Failed, poolcheck.ReasonAccountMissing, []string{"pool"}, []string{"the profile names no mint"},
		},
		"accounts that cannot be read": {
			func(l *fakeChain, _ *poolcheck.Target, _ *shieldpool.Pool) { l.accountsErr = errors.New("HTTP 503") },
			poolcheck.Unknown, poolcheck.ReasonChainUnavailable, []string{"program", "pool", "merkle_tree", "treasury", "tree_self_check", "tree_room", "mint"},
			[]string{"accounts could not be read: HTTP 503"},
		},
		"an endpoint that has lost its state": {
			func(l *fakeChain, _ *poolcheck.Target, _ *shieldpool.Pool) { l.accounts = nil },
			poolcheck.Unknown, poolcheck.ReasonChainUnavailable, nil, []string{"the endpoint's state is incomplete"},
		},
		"a genesis hash that cannot be read": {
			func(l *fakeChain, _ *poolcheck.Target, _ *shieldpool.Pool) {
				l.genesis, l.genesisErr = solana.Hash{}, errors.New("no answer")
			},
			poolcheck.Unknown, poolcheck.ReasonChainUnavailable, nil, []string{"the genesis hash could not be read: no answer"},
		},
		"a failure comes before an unknown result": {
			func(l *fakeChain, t *poolcheck.Target, _ *shieldpool.Pool) {
				t.Key = nil
				delete(l.accounts, t.Profile.ProgramID)
			},
			poolcheck.Failed, poolcheck.ReasonProgramMissing, []string{"program"}, nil,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chain, target := initialisedChain(t)
			test.change(chain, &target, pool(t, shieldpool.Development()))
			report := poolcheck.Evaluate(poolcheck.Observe(t.Context(), chain, target))
			state, reason, checks := report.Summary()
			if state != test.wantState || reason != test.wantReason {
				t.Errorf("got %s, %s, want %s, %s: %s", state, reason, test.wantState, test.wantReason, report.Message())
			}
			var names []string
			for _, c := range checks {
				names = append(names, c.Name)
				if (c.State == poolcheck.OK) != (c.Reason == "") || c.Expected == "" || c.Found == "" || c.State == poolcheck.Failed && c.Remedy == "" {
					t.Errorf("check %+v lacks a field", c)
				}
			}
			if test.wantChecks != nil {
				if diff := cmp.Diff(test.wantChecks, names); diff != "" {
					t.Errorf("checks of the summary (-want +got)\n%s", diff)
				}
			}
			for _, want := range test.wantMessage {
				if !strings.Contains(report.Message(), want) {
					t.Errorf("got %q, want it to hold %q", report.Message(), want)
				}
			}
			if n := strings.Count(report.Message(), "instruction Initialize"); n > 1 {
				t.Errorf("the remedy is repeated %d times, want once: %s", n, report.Message())
			}
		})
	}
}

func TestATreeIsFullBeforeItsLastLeaf(t *testing.T) {
	t.Parallel()
	// The frontier of a tree of empty leaves is the empty subtrees' roots, so any length
	// can be set without appending.
	for name, test := range map[string]struct {
		next uint64
		want poolcheck.State
	}{
		"one leaf above the minimum":    {1<<32 - poolcheck.MinFreeLeaves - 1, poolcheck.OK},
		"the minimum of free leaves":    {1<<32 - poolcheck.MinFreeLeaves, poolcheck.OK},
		"one leaf below the minimum":    {1<<32 - poolcheck.MinFreeLeaves + 1, poolcheck.Failed},
		"every leaf of the tree in use": {1 << 32, poolcheck.Failed},
	} {
		chain, target := initialisedChain(t)
		shielded := pool(t, target.Profile)
		tree := target.Profile.NewTree(solana.PublicKey{1})
		tree.NextIndex = test.next
		for i := range tree.Frontier {
			tree.Frontier[i] = emptySubtree(i)
		}
		if test.next == 1<<32 {
			tree.Frontier[31] = tree.Root // a full tree keeps its root there
		}
		chain.accounts[shielded.MerkleTree].Data = tree.Bytes()
		report := poolcheck.Evaluate(poolcheck.Observe(t.Context(), chain, target))
		i := slices.IndexFunc(report.Checks, func(c poolcheck.Check) bool { return c.Name == poolcheck.CheckRoom })
		if got := report.Checks[i]; got.State != test.want || got.State == poolcheck.Failed && got.Reason != poolcheck.ReasonTreeFull {
			t.Errorf("%s: got %+v, want %s", name, got, test.want)
		}
		if next, ok := report.NextIndex(); !ok || next != test.next {
			t.Errorf("%s: got %d leaves, %v, want %d", name, next, ok, test.next)
		}
	}
}

func TestPoolAndPayersAreReadInOneCall(t *testing.T) {
	t.Parallel()
	chain, target := initialisedChain(t)
	rich, empty := solana.PublicKey{5}, solana.PublicKey{6}
	chain.accounts[rich] = &onchain.Account{Lamports: 12}
	target.Extra = []solana.PublicKey{rich, empty, rich}
	report := poolcheck.Evaluate(poolcheck.Observe(t.Context(), chain, target))
	if diff := cmp.Diff(map[solana.PublicKey]uint64{rich: 12, empty: 0}, report.Balances); diff != "" {
		t.Errorf("balances (-want +got)\n%s", diff)
	}
	if len(chain.calls) != 1 || len(chain.calls[0]) != 8 {
		t.Errorf("got %d calls, want one of 8 accounts: %v", len(chain.calls), chain.calls)
	}

	// The maximum number of payers in a status takes a second call, and the pool's accounts stay
	// together in the first.
	target.Extra = nil
	for i := range 128 {
		key := solana.PublicKey{7, byte(i)}
		target.Extra = append(target.Extra, key)
		chain.accounts[key] = &onchain.Account{Lamports: uint64(i)}
	}
	chain.calls = nil
	report = poolcheck.Evaluate(poolcheck.Observe(t.Context(), chain, target))
	if len(report.Balances) != 128 || report.Balances[target.Extra[127]] != 127 {
		t.Errorf("got %d balances, want 128", len(report.Balances))
	}
	if len(chain.calls) != 2 || len(chain.calls[0]) != poolcheck.MaxAccounts {
		t.Errorf("got %d calls, want two", len(chain.calls))
	}

	chain.accountsErr = errors.New("down")
	if got := poolcheck.Evaluate(poolcheck.Observe(t.Context(), chain, target)); len(got.Balances) != 0 {
		t.Errorf("got balances %v of a chain that does not answer, want none: unknown is not zero", got.Balances)
	}
}

func TestAccountsOfAnotherChainAreNotRead(t *testing.T) {
	t.Parallel()
	chain, target := initialisedChain(t)
	target.Genesis = solana.Hash{1}
	target.Extra = []solana.PublicKey{{5}}
	report := poolcheck.Evaluate(poolcheck.Observe(t.Context(), chain, target))
	if len(chain.calls) != 0 || len(report.Balances) != 0 {
		t.Errorf("got %d calls and balances %v, want none", len(chain.calls), report.Balances)
	}
}

func TestPoolsOfMints(t *testing.T) {
	t.Parallel()
	p := shieldpool.Development()
	p.Mints = append(p.Mints, shieldpool.Mint{Address: solana.PublicKey{8}, Field: [32]byte{31: 8}})
	if pools, err := poolcheck.Pools(p); err != nil || len(pools) != 1 {
		t.Errorf("got %d pools, %v, want one for both mints", len(pools), err)
	}
	withMint := []shieldpool.Seed{{Literal: "x"}, {Value: shieldpool.SeedMint}}
	p.Seeds.Pool, p.Seeds.MerkleTree, p.Seeds.Treasury = withMint, slices.Concat(withMint, withMint), slices.Concat(withMint, withMint, withMint)
	pools, err := poolcheck.Pools(p)
	if err != nil || len(pools) != 2 {
		t.Fatalf("got %d pools, %v, want one for each mint", len(pools), err)
	}
	chain, target := initialisedChain(t)
	target.Profile = p
	chain.accounts[solana.PublicKey{8}] = chain.accounts[solana.WrappedSol]
	for _, pool := range pools[:1] { // the second is not initialised
		for _, key := range []solana.PublicKey{pool.Address, pool.Treasury, pool.MerkleTree} {
			chain.accounts[key] = &onchain.Account{Owner: p.ProgramID, Data: p.NewTree(solana.PublicKey{1}).Bytes()}
		}
	}
	report := poolcheck.Evaluate(poolcheck.Observe(t.Context(), chain, target))
	if state, reason, _ := report.Summary(); state != poolcheck.Failed || reason != poolcheck.ReasonAccountMissing {
		t.Errorf("got %s, %s, want the second pool's accounts to be missing", state, reason)
	}
}

func TestDevelopmentKeyIsOnlyForTheLocalChain(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../../hack/circuit/verification_key.json")
	if err != nil {
		t.Fatal(err)
	}
	key, err := poolcheck.ParseKey(content)
	if err != nil {
		t.Fatal(err)
	}
	if !poolcheck.IsDevelopmentKey(key.Hash) {
		t.Fatal("the development circuit's key is not recognised")
	}
	for name, test := range map[string]struct {
		genesis solana.Hash
		want    poolcheck.State
	}{
		"on the local chain": {shieldpool.DevelopmentGenesisHash, poolcheck.OK},
		"on another chain":   {solana.Hash{1}, poolcheck.Failed},
	} {
		chain, target := initialisedChain(t)
		chain.genesis, target.Genesis, target.Key = test.genesis, test.genesis, key
		report := poolcheck.Evaluate(poolcheck.Observe(t.Context(), chain, target))
		if state, reason, _ := report.Summary(); state != test.want || state == poolcheck.Failed && reason != poolcheck.ReasonVerifyingKeyUnfit {
			t.Errorf("%s: got %s, %s, want %s", name, state, reason, test.want)
		}
		if allowed := poolcheck.KeyAllowed(key.Hash, test.genesis); allowed != (test.want == poolcheck.OK) {
			t.Errorf("%s: the key is allowed: %v", name, allowed)
		}
	}
	if _, err := poolcheck.ParseKey([]byte("no")); err == nil {
		t.Error("parsed invalid text as a key, want an error")
	}
}

func TestEmptyReport(t *testing.T) {
	t.Parallel()
	var report poolcheck.Report
	if state, reason, _ := report.Summary(); state != poolcheck.Unknown || reason != poolcheck.ReasonNotChecked || report.Message() == "" {
		t.Errorf("got %s, %s, %q, want unknown, NotChecked and a message", state, reason, report.Message())
	}
}

func emptySubtree(level int) [32]byte {
	e := merkle.Zero(level)
	return merkle.Bytes(&e)
}

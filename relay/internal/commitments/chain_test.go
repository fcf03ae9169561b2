package commitments_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/trapdoor"
	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/internal/commitments"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// localPool is a pool on a local chain whose slots a test advances. It is read with the relay's
// own client.
type localPool struct {
	t       *testing.T
	chain   *localnet.Chain
	rpc     archive
	pool    *shieldpool.Pool
	state   *chain.PoolReader
	secrets *trapdoor.Key
	wallet  solana.PrivateKey
	spent   uint64
}

// archive implements commitments.Chain with endpoints.
type archive struct{ *chain.History }

func (a archive) SignaturesFor(ctx context.Context, address solana.PublicKey, before, until solana.Signature, limit int) ([]onchain.SignatureInfo, error) {
	return a.History.SignaturesFor(ctx, address, onchain.Confirmed, before, until, limit)
}

func (a archive) FirstAvailableBlock(ctx context.Context) (uint64, error) {
	found, err := a.Search(ctx, []solana.Signature{})
	return found.FirstAvailable, err
}

func newLocalPool(t *testing.T) *localPool {
	t.Helper()
	l := &localPool{t: t, secrets: trapdoor.New(t.Name(), shieldpool.SignalCount)}
	key, err := l.secrets.VerifyingKey()
	must(t, err)
	l.chain, err = localnet.New(localnet.Options{VerifyingKey: key, Initialised: true})
	must(t, err)
	t.Cleanup(func() { must(t, l.chain.Close()) })
	url, err := l.chain.Listen("127.0.0.1:0")
	must(t, err)
	endpoints, err := chain.NewEndpoints(chain.EndpointsOptions{
		Endpoints: []chain.Endpoint{{Name: "local", URL: url, Roles: []chain.Role{chain.RoleRead, chain.RoleSubmit, chain.RoleArchive}}},
		Now:       time.Now, Rand: rand.Float64, Log: discard(),
	})
	must(t, err)
	t.Cleanup(endpoints.Close)
	l.rpc = archive{&chain.History{Endpoints: endpoints}}
	profile := shieldpool.Development()
	l.pool, err = profile.Pool(profile.Mints[0])
	must(t, err)
	l.state, err = chain.NewPool(chain.PoolOptions{Accounts: l.rpc, Pool: l.pool, Now: time.Now, MinInterval: time.Millisecond})
	must(t, err)
	l.wallet, err = solana.NewRandomPrivateKey()
	must(t, err)
	must(t, l.chain.Fund(l.wallet.PublicKey(), 100*solana.LAMPORTS_PER_SOL))
	l.chain.Advance(localnet.DefaultConfirmAfter)
	return l
}

// deposit lands a deposit in the open slot and returns its commitments. With fails, the deposit
// names an unknown root, and lands and fails.
func (l *localPool) deposit(fails bool) [][32]byte {
	l.t.Helper()
	l.spent++
	snap, err := l.state.Tree(l.t.Context(), 0)
	must(l.t, err)
	n := byte(l.spent)
	in := &shieldpool.PublicInputs{
		Root: snap.Tree.Root, PublicAmount: 10_000_000, MintAddress: l.pool.Mint.Field,
		Nullifiers:  [2][32]byte{{30: n, 31: 1}, {30: n, 31: 2}},
		Commitments: [2][32]byte{{30: n, 31: 3}, {30: n, 31: 4}},
	}
	if fails {
		in.Root = [32]byte{31: 1}
	}
	signals := in.Signals()
	proof, err := l.secrets.Prove(signals[:], l.spent)
	must(l.t, err)
	hash, err := l.rpc.LatestBlockhash(l.t.Context())
	must(l.t, err)
	call := &shieldpool.Call{Proof: proof, Inputs: in}
	tx, err := l.pool.Transaction(l.wallet.PublicKey(), call, shieldpool.Compute{Limit: 400_000}, hash.Hash, nil)
	must(l.t, err)
	_, err = tx.Sign(func(solana.PublicKey) *solana.PrivateKey { return &l.wallet })
	must(l.t, err)
	raw, err := tx.MarshalBinary()
	must(l.t, err)
	must(l.t, l.rpc.Send(l.t.Context(), raw, onchain.Sending{}, 0))
	return in.Commitments[:]
}

func TestLeavesOfALocalChainAreVerified(t *testing.T) {
	t.Parallel()
	l := newLocalPool(t)
	s := newStore(t, &history{pool: l.pool})
	f, err := commitments.New(commitments.Options{
		Store: s, Chain: l.rpc, Tree: l.state, Pool: l.pool, Log: discard(), Now: time.Now, Interval: time.Second,
		Finalized: func() uint64 { return 0 }, Subscribed: func() bool { return false },
	})
	must(t, err)
	var want [][32]byte
	for round, deposits := range []int{3, 1, 4, 0, 2} {
		t.Run(fmt.Sprintf("%d deposits in round %d", deposits, round), func(t *testing.T) {
			for range deposits {
				want = append(want, l.deposit(false)...)
			}
			l.deposit(true)
			l.chain.Skip(3)
			l.chain.Advance(localnet.DefaultConfirmAfter)
			must(t, f.Sync(t.Context(), 0))
			if served := served(t, f); !slices.Equal(served, want) {
				t.Errorf("%d leaves are served, want the %d of the deposits in order", len(served), len(want))
			}
			if r := f.Status(); !r.Verified || r.ChainNext != uint64(len(want)) {
				t.Errorf("status is %+v, want %d leaves verified", r, len(want))
			}
		})
	}
	listed, err := l.rpc.SignaturesFor(t.Context(), l.pool.MerkleTree, solana.Signature{}, solana.Signature{}, 0)
	must(t, err)
	failed := 0
	for _, tx := range listed {
		if tx.Failed {
			failed++
		}
	}
	if failed != 5 {
		t.Errorf("%d transactions of the tree failed on the chain, want one in each of 5 rounds", failed)
	}
}

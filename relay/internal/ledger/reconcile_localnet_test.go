package ledger_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/hack/localnet/trapdoor"
	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/internal/ledger"
	"github.com/relaypool/relaypool/relay/internal/pgtest"
	"github.com/relaypool/relaypool/relay/internal/store"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// chainFixture is a local chain with a pool, which the test advances, and the ledger of
// two payers in a database.
type chainFixture struct {
	*testing.T
	chain    *localnet.Chain
	rpc      *rpc.Client
	shielded *shieldpool.Pool
	proofs   *trapdoor.Key
	payers   [2]solana.PrivateKey
	store    storeWithAttempts
	sent     uint64
}

// storeWithAttempts is the accounting in the database, with a list of the relay's
// attempts.
type storeWithAttempts struct {
	*store.Ledger
	attempts map[solana.Signature]ledger.Attempt
}

func (k storeWithAttempts) Attempts(_ context.Context, signatures []solana.Signature) (map[solana.Signature]ledger.Attempt, error) {
	found := map[solana.Signature]ledger.Attempt{}
	for _, s := range signatures {
		if a, ok := k.attempts[s]; ok {
			found[s] = a
		}
	}
	return found, nil
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func newChainFixture(t *testing.T) *chainFixture {
	t.Helper()
	p := &chainFixture{T: t, proofs: trapdoor.New("ledger", shieldpool.SignalCount)}
	p.chain = must[*localnet.Chain](t)(localnet.New(localnet.Options{VerifyingKey: must[[]byte](t)(p.proofs.VerifyingKey()), Initialised: true}))
	server := httptest.NewServer(p.chain)
	t.Cleanup(server.Close)
	p.rpc = rpc.New(server.URL)
	profile := shieldpool.Development()
	p.shielded = must[*shieldpool.Pool](t)(profile.Pool(profile.Mints[0]))
	for i := range p.payers {
		p.payers[i] = must[solana.PrivateKey](t)(solana.NewRandomPrivateKey())
	}
	db := pgtest.Pool(t)
	if err := store.Migrate(t.Context(), db, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	p.store = storeWithAttempts{must[*store.Store](t)(store.New(db)).Ledger(), map[solana.Signature]ledger.Attempt{}}
	return p
}

// endpoints makes the relay's RPC client for two more endpoints of the chain, with
// faults; the second is the archive.
func (p *chainFixture) endpoints(first, second []fault.Rule) *chain.Endpoints {
	p.Helper()
	all := []chain.Endpoint{
		{Name: "first", Roles: []chain.Role{chain.RoleRead, chain.RoleSubmit}},
		{Name: "second", Roles: []chain.Role{chain.RoleRead, chain.RoleSubmit, chain.RoleArchive}},
	}
	for i, rules := range [][]fault.Rule{first, second} {
		endpoint := p.chain.Endpoint(all[i].Name)
		if err := endpoint.SetFaults(rules); err != nil {
			p.Fatal(err)
		}
		server := httptest.NewServer(endpoint)
		p.Cleanup(server.Close)
		all[i].URL, all[i].WebSocketURL = server.URL, chain.NoWebSocket
	}
	e := must[*chain.Endpoints](p.T)(chain.NewEndpoints(chain.EndpointsOptions{
		Endpoints: all, Genesis: localnet.GenesisHash, Now: time.Now, Rand: rand.Float64, Log: slog.New(slog.DiscardHandler),
	}))
	p.Cleanup(e.Close)
	return e
}

func (p *chainFixture) balances() map[solana.PublicKey]uint64 {
	p.Helper()
	out := map[solana.PublicKey]uint64{}
	for _, key := range p.payers {
		out[key.PublicKey()] = must[*rpc.GetBalanceResult](p.T)(p.rpc.GetBalance(p.Context(), key.PublicKey(), rpc.CommitmentFinalized)).Value
	}
	return out
}

// send signs a transaction and puts it on the chain without preflight.
func (p *chainFixture) send(payer solana.PrivateKey, build func(hash solana.Hash) *solana.Transaction) solana.Signature {
	p.Helper()
	hash := must[*rpc.GetLatestBlockhashResult](p.T)(p.rpc.GetLatestBlockhash(p.Context(), rpc.CommitmentConfirmed)).Value.Blockhash
	tx := build(hash)
	must[[]solana.Signature](p.T)(tx.Sign(func(solana.PublicKey) *solana.PrivateKey { return &payer }))
	return must[solana.Signature](p.T)(p.rpc.SendTransactionWithOpts(p.Context(), tx, rpc.TransactionOpts{SkipPreflight: true}))
}

// transfer sends a transfer of the relay. With a stale root it lands and fails.
func (p *chainFixture) transfer(payer solana.PrivateKey, root [32]byte) {
	p.Helper()
	p.sent++
	value := func(label string) (out [32]byte) {
		out = sha256.Sum256(binary.LittleEndian.AppendUint64([]byte(label), p.sent))
		out[0] = 0
		return out
	}
	in := &shieldpool.PublicInputs{
		Root: root, MintAddress: p.shielded.Mint.Field,
		Nullifiers:  [2][32]byte{value("nullifier 0"), value("nullifier 1")},
		Commitments: [2][32]byte{value("commitment 0"), value("commitment 1")},
	}
	signals := in.Signals()
	call := &shieldpool.Call{Proof: must[[]byte](p.T)(p.proofs.Prove(signals[:], p.sent)), Inputs: in}
	signature := p.send(payer, func(hash solana.Hash) *solana.Transaction {
		return must[*solana.Transaction](p.T)(p.shielded.Transaction(payer.PublicKey(), call, shieldpool.Compute{Limit: 300_000, Price: 1000}, hash, nil))
	})
	p.store.attempts[signature] = ledger.Attempt{Submission: uuid.New(), Kind: shieldpool.KindTransfer}
}

func (p *chainFixture) root() [32]byte {
	p.Helper()
	account := must[*rpc.GetAccountInfoResult](p.T)(p.rpc.GetAccountInfoWithOpts(p.Context(), p.shielded.MerkleTree, &rpc.GetAccountInfoOpts{Commitment: rpc.CommitmentProcessed}))
	return must[*shieldpool.TreeAccount](p.T)(p.shielded.Profile.ParseTree(account.Value.Data.GetBinary())).Root
}

func (p *chainFixture) fund(to solana.PrivateKey, lamports uint64) {
	p.Helper()
	if err := p.chain.Fund(to.PublicKey(), lamports); err != nil {
		p.Fatal(err)
	}
}

type noObserver struct{}

func (noObserver) EntryAdded(ledger.Kind, ledger.Amounts) {}
func (noObserver) GapSkipped()                            {}

// statement makes passes of at most four payments for each payer until the
// accounting has caught up with the chain, and returns its statement.
func (p *chainFixture) statement(e *chain.Endpoints) ledger.Statement {
	p.Helper()
	r := must[*ledger.Reconciler](p.T)(ledger.NewReconciler(ledger.ReconcilerOptions{
		Payers: []solana.PublicKey{p.payers[0].PublicKey(), p.payers[1].PublicKey()}, Store: p.store, Chain: e, Observer: noObserver{},
		Log: slog.New(slog.NewTextHandler(p.Output(), nil)), Now: time.Now, Payments: 8,
	}))
	for pass := 1; ; pass++ {
		if err := r.Reconcile(p.Context()); err != nil && !errors.Is(err, onchain.ErrUnavailable) {
			p.Fatal(err)
		}
		now := time.Now()
		s := must[*ledger.Snapshot](p.T)(p.store.Read(p.Context(), now.AddDate(0, 0, -1), now)).Statement(p.balances())
		caughtUp := len(s.Payers) == len(p.payers)
		for _, line := range s.Payers {
			caughtUp = caughtUp && *line.Difference == 0
		}
		if caughtUp || pass == 100 {
			return s
		}
	}
}

func TestEveryLamportOnTheChainIsInTheLedger(t *testing.T) {
	t.Parallel()
	unreliable := func(p float64) []fault.Rule {
		return []fault.Rule{
			{Method: "getTransaction", Probability: p, Empty: true},
			{Method: "getTransaction", Probability: p / 2, Status: http.StatusServiceUnavailable},
			{Method: "getSignaturesForAddress", Probability: p, Empty: true},
			{Method: "getSignaturesForAddress", Probability: p, Lag: 2},
		}
	}
	tests := map[string]struct{ first, second []fault.Rule }{
		"two endpoints without a fault":                               {},
		"the first forgets, fails and lags at times":                  {unreliable(0.3), nil},
		"both forget, fail and lag at times":                          {unreliable(0.3), unreliable(0.3)},
		"the first has a short history, the archive forgets at times": {[]fault.Rule{{History: 20}}, unreliable(0.2)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkEveryLamport(t, test.first, test.second)
		})
	}
}

func checkEveryLamport(t *testing.T, first, second []fault.Rule) {
	t.Helper()
	p := newChainFixture(t)
	const sol = solana.LAMPORTS_PER_SOL
	p.fund(p.payers[0], 2*sol)
	p.fund(p.payers[1], sol)
	p.chain.Finalize()
	stale := [32]byte{9}
	for range 3 {
		// In one slot: three transfers that land, a transfer that fails, and an
		// incoming payment.
		p.transfer(p.payers[0], p.root())
		p.fund(p.payers[0], sol/10)
		p.transfer(p.payers[0], p.root())
		p.transfer(p.payers[0], stale)
		p.transfer(p.payers[1], p.root())
		p.chain.Advance(1)
	}
	p.chain.Finalize()
	e := p.endpoints(first, second)
	s := p.statement(e)
	var table strings.Builder
	if err := s.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	if !s.Agrees() {
		t.Errorf("the ledger does not agree with the chain:\n%s", table.String())
	}
	const price = 300 // 300 000 units at 1000 micro-lamports
	got := map[string]ledger.KindLine{}
	for _, k := range s.Kinds {
		name := string(k.Kind) + " of the first"
		if k.Payer == p.payers[1].PublicKey() {
			name = string(k.Kind) + " of the second"
		}
		sum := got[name]
		sum.Transactions += k.Transactions
		sum.Amounts.Fee += k.Fee
		sum.PriorityFee += k.PriorityFee
		sum.Rent += k.Rent
		sum.Received += k.Received
		got[name] = sum
	}
	line := func(n uint64, a ledger.Amounts) ledger.KindLine {
		return ledger.KindLine{Transactions: n, Amounts: a}
	}
	want := map[string]ledger.KindLine{
		"received of the first":  line(4, ledger.Amounts{Received: 2*sol + 3*(sol/10)}),
		"transfer of the first":  line(6, ledger.Amounts{Fee: 30_000, PriorityFee: 6 * price, Rent: 6 * 2 * 650_240}),
		"failed of the first":    line(3, ledger.Amounts{Fee: 15_000, PriorityFee: 3 * price}),
		"received of the second": line(1, ledger.Amounts{Received: sol}),
		"transfer of the second": line(3, ledger.Amounts{Fee: 15_000, PriorityFee: 3 * price, Rent: 3 * 2 * 650_240}),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sums differ (-want +got):\n%s", diff)
	}

	// A stranger with the first key moves lamports to the second payer: both entries show it.
	p.send(p.payers[0], func(hash solana.Hash) *solana.Transaction {
		move := system.NewTransferInstruction(sol/2, p.payers[0].PublicKey(), p.payers[1].PublicKey()).Build()
		return must[*solana.Transaction](t)(solana.NewTransaction([]solana.Instruction{move}, hash, solana.TransactionPayer(p.payers[0].PublicKey())))
	})
	p.chain.Finalize()
	s = p.statement(e)
	for _, line := range s.Payers {
		wantUnknown := uint64(0)
		if line.Payer == p.payers[0].PublicKey() {
			wantUnknown = 1
		}
		if line.Unknown != wantUnknown || *line.Difference != 0 || line.Unexplained != 0 {
			t.Errorf("%+v: want %d unknown, and no difference or unexplained lamports", line, wantUnknown)
		}
	}
	if s.Agrees() {
		t.Error("Agrees is true although a stranger used a payer's key, want false")
	}
}

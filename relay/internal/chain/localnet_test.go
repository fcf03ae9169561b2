package chain_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/trapdoor"
	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/rpc"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// world is a local chain whose slots the test advances, with the relay's clients and a funded
// payer.
type world struct {
	*localnet.Chain
	t      *testing.T
	client *chain.Endpoints
	direct *rpc.Client // without the cache of Endpoints
	pool   *shieldpool.Pool
	reader *chain.PoolReader
	payer  solana.PrivateKey
	keys   *trapdoor.Key
}

func (w *world) history() *chain.History { return &chain.History{Endpoints: w.client} }

func newWorld(t *testing.T, o localnet.Options) *world {
	t.Helper()
	w := &world{t: t, keys: trapdoor.New("chain", shieldpool.SignalCount)}
	var err error
	if o.VerifyingKey, err = w.keys.VerifyingKey(); err != nil {
		t.Fatal(err)
	}
	if w.Chain, err = localnet.New(o); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(w.Chain)
	transport := rpc.NewHTTPClient()
	t.Cleanup(func() {
		w.client.Close()
		transport.CloseIdleConnections()
		server.Close()
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	if w.direct, err = rpc.New(rpc.Options{URL: server.URL, HTTP: transport, Now: time.Now}); err != nil {
		t.Fatal(err)
	}
	w.client, err = chain.NewEndpoints(chain.EndpointsOptions{
		Endpoints: []chain.Endpoint{{Name: "local", URL: server.URL}}, Genesis: localnet.GenesisHash,
		Now: time.Now, Rand: rand.Float64, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	profile := shieldpool.Development()
	if w.pool, err = profile.Pool(profile.Mints[0]); err != nil {
		t.Fatal(err)
	}
	if w.reader, err = chain.NewPool(chain.PoolOptions{Accounts: w.client, Pool: w.pool, Now: time.Now, MinInterval: time.Microsecond}); err != nil {
		t.Fatal(err)
	}
	w.payer = solana.PrivateKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err := w.Fund(w.payer.PublicKey(), 10*solana.LAMPORTS_PER_SOL); err != nil {
		t.Fatal(err)
	}
	w.Finalize()
	return w
}

// inputs returns the public inputs of call n on a root.
func (w *world) inputs(n uint64, root [32]byte, amount int64) *shieldpool.PublicInputs {
	value := func(label string) (out [32]byte) {
		out = sha256.Sum256(binary.LittleEndian.AppendUint64([]byte(label), n))
		out[0] = 0
		return out
	}
	return &shieldpool.PublicInputs{
		Root: root, PublicAmount: amount, MintAddress: w.pool.Mint.Field,
		Nullifiers:  [2][32]byte{value("nullifier 0"), value("nullifier 1")},
		Commitments: [2][32]byte{value("commitment 0"), value("commitment 1")},
	}
}

// sign proves and signs a Transact that the payer pays for.
func (w *world) sign(in *shieldpool.PublicInputs, hash onchain.Blockhash) ([]byte, solana.Signature) {
	w.t.Helper()
	signals := in.Signals()
	proof, err := w.keys.Prove(signals[:], 1)
	if err != nil {
		w.t.Fatal(err)
	}
	tx, err := w.pool.Transaction(w.payer.PublicKey(), &shieldpool.Call{Proof: proof, Inputs: in}, shieldpool.Compute{Limit: 300_000, Price: 1000}, hash.Hash, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	message, err := tx.Message.MarshalBinary()
	if err != nil {
		w.t.Fatal(err)
	}
	signature, err := w.payer.Sign(message)
	if err != nil {
		w.t.Fatal(err)
	}
	tx.Signatures = []solana.Signature{signature}
	raw, err := tx.MarshalBinary()
	if err != nil {
		w.t.Fatal(err)
	}
	return raw, signature
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func (w *world) blockhash() onchain.Blockhash {
	w.t.Helper()
	// client caches the blockhash for a moment, in which the chain may advance by many slots.
	return must[onchain.Blockhash](w.t)(w.direct.LatestBlockhash(w.t.Context()))
}

func (w *world) root() [32]byte {
	w.t.Helper()
	return must[onchain.Root](w.t)(w.reader.Root(w.t.Context(), "")).Root
}

// status returns the signature's status in the recent blocks, or in the whole history.
func (w *world) status(signature solana.Signature, history bool) *onchain.Status {
	w.t.Helper()
	if history {
		return w.search(signature).Statuses[0]
	}
	statuses, _, err := w.client.Statuses(w.t.Context(), []solana.Signature{signature})
	if err != nil {
		w.t.Fatal(err)
	}
	return statuses[0]
}

func (w *world) search(signatures ...solana.Signature) onchain.SearchResult {
	w.t.Helper()
	return must[onchain.SearchResult](w.t)(w.client.Search(w.t.Context(), signatures))
}

func wantSendError(t *testing.T, err error, want *shieldpool.TransactionError) {
	t.Helper()
	var s *onchain.SendError
	if !errors.As(err, &s) {
		t.Fatalf("error is %v, want a send error", err)
	}
	if diff := cmp.Diff(want, s.Err); diff != "" {
		t.Errorf("transaction error differs (-want +got):\n%s", diff)
	}
}

func custom(code uint32) *shieldpool.TransactionError {
	return &shieldpool.TransactionError{Kind: "InstructionError", Instruction: shieldpool.PoolInstruction, Detail: "Custom", Custom: code}
}

const deposit = 50_000_000

func TestPoolIsSeenOnceItIsInitialised(t *testing.T) {
	t.Parallel()
	w := newWorld(t, localnet.Options{})
	_, err := w.reader.Root(t.Context(), "")
	if r, ok := refusal.As(err); !ok || r.Code != refusal.PoolNotInitialised {
		t.Fatalf("error is %v, want pool_not_initialised", err)
	}
	if err := w.Initialize(); err != nil {
		t.Fatal(err)
	}
	w.Finalize()
	s := must[onchain.Snapshot](t)(w.reader.Tree(t.Context(), 0))
	if !s.Checked || s.Tree.NextIndex != 0 {
		t.Errorf("the new tree has %d leaves, checked %v; want 0, true", s.Tree.NextIndex, s.Checked)
	}
}

// TestLifeOfATransaction follows a transaction from its blockhash to finality, with every call
// that the relay makes.
func TestLifeOfATransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t, localnet.Options{Initialised: true})
	ctx := t.Context()
	root := w.root()
	in := w.inputs(1, root, deposit)
	hash := w.blockhash()
	raw, signature := w.sign(in, hash)

	sim := must[onchain.Simulation](t)(w.client.Simulate(ctx, raw, false, hash.Slot))
	if sim.Err != nil || sim.UnitsConsumed < 100_000 || sim.Slot < hash.Slot {
		t.Errorf("simulation is %+v, want a success with at least 100 000 compute units", sim)
	}
	if w.status(signature, true) != nil {
		t.Error("the transaction has a status before it was sent")
	}
	if err := w.client.Send(ctx, raw, onchain.Sending{First: true}, hash.Slot); err != nil {
		t.Fatal(err)
	}
	if s := w.status(signature, false); s == nil || s.Confirmation != onchain.Processed || s.Err != nil {
		t.Fatalf("status is %+v, want processed", s)
	}
	if w.root() != root {
		t.Error("the root changed before the transaction was confirmed")
	}

	w.Advance(localnet.DefaultConfirmAfter + 1)
	landed := w.status(signature, false)
	if landed == nil || landed.Confirmation != onchain.Confirmed {
		t.Fatalf("status is %+v, want confirmed", landed)
	}
	inspection := must[onchain.Inspection](t)(w.reader.Inspect(ctx, in, w.payer.PublicKey(), landed.Slot))
	if inspection.Spent != [2]bool{true, true} || !inspection.RecipientExists || inspection.Slot < landed.Slot {
		t.Errorf("inspection is %+v, want both nullifiers spent and the payer's account", inspection)
	}
	lamports, _, err := w.client.Balance(ctx, w.payer.PublicKey(), landed.Slot)
	if err != nil || lamports != inspection.RecipientLamports || lamports >= 10*solana.LAMPORTS_PER_SOL-deposit {
		t.Errorf("the payer's balance is %d with error %v, want the balance of Inspect (%d), less than before", lamports, err, inspection.RecipientLamports)
	}

	w.Finalize()
	if s := w.status(signature, false); s == nil || s.Confirmation != onchain.Finalized {
		t.Errorf("status is %+v, want finalized", s)
	}
	w.Advance(400)
	if s := w.status(signature, false); s != nil {
		t.Errorf("status without history is %+v, want none after so many blocks", s)
	}
	if s := w.status(signature, true); s == nil || s.Slot != landed.Slot {
		t.Errorf("status with history is %+v, want slot %d", s, landed.Slot)
	}
}

func TestPreflightReadsTheConfirmedState(t *testing.T) {
	t.Parallel()
	w := newWorld(t, localnet.Options{Initialised: true})
	ctx := t.Context()
	in := w.inputs(1, w.root(), deposit)
	raw, _ := w.sign(in, w.blockhash())
	if err := w.client.Send(ctx, raw, onchain.Sending{First: true}, 0); err != nil {
		t.Fatal(err)
	}
	w.Advance(localnet.DefaultConfirmAfter + 1)
	// The deposit is confirmed but not final: its root works for the next proof.
	hash := w.blockhash()
	raw, signature := w.sign(w.inputs(2, w.root(), 0), hash)
	if err := w.client.Send(ctx, raw, onchain.Sending{First: true}, hash.Slot); err != nil {
		t.Fatalf("a proof on the root just confirmed is refused: %v", err)
	}
	// A rebroadcast of the same bytes does not execute the transaction again.
	if err := w.client.Send(ctx, raw, onchain.Sending{}, hash.Slot); err != nil {
		t.Errorf("rebroadcast: %v", err)
	}
	w.Finalize()
	if s := w.status(signature, true); s == nil || s.Err != nil {
		t.Errorf("status is %+v, want a success", s)
	}
	if s := must[onchain.Snapshot](t)(w.reader.Tree(ctx, 0)); s.Tree.NextIndex != 4 || !s.Checked {
		t.Errorf("the tree has %d leaves, checked %v; want 4, true", s.Tree.NextIndex, s.Checked)
	}

	tests := []struct {
		name string
		in   *shieldpool.PublicInputs
		want *shieldpool.TransactionError
	}{
		{"a spent nullifier", in, custom(shieldpool.CodeDoubleSpend)},
		{"an unknown root", w.inputs(3, [32]byte{31: 9}, 0), custom(shieldpool.CodeRootNotFound)},
	}
	for _, test := range tests {
		raw, signature := w.sign(test.in, w.blockhash())
		if sim := must[onchain.Simulation](t)(w.client.Simulate(ctx, raw, true, 0)); cmp.Diff(test.want, sim.Err) != "" {
			t.Errorf("%s: simulation error is %v, want %v", test.name, sim.Err, test.want)
		}
		wantSendError(t, w.client.Send(ctx, raw, onchain.Sending{First: true}, 0), test.want)
		w.Finalize()
		if s := w.status(signature, true); s != nil {
			t.Errorf("%s: status is %+v, want none: preflight refuses the transaction", test.name, s)
		}
	}
	wantSendError(t, w.client.Send(ctx, raw, onchain.Sending{First: true}, 0), &shieldpool.TransactionError{Kind: "AlreadyProcessed"})
}

func TestBlockhashExpires(t *testing.T) {
	t.Parallel()
	w := newWorld(t, localnet.Options{Initialised: true})
	ctx := t.Context()
	hash := w.blockhash()
	raw, signature := w.sign(w.inputs(1, w.root(), deposit), hash)
	w.Skip(20)
	for w.search(signature).FinalizedHeight <= hash.LastValidBlockHeight {
		w.Advance(10)
	}
	wantSendError(t, w.client.Send(ctx, raw, onchain.Sending{First: true}, 0), &shieldpool.TransactionError{Kind: "BlockhashNotFound"})
	found, slot := w.search(signature), must[uint64](t)(w.client.Slot(ctx, onchain.Confirmed))
	if found.FinalizedHeight+20 > found.FinalizedSlot || found.FinalizedSlot > slot || found.Slot < found.FinalizedSlot {
		t.Errorf("search returned %+v at confirmed slot %d, want the finalized height at least 20 below its slot", found, slot)
	}
	if found.Statuses[0] != nil || found.FirstAvailable > hash.Slot {
		t.Errorf("search returned %+v, want an unknown transaction and a history that starts at slot %d or earlier", found, hash.Slot)
	}
	var u *onchain.Unavailable
	if err := w.client.Send(ctx, raw, onchain.Sending{First: true}, slot+1000); !errors.As(err, &u) || u.Kind != onchain.KindNodeBehind {
		t.Errorf("a send to a node behind minContextSlot returned %v, want %s", err, onchain.KindNodeBehind)
	}
}

func TestHistoryOfTheTree(t *testing.T) {
	t.Parallel()
	w := newWorld(t, localnet.Options{Initialised: true})
	ctx := t.Context()
	if got := must[solana.Hash](t)(w.client.GenesisHash(ctx)); got != shieldpool.DevelopmentGenesisHash {
		t.Errorf("genesis hash is %s, want the development one", got)
	}
	// Two transactions in one slot, then one that fails on the chain, then another one.
	var want [][32]byte
	root, signatures := w.root(), make([]solana.Signature, 4)
	send := func(i int, in *shieldpool.PublicInputs, preflight bool) {
		t.Helper()
		raw, signature := w.sign(in, w.blockhash())
		if err := w.client.Send(ctx, raw, onchain.Sending{First: preflight}, 0); err != nil {
			t.Fatal(err)
		}
		signatures[i] = signature
	}
	for i := range 2 {
		in := w.inputs(uint64(i), root, deposit)
		send(i, in, true)
		want = append(want, in.Commitments[0], in.Commitments[1])
	}
	w.Finalize()
	send(2, w.inputs(0, root, deposit), false)
	w.Skip(3)
	last := w.inputs(9, root, deposit)
	send(3, last, true)
	want = append(want, last.Commitments[0], last.Commitments[1])
	w.Finalize()

	infos, err := w.client.SignaturesFor(ctx, w.pool.MerkleTree, onchain.Confirmed, solana.Signature{}, solana.Signature{}, 3)
	if err != nil {
		t.Fatal(err)
	}
	if len(infos) != 3 || infos[0].Signature != signatures[3] || infos[1].Signature != signatures[2] || !infos[1].Failed || infos[0].Failed {
		t.Errorf("the newest three transactions are %+v, want the last, the failed one and a deposit", infos)
	}
	rest := must[[]onchain.SignatureInfo](t)(w.client.SignaturesFor(ctx, w.pool.MerkleTree, onchain.Confirmed, infos[1].Signature, solana.Signature{}, 0))
	if len(rest) != 3 || rest[2].Slot >= rest[1].Slot {
		t.Errorf("the transactions before the failed one are %+v, want the two deposits and Initialize", rest)
	}

	from := rest[2].Slot
	slots := must[[]uint64](t)(w.client.Blocks(ctx, from, infos[0].Slot))
	leaves, failed := w.leaves(slots)
	if diff := cmp.Diff(want, leaves); diff != "" {
		t.Errorf("leaves differ (-want +got):\n%s", diff)
	}
	if failed != 1 {
		t.Errorf("%d failed transactions of the program, want 1", failed)
	}
	tree := must[onchain.Snapshot](t)(w.reader.Tree(ctx, 0)).Tree
	if tree.NextIndex != uint64(len(leaves)) {
		t.Errorf("the tree has %d leaves, but the blocks have %d", tree.NextIndex, len(leaves))
	}

	skipped := infos[1].Slot + 1
	if _, err := w.history().Block(ctx, skipped, w.pool.MerkleTree); !errors.Is(err, onchain.ErrSlotSkipped) {
		t.Errorf("reading the block of a skipped slot returned %v, want ErrSlotSkipped", err)
	}
	if _, err := w.history().Block(ctx, infos[0].Slot+10_000, w.pool.MerkleTree); !errors.Is(err, onchain.ErrUnavailable) {
		t.Errorf("reading the block of a future slot returned %v, want ErrUnavailable", err)
	}
	if fees, err := w.client.PriorityFees(ctx, []solana.PublicKey{w.pool.MerkleTree}); err != nil || len(fees) == 0 {
		t.Errorf("priority fees are %v with error %v, want at least one fee and no error", fees, err)
	}
}

// leaves reads the program's leaves out of blocks, and counts the failed
// transactions that called it.
func (w *world) leaves(slots []uint64) (leaves [][32]byte, failed int) {
	w.t.Helper()
	for _, slot := range slots {
		block := must[*onchain.Block](w.t)(w.history().Block(w.t.Context(), slot, w.pool.MerkleTree))
		for _, tx := range block.Transactions {
			for _, ix := range tx.Instructions {
				if ix.ProgramID != w.pool.Profile.ProgramID || len(ix.Data) < shieldpool.TransactLength {
					continue
				}
				if tx.FeePayer != w.payer.PublicKey() || ix.Accounts[3] != w.pool.MerkleTree {
					w.t.Errorf("instruction at slot %d has the wrong accounts", slot)
				}
				if tx.Failed {
					failed++
					continue
				}
				leaves = append(leaves, w.pool.Profile.Leaves(ix.Data)...)
			}
		}
	}
	return leaves, failed
}

func TestPrunedBlock(t *testing.T) {
	t.Parallel()
	w := newWorld(t, localnet.Options{History: 200})
	w.Advance(300)
	first := w.search(solana.Signature{1}).FirstAvailable
	if first < 2 {
		t.Fatalf("first available block is %d, want a later one", first)
	}
	if _, err := w.history().Block(t.Context(), first-1, w.pool.MerkleTree); !errors.Is(err, onchain.ErrBlockPruned) {
		t.Errorf("reading a block before the history returned %v, want ErrBlockPruned", err)
	}
}

func TestTheBaseFeeOfTheChain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, localnet.Options{})
	r := chain.NewBaseFeeRate(w.client, slog.New(slog.DiscardHandler))
	if err := r.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := (shieldpool.BaseFee{Fixed: shieldpool.SignatureFee}); r.Fee() != want {
		t.Errorf("the base fee is %+v, want %+v", r.Fee(), want)
	}
}

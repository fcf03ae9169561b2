package poolprogram_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/market"
	"github.com/relaypool/relaypool/hack/localnet/poolprogram"
	"github.com/relaypool/relaypool/hack/localnet/token"
	"github.com/relaypool/relaypool/hack/localnet/trapdoor"
	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	walletStart = 1000 * solana.LAMPORTS_PER_SOL
	units       = 400_000
)

// key derives a key pair from a name, so that every run uses the same keys.
func key(name string) solana.PrivateKey {
	seed := sha256.Sum256([]byte(name))
	return solana.PrivateKey(ed25519.NewKeyFromSeed(seed[:]))
}

func address(name string) solana.PublicKey { return key(name).PublicKey() }

// field derives a canonical field element from a label and a number.
func field(label string, n uint64) (f [32]byte) {
	f = sha256.Sum256(binary.LittleEndian.AppendUint64([]byte(label), n))
	f[0] = 0
	return f
}

// world is a chain with the pool program and a funded payer. The test can prove any statement,
// because it has the secrets of the verifying key.
type world struct {
	*bank.Bank
	t     testing.TB
	pool  *shieldpool.Pool
	payer solana.PrivateKey
	calls uint64
}

var secrets = trapdoor.New("pool program", shieldpool.SignalCount)

// secretsKey is the verifying key of secrets. It is parsed once, because the tables of a parsed key
// take longer to compute than a test takes.
var secretsKey = sync.OnceValues(func() (*groth16.Key, error) {
	raw, err := secrets.VerifyingKey()
	if err != nil {
		return nil, err
	}
	return groth16.ParseKey(raw)
})

// emptyWorld is a world without a pool. A nil profile means the development profile, and a nil
// verifyingKey the key of secrets. preset are further accounts at genesis.
func emptyWorld(t testing.TB, profile *shieldpool.Profile, verifyingKey *groth16.Key, preset ...bank.Program) *world {
	t.Helper()
	return limitedWorld(t, bank.BlockLimits{}, profile, verifyingKey, preset...)
}

// limitedWorld is emptyWorld with the given block limits.
func limitedWorld(t testing.TB, limits bank.BlockLimits, profile *shieldpool.Profile, verifyingKey *groth16.Key, preset ...bank.Program) *world {
	t.Helper()
	if profile == nil {
		profile = shieldpool.Development()
	}
	w := &world{t: t, payer: key("payer")}
	var err error
	if verifyingKey == nil {
		if verifyingKey, err = secretsKey(); err != nil {
			t.Fatal(err)
		}
	}
	program, err := poolprogram.New(profile, verifyingKey)
	if err != nil {
		t.Fatal(err)
	}
	if w.pool, err = profile.Pool(profile.Mints[0]); err != nil {
		t.Fatal(err)
	}
	w.Bank, err = bank.New(bank.Options{
		Genesis: sha256.Sum256([]byte("test")), ConfirmAfter: 1, FinalizeAfter: 32, History: 1000,
		Clock:    func() time.Time { return time.Unix(1_700_000_000, 0) },
		Limits:   limits,
		Programs: slices.Concat([]bank.Program{bank.SystemProgram(), bank.ComputeBudgetProgram(), program, market.Program()}, token.Programs(), preset),
		Accounts: swapAccounts(t),
		Faucet:   address("faucet"), FaucetLamports: 1_000_000 * solana.LAMPORTS_PER_SOL,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.fund(w.payer.PublicKey(), walletStart)
	return w
}

// presetPool returns the accounts of a pool with the given tree, as preset of emptyWorld.
func presetPool(t testing.TB, profile *shieldpool.Profile, tree *shieldpool.TreeAccount) []bank.Program {
	t.Helper()
	pool, err := profile.Pool(profile.Mints[0])
	if err != nil {
		t.Fatal(err)
	}
	preset := func(at solana.PublicKey, data []byte) bank.Program {
		return bank.Program{ID: at, Account: bank.Account{
			Lamports: bank.RentExemption(uint64(len(data))), Data: data, Owner: profile.ProgramID}}
	}
	return []bank.Program{
		preset(pool.Address, make([]byte, 32)), preset(pool.MerkleTree, tree.Bytes()), preset(pool.Treasury, nil),
	}
}

// newWorld is a world with an initialised pool that holds a deposit of 100 SOL.
func newWorld(t testing.TB) *world {
	t.Helper()
	w := emptyWorld(t, nil, nil)
	w.initialize()
	w.mustRun(w.call(func(in *shieldpool.PublicInputs, _ *shieldpool.Destination) {
		in.PublicAmount = 100 * int64(solana.LAMPORTS_PER_SOL)
	}))
	return w
}

func (w *world) initialize() {
	w.t.Helper()
	w.fund(address("admin"), solana.LAMPORTS_PER_SOL+bank.RentExemption(uint64(w.pool.Profile.TreeLength())))
	ix, err := w.pool.Initialize(address("admin"))
	if err != nil {
		w.t.Fatal(err)
	}
	if _, failure := w.run(key("admin"), ix); failure != nil {
		w.t.Fatalf("initialise: %v", failure)
	}
}

func (w *world) fund(to solana.PublicKey, lamports uint64) {
	w.t.Helper()
	if _, err := w.run(key("faucet"), system.NewTransferInstruction(lamports, address("faucet"), to).Build()); err != nil {
		w.t.Fatalf("fund: %v", err)
	}
	w.Advance(1)
}

// call makes a call with a valid proof for the current root. It is a transfer unless
// change makes it a deposit, a withdrawal or a swap.
func (w *world) call(change func(*shieldpool.PublicInputs, *shieldpool.Destination)) *shieldpool.Call {
	w.t.Helper()
	w.calls++
	in := &shieldpool.PublicInputs{
		MintAddress:   w.pool.Mint.Field,
		Nullifiers:    [2][32]byte{field("nullifier 0", w.calls), field("nullifier 1", w.calls)},
		Commitments:   [2][32]byte{field("commitment 0", w.calls), field("commitment 1", w.calls)},
		ChainNoteHash: field("chain note", w.calls),
	}
	if tree := w.account(w.pool.MerkleTree); tree != nil {
		in.Root = w.tree().Root
	}
	c := &shieldpool.Call{Inputs: in}
	if change != nil {
		change(in, &c.Destination)
	}
	signals := in.Signals()
	var err error
	if c.Proof, err = secrets.Prove(signals[:], w.calls); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// withdrawal is a change for call that makes a withdrawal of gross lamports.
func withdrawal(gross int64, to solana.PublicKey) func(*shieldpool.PublicInputs, *shieldpool.Destination) {
	return func(in *shieldpool.PublicInputs, d *shieldpool.Destination) {
		d.Recipient = to
		in.PublicAmount = -gross
		in.ExtDataHash = shieldpool.ExtDataHash(*d)
	}
}

func (w *world) instruction(c *shieldpool.Call) *solana.GenericInstruction {
	w.t.Helper()
	ix, err := w.pool.Instruction(w.payer.PublicKey(), c)
	if err != nil {
		w.t.Fatal(err)
	}
	data, err := ix.Data()
	if err != nil {
		w.t.Fatal(err)
	}
	return solana.NewInstruction(ix.ProgramID(), ix.Accounts(), data)
}

// run executes instructions in one transaction of the payer and returns its error.
func (w *world) run(payer solana.PrivateKey, instructions ...solana.Instruction) (*bank.Transaction, *bank.TransactionError) {
	w.t.Helper()
	tx := w.sign(payer, instructions...)
	_, err := w.Submit(tx)
	return tx, err
}

func (w *world) sign(payer solana.PrivateKey, instructions ...solana.Instruction) *bank.Transaction {
	w.t.Helper()
	var hash solana.Hash
	w.Read(bank.Processed, func(v bank.View) { hash, _ = v.LatestBlockhash() })
	limit := binary.LittleEndian.AppendUint32([]byte{2}, units)
	instructions = append([]solana.Instruction{solana.NewInstruction(solana.ComputeBudget, nil, limit)}, instructions...)
	tx, err := solana.NewTransaction(instructions, hash, solana.TransactionPayer(payer.PublicKey()))
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := tx.Sign(func(of solana.PublicKey) *solana.PrivateKey {
		for _, k := range []solana.PrivateKey{payer, w.payer} {
			if k.PublicKey() == of {
				return &k
			}
		}
		return nil
	}); err != nil {
		w.t.Fatal(err)
	}
	raw, err := tx.MarshalBinary()
	if err != nil {
		w.t.Fatal(err)
	}
	decoded, err := bank.DecodeTransaction(raw)
	if err != nil {
		w.t.Fatal(err)
	}
	return decoded
}

func (w *world) mustRun(c *shieldpool.Call) bank.Meta {
	w.t.Helper()
	tx, err := w.run(w.payer, w.instruction(c))
	if err != nil {
		w.t.Fatalf("the call failed: %v\n%v", err, w.meta(tx).Logs)
	}
	return w.meta(tx)
}

func (w *world) meta(tx *bank.Transaction) (meta bank.Meta) {
	w.t.Helper()
	w.Read(bank.Processed, func(v bank.View) {
		landed := v.Transaction(tx.Signature())
		if landed == nil {
			w.t.Fatal("the transaction did not land")
		}
		meta = landed.Meta
	})
	return meta
}

func (w *world) account(at solana.PublicKey) (a *bank.Account) {
	w.Read(bank.Processed, func(v bank.View) { a = v.Account(at) })
	return a
}

func (w *world) balance(of solana.PublicKey) uint64 {
	if a := w.account(of); a != nil {
		return a.Lamports
	}
	return 0
}

func (w *world) tree() *shieldpool.TreeAccount {
	w.t.Helper()
	tree, err := w.pool.Profile.ParseTree(w.account(w.pool.MerkleTree).Data)
	if err != nil {
		w.t.Fatal(err)
	}
	return tree
}

func (w *world) nullifier(c *shieldpool.Call, i int) solana.PublicKey {
	w.t.Helper()
	at, _, err := w.pool.Nullifier(c.Inputs.Nullifiers[i])
	if err != nil {
		w.t.Fatal(err)
	}
	return at
}

// wire is the error as an RPC client receives it, or "null" for a nil error.
func wire(t testing.TB, err *bank.TransactionError) string {
	t.Helper()
	raw, marshalErr := json.Marshal(err)
	if marshalErr != nil {
		t.Fatal(marshalErr)
	}
	return string(raw)
}

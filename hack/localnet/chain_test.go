package localnet_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
	"github.com/gagliardetto/solana-go/rpc"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/trapdoor"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

var secrets = trapdoor.New("localnet", shieldpool.SignalCount)

// key derives a key pair from a name, so that every run uses the same keys.
func key(name string) solana.PrivateKey {
	seed := sha256.Sum256([]byte(name))
	return solana.PrivateKey(ed25519.NewKeyFromSeed(seed[:]))
}

func address(name string) solana.PublicKey { return key(name).PublicKey() }

// fixture is a chain behind HTTP with a funded payer. The test advances its slots. The pool's
// verifying key is the key of secrets unless the options have another.
type fixture struct {
	*localnet.Chain
	*rpc.Client
	t     testing.TB
	url   string
	payer solana.PrivateKey
}

func newFixture(t testing.TB, opts localnet.Options) *fixture {
	t.Helper()
	var err error
	if opts.VerifyingKey == nil {
		if opts.VerifyingKey, err = secrets.VerifyingKey(); err != nil {
			t.Fatal(err)
		}
	}
	if opts.Strangers == 0 {
		opts.Strangers = -1 // tests count the transactions
	}
	chain, err := localnet.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(chain)
	t.Cleanup(func() {
		server.Close()
		if err := chain.Close(); err != nil {
			t.Error(err)
		}
	})
	f := &fixture{Chain: chain, Client: rpc.New(server.URL), t: t, url: server.URL, payer: key("payer")}
	if err := chain.Fund(f.payer.PublicKey(), 1000*solana.LAMPORTS_PER_SOL); err != nil {
		t.Fatal(err)
	}
	chain.Finalize()
	return f
}

// post sends a body and returns the answer's JSON.
func (f *fixture) post(body string) []byte {
	f.t.Helper()
	response, err := http.Post(f.url, "application/json", bytes.NewBufferString(body))
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		f.t.Fatalf("HTTP status %d, want 200", response.StatusCode)
	}
	return raw
}

type answer struct {
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
		Data    json.RawMessage
	}
}

// call makes one JSON-RPC call. params is JSON.
func (f *fixture) call(method, params string) (out answer) {
	f.t.Helper()
	raw := f.post(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`)
	if err := json.Unmarshal(raw, &out); err != nil {
		f.t.Fatalf("%s: %v", raw, err)
	}
	return out
}

func (f *fixture) blockhash(c rpc.CommitmentType) solana.Hash {
	f.t.Helper()
	out, err := f.GetLatestBlockhash(context.Background(), c)
	if err != nil {
		f.t.Fatal(err)
	}
	return out.Value.Blockhash
}

// sign makes a transaction that the payer signs.
func (f *fixture) sign(hash solana.Hash, instructions ...solana.Instruction) *solana.Transaction {
	f.t.Helper()
	tx, err := solana.NewTransaction(instructions, hash, solana.TransactionPayer(f.payer.PublicKey()))
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := tx.Sign(func(solana.PublicKey) *solana.PrivateKey { return &f.payer }); err != nil {
		f.t.Fatal(err)
	}
	return tx
}

func (f *fixture) transfer(lamports uint64) solana.Instruction {
	return system.NewTransferInstruction(lamports, f.payer.PublicKey(), address("to")).Build()
}

// send sends a transaction with preflight at processed. The node must accept it.
func (f *fixture) send(tx *solana.Transaction) solana.Signature {
	f.t.Helper()
	signature, err := f.SendTransactionWithOpts(context.Background(), tx, rpc.TransactionOpts{PreflightCommitment: rpc.CommitmentProcessed})
	if err != nil {
		f.t.Fatal(err)
	}
	return signature
}

func unitPrice(microLamports uint64) solana.Instruction {
	return solana.NewInstruction(solana.ComputeBudget, nil, binary.LittleEndian.AppendUint64([]byte{3}, microLamports))
}

func unitLimit(units uint32) solana.Instruction {
	return solana.NewInstruction(solana.ComputeBudget, nil, binary.LittleEndian.AppendUint32([]byte{2}, units))
}

// pool is the development profile's pool.
func pool(t testing.TB) *shieldpool.Pool {
	t.Helper()
	profile := shieldpool.Development()
	p, err := profile.Pool(profile.Mints[0])
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// transact makes a Transact with a valid proof for root. The nullifiers and commitments depend on n.
func transact(t testing.TB, p *shieldpool.Pool, payer solana.PublicKey, root [32]byte, n uint64, amount int64, to solana.PublicKey) solana.Instruction {
	t.Helper()
	label := func(text string) (out [32]byte) {
		out = sha256.Sum256(binary.LittleEndian.AppendUint64([]byte(text), n))
		out[0] = 0
		return out
	}
	c := &shieldpool.Call{
		Destination: shieldpool.Destination{Recipient: to},
		Inputs: &shieldpool.PublicInputs{
			Root: root, PublicAmount: amount, MintAddress: p.Mint.Field,
			Nullifiers:  [2][32]byte{label("nullifier 0"), label("nullifier 1")},
			Commitments: [2][32]byte{label("commitment 0"), label("commitment 1")},
		},
	}
	if amount < 0 {
		c.Inputs.ExtDataHash = shieldpool.ExtDataHash(c.Destination)
	}
	signals := c.Inputs.Signals()
	var err error
	if c.Proof, err = secrets.Prove(signals[:], n); err != nil {
		t.Fatal(err)
	}
	ix, err := p.Instruction(payer, c)
	if err != nil {
		t.Fatal(err)
	}
	return ix
}

// tree reads the tree account.
func (f *fixture) tree(p *shieldpool.Pool, c rpc.CommitmentType) *shieldpool.TreeAccount {
	f.t.Helper()
	out, err := f.GetAccountInfoWithOpts(context.Background(), p.MerkleTree, &rpc.GetAccountInfoOpts{Commitment: c, Encoding: solana.EncodingBase64})
	if err != nil {
		f.t.Fatal(err)
	}
	tree, err := p.Profile.ParseTree(out.GetBinary())
	if err != nil {
		f.t.Fatal(err)
	}
	return tree
}

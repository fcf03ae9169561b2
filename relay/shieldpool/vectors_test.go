package shieldpool

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"os"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"
)

// snarkjsProof is one entry of testdata/snarkjs_proofs.json.
type snarkjsProof struct {
	PublicSignals   []string `json:"publicSignals"`
	PublicAmount    int64    `json:"public_amount"`
	ProofBytesHex   string   `json:"proof_bytes_hex"`
	PublicInputsHex string   `json:"public_inputs_hex"`
}

// solanaVectors is testdata/solana.json.
type solanaVectors struct {
	SignIn struct {
		MessageHex    string `json:"message_hex"`
		MessageSHA256 string `json:"message_sha256"`
	} `json:"sign_in"`
	PDAs     map[string]json.RawMessage `json:"pdas"`
	Transact struct {
		PayerSecretKey        []int  `json:"payer_secret_key_json"`
		Recipient             string `json:"recipient"`
		Blockhash             string `json:"blockhash"`
		Size                  int    `json:"size"`
		TransactionBase64     string `json:"transaction_base64"`
		InstructionDataSHA256 string `json:"instruction_data_sha256"`
	} `json:"transact"`
}

func load[T any](t testing.TB, name string) (out T) {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func solPool(t testing.TB) *Pool {
	t.Helper()
	p := ShieldPoolV1()
	pool, err := p.Pool(p.Mints[0])
	if err != nil {
		t.Fatal(err)
	}
	return pool
}

func TestPublicInputsAgreeWithSnarkjs(t *testing.T) {
	t.Parallel()
	for _, v := range load[[]snarkjsProof](t, "snarkjs_proofs.json") {
		raw := unhex(t, v.PublicInputsHex)
		in, err := ParsePublicInputs(raw)
		if err != nil {
			t.Fatal(err)
		}
		if in.PublicAmount != v.PublicAmount {
			t.Errorf("public amount is %d, want %d", in.PublicAmount, v.PublicAmount)
		}
		if !bytes.Equal(in.Bytes(), raw) {
			t.Error("decoding and encoding changes the bytes")
		}
		for i, s := range in.Signals() {
			if got := new(big.Int).SetBytes(s[:]).String(); got != v.PublicSignals[i] {
				t.Errorf("signal %d is %s, want %s", i, got, v.PublicSignals[i])
			}
		}
		if _, ok := ShieldPoolV1().MintByField(in.MintAddress); !ok {
			t.Error("the mint of circom clients is not in the profile")
		}
	}
}

func TestAddressesAgreeWithWeb3(t *testing.T) {
	t.Parallel()
	v, pool := load[solanaVectors](t, "solana.json"), solPool(t)
	in, err := ParsePublicInputs(unhex(t, load[[]snarkjsProof](t, "snarkjs_proofs.json")[2].PublicInputsHex))
	if err != nil {
		t.Fatal(err)
	}
	derive := func(seeds []Seed, nullifier [32]byte) (solana.PublicKey, uint8) {
		key, bump, err := pool.derive(seeds, nullifier[:])
		if err != nil {
			t.Fatal(err)
		}
		return key, bump
	}
	s := pool.Profile.Seeds
	for name, got := range map[string]func() (solana.PublicKey, uint8){
		"pool":        func() (solana.PublicKey, uint8) { return derive(s.Pool, [32]byte{}) },
		"merkle_tree": func() (solana.PublicKey, uint8) { return derive(s.MerkleTree, [32]byte{}) },
		"treasury":    func() (solana.PublicKey, uint8) { return derive(s.Treasury, [32]byte{}) },
		"swap_state":  func() (solana.PublicKey, uint8) { return derive(s.SwapState, in.Nullifiers[0]) },
		"nullifier0":  func() (solana.PublicKey, uint8) { return derive(s.Nullifier, in.Nullifiers[0]) },
		"nullifier1":  func() (solana.PublicKey, uint8) { return derive(s.Nullifier, in.Nullifiers[1]) },
	} {
		key, bump := got()
		var pair []any
		if json.Unmarshal(v.PDAs[name], &pair) == nil {
			if pair[0] != key.String() || pair[1] != float64(bump) {
				t.Errorf("%s is %s, bump %d, want %v", name, key, bump, pair)
			}
			continue
		}
		var want string
		if err := json.Unmarshal(v.PDAs[name], &want); err != nil || want != key.String() {
			t.Errorf("%s is %s, want %s (%v)", name, key, want, err)
		}
	}
	if pool.Address.String() != "3LXJBnZqS85UumKKw98SjKZFhtBhExiBXkdEDL1doWWA" {
		t.Errorf("the pool's address is %s, which is not the one in public logs", pool.Address)
	}
}

func TestSeedsMayContainMintAndPool(t *testing.T) {
	t.Parallel()
	p := ShieldPoolV1()
	p.Seeds.Pool = append(p.Seeds.Pool, Seed{Value: SeedMint})
	p.Seeds.Nullifier = []Seed{{Literal: "nullifier"}, {Value: SeedPool}, {Value: SeedNullifier}}
	a, err := p.Pool(p.Mints[0])
	if err != nil {
		t.Fatal(err)
	}
	b, err := p.Pool(Mint{Address: solana.SystemProgramID})
	if err != nil {
		t.Fatal(err)
	}
	na, _, errA := a.Nullifier([32]byte{1})
	nb, _, errB := b.Nullifier([32]byte{1})
	if errA != nil || errB != nil || a.Address == b.Address || na == nb {
		t.Errorf("two mints share an address: pools %s %s, nullifiers %s %s (%v, %v)", a.Address, b.Address, na, nb, errA, errB)
	}
	p.Seeds.Pool = []Seed{{Value: "moon"}}
	if _, err := p.Pool(p.Mints[0]); err == nil {
		t.Error("a seed of an unknown value was derived")
	}
}

// TestTransactAgreesWithWeb3 compares resolved instructions, because web3.js orders account
// keys of equal rank by their text.
func TestTransactAgreesWithWeb3(t *testing.T) {
	t.Parallel()
	v, proof := load[solanaVectors](t, "solana.json"), load[[]snarkjsProof](t, "snarkjs_proofs.json")[2]
	pool := solPool(t)
	in, err := ParsePublicInputs(unhex(t, proof.PublicInputsHex))
	if err != nil {
		t.Fatal(err)
	}
	secret := make(solana.PrivateKey, 64)
	for i, b := range v.Transact.PayerSecretKey {
		secret[i] = byte(b)
	}
	call := &Call{Proof: unhex(t, proof.ProofBytesHex), Inputs: in, Destination: Destination{Recipient: solana.MustPublicKeyFromBase58(v.Transact.Recipient)}}
	relayTx, err := pool.Transaction(secret.PublicKey(), call, Compute{Limit: 400_000, Price: 10_000}, solana.MustHashFromBase58(v.Transact.Blockhash), nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(v.Transact.TransactionBase64)
	if err != nil {
		t.Fatal(err)
	}
	web3Tx, err := solana.TransactionFromBytes(raw)
	if err != nil {
		t.Fatal(err)
	}
	if err := web3Tx.VerifySignatures(); err != nil {
		t.Errorf("the vector's signature does not verify: %v", err)
	}
	if len(raw) != v.Transact.Size {
		t.Errorf("the vector has %d bytes, want its size %d", len(raw), v.Transact.Size)
	}
	if diff := cmp.Diff(resolveInstructions(t, web3Tx), resolveInstructions(t, relayTx)); diff != "" {
		t.Errorf("the transactions differ (-web3 +relay):\n%s", diff)
	}
	data, err := pool.Profile.Data(call)
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != v.Transact.InstructionDataSHA256 {
		t.Error("instruction data has another hash than the vector's")
	}
	parsed, err := pool.Profile.ParseData(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(call.Inputs, parsed.Inputs); diff != "" || !bytes.Equal(parsed.Proof, call.Proof) || parsed.Swap != nil || parsed.Notes != nil {
		t.Errorf("decoding instruction data returns another call: %s", diff)
	}
	if leaves := pool.Profile.Leaves(data); len(leaves) != 2 || leaves[0] != in.Commitments[0] || leaves[1] != in.Commitments[1] {
		t.Errorf("the data has %d leaves, want the two commitments in order", len(leaves))
	}
}

// resolvedInstruction is an instruction with its account indexes resolved to addresses.
type resolvedInstruction struct {
	Program  string
	Accounts []string
	Data     string
}

func resolveInstructions(t *testing.T, tx *solana.Transaction) (out []resolvedInstruction) {
	t.Helper()
	for _, ix := range tx.Message.Instructions {
		program, err := tx.Message.Program(ix.ProgramIDIndex)
		if err != nil {
			t.Fatal(err)
		}
		m := resolvedInstruction{Program: program.String(), Data: hex.EncodeToString(ix.Data)}
		accounts, err := ix.ResolveInstructionAccounts(&tx.Message)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range accounts {
			flags := ""
			if a.IsSigner {
				flags += " signer"
			}
			if a.IsWritable {
				flags += " writable"
			}
			m.Accounts = append(m.Accounts, a.PublicKey.String()+flags)
		}
		out = append(out, m)
	}
	return out
}

func TestSignInMessageIsTheOneThatWalletsSign(t *testing.T) {
	t.Parallel()
	v := load[solanaVectors](t, "solana.json").SignIn
	if got := hex.EncodeToString([]byte(DefaultSignInMessage)); got != v.MessageHex {
		t.Errorf("sign-in message is %s, want %s", got, v.MessageHex)
	}
	if sum := sha256.Sum256([]byte(DefaultSignInMessage)); hex.EncodeToString(sum[:]) != v.MessageSHA256 || len(DefaultSignInMessage) != 132 {
		t.Errorf("sign-in message has %d bytes or another hash", len(DefaultSignInMessage))
	}
}

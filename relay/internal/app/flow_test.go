package app

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/wallet"
	"github.com/relaypool/relaypool/hack/wallet/wallettest"
	"github.com/relaypool/relaypool/relay/merkle"
	"github.com/relaypool/relaypool/relay/poolcheck"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// client is a wallet with notes in the pool. It proves with the real circuit.
type client struct {
	*fixture
	prover *wallet.Prover
	mint   fr.Element
}

// leaves returns GET /commitments once the root of these leaves equals GET /merkle-root.
func (c *client) leaves(atLeast int) []fr.Element {
	c.t.Helper()
	var out []fr.Element
	eventually(c.t, "the relay serves all commitments", func() bool {
		a := c.call(http.MethodGet, "/commitments", nil)
		list, _ := a.body["commitments"].([]any)
		tree := merkle.NewTree()
		out = nil
		for _, entry := range list {
			raw, err := hex.DecodeString(entry.(map[string]any)["commitment"].(string))
			must(c.t, err)
			leaf, err := merkle.FromBytes([32]byte(raw))
			must(c.t, err)
			must(c.t, tree.Append(&leaf))
			out = append(out, leaf)
		}
		root, want := tree.Root(), c.call(http.MethodGet, "/merkle-root", nil)
		b := merkle.Bytes(&root)
		return len(out) >= atLeast && want.body["root"] == hex.EncodeToString(b[:])
	})
	return out
}

func (c *client) note(amount uint64) wallet.Note {
	c.t.Helper()
	n, err := wallet.NewNote(randomness, amount, c.mint)
	must(c.t, err)
	return n
}

func (c *client) prove(s wallet.Spend) (proof, inputs []byte) {
	c.t.Helper()
	s.Mint, s.At = c.mint, time.Now()
	w, err := s.Witness(randomness)
	must(c.t, err)
	p, in, _, err := c.prover.Prove(c.t.Context(), w)
	must(c.t, err)
	return p[:], in[:]
}

// fund deposits one or two notes of the given amounts and finds their leaf indices.
func (c *client) fund(amounts ...uint64) []wallet.Note {
	c.t.Helper()
	var notes []wallet.Note
	var sum int64
	for _, a := range amounts {
		notes = append(notes, c.note(a))
		sum += int64(a)
	}
	before := c.leaves(0)
	proof, raw := c.prove(wallet.Spend{Outputs: notes, PublicAmount: sum, Leaves: before})
	in, err := shieldpool.ParsePublicInputs(raw)
	must(c.t, err)
	c.deposit(&shieldpool.Call{Proof: proof, Inputs: in})
	c.locate(notes, len(before)+2)
	return notes
}

func (c *client) locate(notes []wallet.Note, atLeast int) []fr.Element {
	c.t.Helper()
	leaves := c.leaves(atLeast)
	for i := range notes {
		must(c.t, notes[i].Locate(leaves))
	}
	return leaves
}

// TestDepositWithdrawAndTransfer makes with real proofs: a deposit, a registration, a
// withdrawal, its repeat, a double spend, an asynchronous withdrawal and a transfer.
func TestDepositWithdrawAndTransfer(t *testing.T) {
	t.Parallel()
	prover := wallettest.Prover(t)
	vk, err := prover.VerificationKey(t.Context())
	must(t, err)
	c := &client{fixture: newFixture(t, fixtureOptions{vk: vk}), prover: prover}
	c.mint, err = merkle.FromBytes(c.pool.Mint.Field)
	must(t, err)
	notes := c.fund(sol, 2*sol)
	c.register()
	eventually(t, "the relay has reached its chain", func() bool { return c.call(http.MethodGet, "/health", nil).body["status"] == "ok" })

	t.Log("withdraw")
	to := newKey(t).PublicKey()
	withdraw := wallet.Spend{
		Inputs: notes[:1], Outputs: []wallet.Note{c.note(sol / 2)}, PublicAmount: -sol / 2,
		ExtDataHash: wallet.ExtDataHash(to), Leaves: c.leaves(2),
	}
	proof, in := c.prove(withdraw)
	body := submissionBody(proof, in, map[string]any{"recipient": to.String(), "encrypted_notes": []string{base64.StdEncoding.EncodeToString([]byte("for the recipient"))}})
	treasury := c.balance(c.pool.Treasury)
	a := c.call(http.MethodPost, "/transact", body, "Idempotency-Key", "one")
	if a.status != http.StatusOK || a.at("success") != true || a.at("data", "status") != "completed" {
		t.Fatalf("the withdrawal is answered %d %v, want it accepted", a.status, a.body)
	}
	// The answer leaves them out while the block cannot be read, as on a loaded machine.
	eventually(t, "the withdrawal has the leaves 2 and 3", func() bool {
		leaves, _ := c.call(http.MethodGet, fmt.Sprint("/status/", a.at("data", "request_id")), nil).at("data", "leaf_indices").([]any)
		return len(leaves) == 2 && leaves[0] == 2.0 && leaves[1] == 3.0
	})
	const fee = 5_000_000 + sol/2*3/1000
	if got := c.balance(to); got != sol/2-fee {
		t.Errorf("the recipient has %d lamports, want %d", got, sol/2-fee)
	}
	if got := c.balance(c.pool.Treasury) - treasury; got != fee {
		t.Errorf("the treasury got %d lamports, want %d", got, fee)
	}
	if again := c.call(http.MethodPost, "/transact", body); again.status != http.StatusOK || again.at("data", "signature") != a.at("data", "signature") {
		t.Errorf("the repeat is answered %d %v, want 200 and the same signature", again.status, again.body)
	}

	t.Log("spend the same note again")
	withdraw.Outputs, withdraw.Leaves = []wallet.Note{c.note(sol / 2)}, c.leaves(4)
	proof, in = c.prove(withdraw)
	wantRefused(t, c.call(http.MethodPost, "/transact", submissionBody(proof, in, map[string]any{"recipient": to.String()})), http.StatusConflict, "nullifier_reserved", "nullifier 0")

	t.Log("withdraw asynchronously")
	change := []wallet.Note{c.note(sol)}
	recipient := newKey(t).PublicKey()
	proof, in = c.prove(wallet.Spend{
		Inputs: notes[1:], Outputs: change, PublicAmount: -sol, ExtDataHash: wallet.ExtDataHash(recipient), Leaves: c.leaves(4), Unused: true,
	})
	a = c.call(http.MethodPost, "/withdraw", submissionBody(proof, in, map[string]any{"recipient": recipient.String()}))
	if a.status != http.StatusAccepted || a.at("data", "status") != "queued" {
		t.Fatalf("the withdrawal is answered %d %v, want it accepted", a.status, a.body)
	}
	path := a.header.Get("Location")
	eventually(t, "the withdrawal is completed and finalized", func() bool {
		a = c.call(http.MethodGet, path, nil)
		return a.at("data", "status") == "completed" && a.at("data", "finalized") == true
	})
	if a.at("data", "tx_id") != a.at("data", "solana_signature") || a.at("data", "error") != nil || c.balance(recipient) != sol-8_000_000 {
		t.Errorf("the withdrawal's status is %v and the recipient has %d lamports, want %d", a.body, c.balance(recipient), sol-8_000_000)
	}

	t.Log("transfer")
	leaves := c.locate(change, 6)
	proof, in = c.prove(wallet.Spend{Inputs: change, Outputs: []wallet.Note{c.note(sol / 4), c.note(sol * 3 / 4)}, Leaves: leaves})
	a = c.call(http.MethodPost, "/transact", submissionBody(proof, in, nil), "Prefer", "wait=30")
	if a.status != http.StatusOK || a.header.Get("Preference-Applied") != "wait=30" {
		t.Fatalf("the transfer is answered %d %v, want 200 after a wait", a.status, a.body)
	}
	c.leaves(8)
}

// register registers viewing keys with a wallet's signature, one of them with an identifier.
func (c *client) register() {
	c.t.Helper()
	public, private, err := ed25519.GenerateKey(randomness)
	must(c.t, err)
	body := map[string]any{
		"user_pubkey": solana.PublicKeyFromBytes(public).String(), "viewing_key": hex.EncodeToString(make([]byte, 32)),
		"signature": base64.StdEncoding.EncodeToString(ed25519.Sign(private, []byte(shieldpool.DefaultSignInMessage))),
	}
	for range 2 {
		a := c.call(http.MethodPost, "/viewing-key/register", body)
		if a.status != http.StatusOK || a.at("data", "registered") != true {
			c.t.Fatalf("the registration is answered %d %v, want 200 and a registered key", a.status, a.body)
		}
	}
	body["identifier"], body["viewing_key"] = hex.EncodeToString(append([]byte{9}, make([]byte, 31)...)), hex.EncodeToString(append([]byte{1}, make([]byte, 31)...))
	if a := c.call(http.MethodPost, "/viewing-key/register", body); a.status != http.StatusOK {
		c.t.Fatalf("with an identifier: answered %d %v, want 200", a.status, a.body)
	}
	body["viewing_key"] = hex.EncodeToString(append([]byte{2}, make([]byte, 31)...))
	wantRefused(c.t, c.call(http.MethodPost, "/viewing-key/register", body), http.StatusConflict, "identifier_conflict")
}

// TestDevelopmentKeyMatchesTheCircuit checks the hash constant and the committed key.
func TestDevelopmentKeyMatchesTheCircuit(t *testing.T) {
	t.Parallel()
	committed, err := os.ReadFile(filepath.Join("..", "..", "..", "hack", "circuit", "verification_key.json"))
	must(t, err)
	prover := wallettest.Prover(t)
	if prover.KeySHA256 != poolcheck.DevelopmentKeyHash {
		t.Errorf("the circuit's key has hash %s, the constant is %s", prover.KeySHA256, poolcheck.DevelopmentKeyHash)
	}
	circuitKey, err := prover.VerificationKey(t.Context())
	must(t, err)
	var a, b any
	must(t, json.Unmarshal(committed, &a))
	must(t, json.Unmarshal(circuitKey, &b))
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("the committed key differs from the circuit's (-committed +circuit):\n%s", diff)
	}
}

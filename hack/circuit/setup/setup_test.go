package setup

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/consensys/gnark-crypto/ecc"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
	groth16 "github.com/consensys/gnark/backend/groth16/bn254"
	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/logger"

	"github.com/relaypool/relaypool/hack/circuit/transaction"
	"github.com/relaypool/relaypool/hack/circuit/transaction/transactiontest"
)

// wantKey is the hash of the development key in the relay.
const wantKey = "d58edc9120ff01466120c4e6a494420c33009abcf7b5c2f9d1ba38ad41ecae33"

func TestMain(m *testing.M) {
	logger.Disable() // gnark's log lines would hide the tests' output
	os.Exit(m.Run())
}

// TestKeys runs its steps one after the other on one cache folder, because a set-up takes seconds.
func TestKeys(t *testing.T) {
	cache := t.TempDir()
	load := func(t *testing.T) (*Keys, string) {
		t.Helper()
		var progress strings.Builder
		keys, err := Load(cache, &progress)
		if err != nil {
			t.Fatal(err)
		}
		return keys, progress.String()
	}

	made, progress := load(t)
	if !strings.Contains(progress, "making them") {
		t.Errorf("with an empty cache Load reports %q, want that it makes the keys", progress)
	}
	t.Run("the verifying key is the published key", func(t *testing.T) {
		hash := Hash(made.Verifying)
		if got := hex.EncodeToString(hash[:]); got != wantKey {
			t.Errorf("hash %s, want %s: the circuit, the seed or gnark changed, so that the relay has another key", got, wantKey)
		}
		got, err := SnarkJS(made.Verifying)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile("../verification_key.json")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Error("hack/circuit/verification_key.json is stale: rewrite it with go run . vk")
		}
	})
	t.Run("the cached keys make valid proofs", func(t *testing.T) {
		cached, progress := load(t)
		if progress != "" {
			t.Errorf("with cached keys Load reports %q, want nothing", progress)
		}
		proveAndVerify(t, cached, made.Verifying)
	})
	t.Run("damaged keys are made again", func(t *testing.T) {
		paths, err := filepath.Glob(filepath.Join(cache, "*", "*"))
		if err != nil || len(paths) != 1 {
			t.Fatalf("the cache has %d files, error %v; want 1 file", len(paths), err)
		}
		whole, err := os.ReadFile(paths[0])
		if err != nil {
			t.Fatal(err)
		}
		for name, content := range map[string][]byte{"empty": {}, "truncated": whole[:len(whole)-1]} {
			if err := os.WriteFile(paths[0], content, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := read(paths[0]); err == nil {
				t.Errorf("an %s file was read without an error", name)
			}
		}
		flipped := bytes.Clone(whole)
		flipped[len(flipped)/2] ^= 1
		if err := os.WriteFile(paths[0], flipped, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, progress := load(t); !strings.Contains(progress, "unusable") || !strings.Contains(progress, "making them again") {
			t.Errorf("with a damaged file Load reports %q, want that it makes the keys again", progress)
		}
		again, err := os.ReadFile(paths[0])
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(again, whole) {
			t.Error("the second set-up made other keys, want the same")
		}
	})
}

func proveAndVerify(t *testing.T, keys *Keys, vk *groth16.VerifyingKey) {
	t.Helper()
	l := transactiontest.New(t)
	w := l.Spend([2]transaction.WitnessInput{l.Note(100), l.Dummy()}, [2]uint64{40, 0}, -60)
	assignment, err := w.Assign()
	if err != nil {
		t.Fatal(err)
	}
	wire, err := keys.Prove(assignment)
	if err != nil {
		t.Fatal(err)
	}
	var proof groth16.Proof
	if err := decode(&proof, wire); err != nil {
		t.Fatal(err)
	}
	full, err := frontend.NewWitness(assignment, ecc.BN254.ScalarField(), frontend.PublicOnly())
	if err != nil {
		t.Fatal(err)
	}
	public, ok := full.Vector().(fr.Vector)
	if !ok {
		t.Fatalf("public witness is a %T", full.Vector())
	}
	if err := groth16.Verify(&proof, vk, public); err != nil {
		t.Errorf("verify the proof: %v", err)
	}
	one := fr.One()
	public[3].Add(&public[3], &one)
	if err := groth16.Verify(&proof, vk, public); err == nil {
		t.Error("the proof is valid for another mint")
	}

	w.PublicAmount = "-61"
	if assignment, err = w.Assign(); err != nil {
		t.Fatal(err)
	}
	_, err = keys.Prove(assignment)
	if err == nil || !strings.Contains(err.Error(), "breaks a rule of the circuit") {
		t.Errorf("a withdrawal above the balance: error %v, want that it breaks a rule of the circuit", err)
	}
}

func decode(proof *groth16.Proof, wire [ProofSize]byte) error {
	if _, err := proof.Ar.SetBytes(wire[:64]); err != nil {
		return err
	}
	if _, err := proof.Bs.SetBytes(wire[64:192]); err != nil {
		return err
	}
	_, err := proof.Krs.SetBytes(wire[192:])
	return err
}

func TestCheckRejectsKeysOfOtherSecrets(t *testing.T) {
	circuit, err := Compile()
	if err != nil {
		t.Fatal(err)
	}
	keys, err := Make(circuit, "another seed")
	if err != nil {
		t.Fatal(err)
	}
	trapdoor, err := DeriveTrapdoor("another seed")
	if err != nil {
		t.Fatal(err)
	}
	one := fr.One()
	for name, secret := range map[string]func(*Trapdoor) *fr.Element{
		"tau":   func(d *Trapdoor) *fr.Element { return &d.Tau },
		"alpha": func(d *Trapdoor) *fr.Element { return &d.Alpha },
		"beta":  func(d *Trapdoor) *fr.Element { return &d.Beta },
		"gamma": func(d *Trapdoor) *fr.Element { return &d.Gamma },
		"delta": func(d *Trapdoor) *fr.Element { return &d.Delta },
	} {
		wrong := trapdoor
		e := secret(&wrong)
		e.Add(e, &one)
		if check(keys.Proving, keys.Verifying, wrong) == nil {
			t.Errorf("check accepts keys with another %s, want an error", name)
		}
	}
}

package wallet_test

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"math"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/wallet"
	"github.com/relaypool/relaypool/hack/wallet/wallettest"
	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/merkle"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func mint(t *testing.T) fr.Element {
	t.Helper()
	e, err := merkle.FromBytes(shieldpool.Development().Mints[0].Field)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func note(t *testing.T, amount uint64) wallet.Note {
	t.Helper()
	n, err := wallet.NewNote(rand.Reader, amount, mint(t))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// pool returns leaves with the commitments of the notes after three other leaves, and sets the
// notes' indices.
func pool(t *testing.T, notes ...*wallet.Note) []fr.Element {
	t.Helper()
	leaves := []fr.Element{fr.NewElement(11), fr.NewElement(12), fr.NewElement(13)}
	for _, n := range notes {
		leaves = append(leaves, n.Commitment())
	}
	for _, n := range notes {
		if err := n.Locate(leaves); err != nil {
			t.Fatal(err)
		}
	}
	return leaves
}

func witness(t *testing.T, s wallet.Spend) *wallet.Witness {
	t.Helper()
	w, err := s.Witness(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// proves makes a proof, checks it with the relay's verifier and returns the public inputs, parsed
// as in the relay.
func proves(t *testing.T, w *wallet.Witness) *shieldpool.PublicInputs {
	t.Helper()
	prover := wallettest.Prover(t)
	proofBytes, public, took, err := prover.Prove(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	if took <= 0 {
		t.Errorf("the proof took %v, want more than 0", took)
	}
	if !bytes.Equal(public[:], w.PublicInputs.Bytes()) {
		t.Error("the prover returned other public inputs than the witness has")
	}
	in, err := shieldpool.ParsePublicInputs(public[:])
	if err != nil {
		t.Fatal(err)
	}
	keyJSON, err := prover.VerificationKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	key, err := groth16.ParseKey(keyJSON)
	if err != nil {
		t.Fatal(err)
	}
	if hash := key.Hash(); hex.EncodeToString(hash[:]) != prover.KeySHA256 {
		t.Error("the relay and the prover have different hashes of the verifying key")
	}
	proof, err := groth16.ParseProof(proofBytes[:])
	if err != nil {
		t.Fatal(err)
	}
	signals := in.Signals()
	encoding, err := key.Verify(proof, signals[:])
	if err != nil || encoding != groth16.Plain {
		t.Errorf("the relay's verifier: encoding %v, error %v; want a valid plain proof", encoding, err)
	}
	return in
}

func TestDepositAndWithdrawal(t *testing.T) {
	t.Parallel()
	// A deposit into an empty pool.
	mine := note(t, 1_000_000_000)
	in := proves(t, witness(t, wallet.Spend{
		Outputs: []wallet.Note{mine}, PublicAmount: 1_000_000_000, Mint: mint(t), At: noon,
	}))
	emptyRoot, commitment, mintField := merkle.Zero(merkle.Height), mine.Commitment(), mint(t)
	want := &shieldpool.PublicInputs{
		Root:         merkle.Bytes(&emptyRoot),
		PublicAmount: 1_000_000_000,
		MintAddress:  merkle.Bytes(&mintField),
		Commitments:  [2][32]byte{merkle.Bytes(&commitment), in.Commitments[1]},
		Nullifiers:   in.Nullifiers, ChainNoteHash: in.ChainNoteHash,
	}
	if diff := cmp.Diff(want, in); diff != "" {
		t.Errorf("the deposit's public inputs (-want +got):\n%s", diff)
	}
	if err := in.CheckNullifiers(); err != nil || !in.HasNullifier(0) || !in.HasNullifier(1) {
		t.Errorf("the dummy inputs' nullifiers: error %v, want two different nullifiers", err)
	}

	// The deposit's two commitments are now leaves. Withdraw a part of the deposit.
	var leaves []fr.Element
	for _, b := range in.Commitments {
		leaf, err := merkle.FromBytes(b)
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, leaf)
	}
	if err := mine.Locate(leaves); err != nil {
		t.Fatal(err)
	}
	recipient := solana.NewWallet().PublicKey()
	change := note(t, 400_000_000)
	in = proves(t, witness(t, wallet.Spend{
		Inputs: []wallet.Note{mine}, Outputs: []wallet.Note{change}, PublicAmount: -600_000_000,
		ExtDataHash: wallet.ExtDataHash(recipient), Mint: mint(t), Leaves: leaves, At: noon, Unused: true,
	}))
	root, nullifier, commitment := merkle.Hash2(&leaves[0], &leaves[1]), mine.Nullifier(), change.Commitment()
	for level := 1; level < merkle.Height; level++ {
		zero := merkle.Zero(level)
		root = merkle.Hash2(&root, &zero)
	}
	want = &shieldpool.PublicInputs{
		Root:         merkle.Bytes(&root),
		PublicAmount: -600_000_000,
		ExtDataHash:  shieldpool.ExtDataHash(shieldpool.Destination{Recipient: recipient}),
		MintAddress:  merkle.Bytes(&mintField),
		Nullifiers:   [2][32]byte{merkle.Bytes(&nullifier), {}},
		Commitments:  [2][32]byte{merkle.Bytes(&commitment), in.Commitments[1]}, ChainNoteHash: in.ChainNoteHash,
	}
	if diff := cmp.Diff(want, in); diff != "" {
		t.Errorf("the withdrawal's public inputs (-want +got):\n%s", diff)
	}
}

func TestASwapIsAWithdrawalThatBindsItsTerms(t *testing.T) {
	t.Parallel()
	mine := note(t, 100)
	leaves := pool(t, &mine)
	terms := shieldpool.SwapTerms{OutputMint: solana.NewWallet().PublicKey(), RecipientATA: solana.NewWallet().PublicKey(), MinOutput: math.MaxUint64}
	in := proves(t, witness(t, wallet.Spend{
		Inputs: []wallet.Note{mine}, PublicAmount: -100, ExtDataHash: wallet.SwapExtDataHash(terms), Mint: mint(t), Leaves: leaves, At: noon,
	}))
	if !shieldpool.Development().BindsDestination(in, shieldpool.Destination{Swap: &terms}) {
		t.Error("the proof does not bind the swap's terms")
	}
	if in.PublicAmount != -100 || !in.HasNullifier(0) {
		t.Errorf("public amount %d, first nullifier %t; want -100 and true", in.PublicAmount, in.HasNullifier(0))
	}
}

func TestProverRefusesAWitnessThatBreaksARule(t *testing.T) {
	t.Parallel()
	mine := note(t, 100)
	leaves := pool(t, &mine)
	tests := map[string]func(*shieldpool.PublicInputs){
		"another root":                  func(in *shieldpool.PublicInputs) { in.Root[31] ^= 1 },
		"a larger withdrawal":           func(in *shieldpool.PublicInputs) { in.PublicAmount-- },
		"another recipient":             func(in *shieldpool.PublicInputs) { in.ExtDataHash[31] ^= 1 },
		"another mint":                  func(in *shieldpool.PublicInputs) { in.MintAddress[31] ^= 1 },
		"the nullifier of another note": func(in *shieldpool.PublicInputs) { in.Nullifiers[0][31] ^= 1 },
		"another commitment":            func(in *shieldpool.PublicInputs) { in.Commitments[1][31] ^= 1 },
		"another chain note":            func(in *shieldpool.PublicInputs) { in.ChainNoteHash[31] ^= 1 },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := witness(t, wallet.Spend{Inputs: []wallet.Note{mine}, PublicAmount: -100, Mint: mint(t), Leaves: leaves, At: noon})
			change(&w.PublicInputs)
			_, _, _, err := wallettest.Prover(t).Prove(t.Context(), w)
			if err == nil || !strings.Contains(err.Error(), "breaks a rule of the circuit") {
				t.Errorf("error %v, want that the witness breaks a rule of the circuit", err)
			}
		})
	}
}

func TestWitnessRejectsInvalidSpends(t *testing.T) {
	t.Parallel()
	a, b, notInPool := note(t, 70), note(t, 30), note(t, 30)
	leaves := pool(t, &a, &b)
	foreign := note(t, 100)
	foreign.Mint = fr.NewElement(8)
	valid := func() wallet.Spend {
		return wallet.Spend{
			Inputs: []wallet.Note{a, b}, Outputs: []wallet.Note{note(t, 60)},
			PublicAmount: -40, Mint: mint(t), Leaves: leaves, At: noon,
		}
	}
	tests := map[string]struct {
		change func(*wallet.Spend)
		want   string
	}{
		"three inputs":                     {func(s *wallet.Spend) { s.Inputs = append(s.Inputs, b) }, "received 3 and 1"},
		"three outputs":                    {func(s *wallet.Spend) { s.Outputs = make([]wallet.Note, 3) }, "received 2 and 3"},
		"the smallest public amount":       {func(s *wallet.Spend) { s.PublicAmount = math.MinInt64 }, "smallest 64-bit integer"},
		"no time":                          {func(s *wallet.Spend) { s.At = time.Time{} }, "set At"},
		"an input of another mint":         {func(s *wallet.Spend) { s.Inputs[0] = foreign }, "input 0 is a note of another mint"},
		"an output of another mint":        {func(s *wallet.Spend) { s.Outputs[0] = foreign }, "output 0 is a note of another mint"},
		"an input that is not in the pool": {func(s *wallet.Spend) { s.Inputs[1] = notInPool }, "input 1 is not at its index among the 5 leaves"},
		"an index past the leaves":         {func(s *wallet.Spend) { s.Inputs[1].Index = math.MaxUint64 }, "input 1 is not at its index"},
		"one note twice":                   {func(s *wallet.Spend) { s.Inputs[1] = a }, "same note"},
		"more out than in":                 {func(s *wallet.Spend) { s.PublicAmount = -41 }, "must equal the outputs"},
		"less out than in":                 {func(s *wallet.Spend) { s.Outputs = nil }, "must equal the outputs"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := valid()
			tc.change(&s)
			_, err := s.Witness(rand.Reader)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
	s := valid()
	if _, err := s.Witness(rand.Reader); err != nil {
		t.Errorf("the unchanged spend is refused: %v", err)
	}
	broken := errors.New("no entropy")
	if _, err := s.Witness(brokenReader{broken}); !errors.Is(err, broken) {
		t.Errorf("a random source that fails: error %v, want %v", err, broken)
	}
	if err := notInPool.Locate(leaves); err == nil || !strings.Contains(err.Error(), "among the pool's 5 leaves") {
		t.Errorf("locate a note that is not in the pool: error %v, want that it is not among the leaves", err)
	}
}

type brokenReader struct{ err error }

func (r brokenReader) Read([]byte) (int, error) { return 0, r.err }

func TestNewNotesAndTheirNullifiersDiffer(t *testing.T) {
	t.Parallel()
	a, b := note(t, 5), note(t, 5)
	if a.Commitment() == b.Commitment() || a.OwnerKey() == b.OwnerKey() {
		t.Error("two new notes share a commitment or an owner key")
	}
	moved := a
	moved.Index++
	if a.Nullifier() == moved.Nullifier() {
		t.Error("the nullifier does not depend on the index")
	}
}

func TestProverServesConcurrentRequestsUntilItIsClosed(t *testing.T) {
	t.Parallel()
	wallettest.Prover(t) // fills the cache with the program and the keys
	prover, err := wallet.StartProver(t.Context(), wallet.Options{Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	amounts := []int64{1, 2, 3}
	var wait sync.WaitGroup
	for _, amount := range amounts {
		w := witness(t, wallet.Spend{Outputs: []wallet.Note{note(t, uint64(amount))}, PublicAmount: amount, Mint: mint(t), At: noon})
		wait.Go(func() {
			_, public, _, err := prover.Prove(t.Context(), w)
			if err != nil || !bytes.Equal(public[:], w.PublicInputs.Bytes()) {
				t.Errorf("amount %d: got the answer to another request, or error %v", amount, err)
			}
		})
	}
	wait.Wait()
	if err := prover.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := prover.Close(); err != nil {
		t.Errorf("close again: %v", err)
	}
	w := witness(t, wallet.Spend{Mint: mint(t), At: noon})
	if _, _, _, err := prover.Prove(t.Context(), w); err == nil || !strings.Contains(err.Error(), "start a new prover") {
		t.Errorf("prove after close: error %v, want that the program has stopped", err)
	}
}

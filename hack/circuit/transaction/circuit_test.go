package transaction_test

import (
	"math"
	"math/big"
	"os"
	"strings"
	"testing"

	"github.com/consensys/gnark-crypto/ecc"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
	cs "github.com/consensys/gnark/constraint/bn254"
	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/logger"

	"github.com/relaypool/relaypool/hack/circuit/setup"
	"github.com/relaypool/relaypool/hack/circuit/transaction"
	"github.com/relaypool/relaypool/hack/circuit/transaction/transactiontest"
)

func TestMain(m *testing.M) {
	logger.Disable() // gnark's log lines would hide the tests' output
	os.Exit(m.Run())
}

func compile(t *testing.T) *cs.R1CS {
	t.Helper()
	circuit, err := setup.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return circuit
}

func satisfies(t *testing.T, circuit *cs.R1CS, w *transaction.Witness) bool {
	t.Helper()
	assignment, err := w.Assign()
	if err != nil {
		t.Fatal(err)
	}
	return isSolved(t, circuit, assignment)
}

func isSolved(t *testing.T, circuit *cs.R1CS, assignment *transaction.Circuit) bool {
	t.Helper()
	full, err := frontend.NewWitness(assignment, ecc.BN254.ScalarField())
	if err != nil {
		t.Fatal(err)
	}
	return circuit.IsSolved(full) == nil
}

func TestCircuitAccepts(t *testing.T) {
	t.Parallel()
	circuit := compile(t)
	tests := map[string]func(*transactiontest.Ledger) *transaction.Witness{
		"a deposit with two inputs of amount zero": func(l *transactiontest.Ledger) *transaction.Witness {
			return l.Spend([2]transaction.WitnessInput{l.Dummy(), l.Dummy()}, [2]uint64{70, 30}, 100)
		},
		"a withdrawal from one note": func(l *transactiontest.Ledger) *transaction.Witness {
			return l.Spend([2]transaction.WitnessInput{l.Note(100), l.Dummy()}, [2]uint64{40, 0}, -60)
		},
		"a transfer from two notes": func(l *transactiontest.Ledger) *transaction.Witness {
			in := [2]transaction.WitnessInput{l.Note(100), l.Note(20)}
			return l.Spend(in, [2]uint64{119, 1}, 0)
		},
		"two notes of the same amount and secret at two indices": func(l *transactiontest.Ledger) *transaction.Witness {
			first, second := l.Note(100), l.Note(100)
			return l.Spend([2]transaction.WitnessInput{first, second}, [2]uint64{200, 0}, 0)
		},
		"an unused input, whose nullifier is zero": func(l *transactiontest.Ledger) *transaction.Witness {
			unused := l.Dummy()
			unused.Used = false
			return l.Spend([2]transaction.WitnessInput{l.Note(100), unused}, [2]uint64{40, 0}, -60)
		},
		"two unused inputs, which only the program refuses": func(l *transactiontest.Ledger) *transaction.Witness {
			unused := l.Dummy()
			unused.Used = false
			return l.Spend([2]transaction.WitnessInput{unused, unused}, [2]uint64{10, 0}, 10)
		},
		"the largest amounts": func(l *transactiontest.Ledger) *transaction.Witness {
			in := [2]transaction.WitnessInput{l.Note(math.MaxUint64), l.Note(math.MaxInt64)}
			return l.Spend(in, [2]uint64{math.MaxUint64, 0}, -math.MaxInt64)
		},
		"the first commitment in the chain note": func(l *transactiontest.Ledger) *transaction.Witness {
			w := l.Spend([2]transaction.WitnessInput{l.Note(100), l.Dummy()}, [2]uint64{40, 0}, -60)
			w.Which = "0"
			l.Rehash(w)
			return w
		},
	}
	for name, witness := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !satisfies(t, circuit, witness(transactiontest.New(t))) {
				t.Error("the circuit refuses the witness")
			}
		})
	}
}

func TestCircuitRejects(t *testing.T) {
	t.Parallel()
	circuit := compile(t)
	order := fr.Modulus()
	plus := func(s string, n int64) string {
		v, _ := new(big.Int).SetString(s, 0)
		return v.Add(v, big.NewInt(n)).Mod(v, order).String()
	}
	minus := func(n int64) string { return new(big.Int).Sub(order, big.NewInt(n)).String() }
	power := func(bit uint) string { return new(big.Int).Lsh(big.NewInt(1), bit).String() }

	// Each test changes a withdrawal of 60 from a note of 100. The hashes are computed again
	// after the change private, but not after public. The change thus breaks only one rule.
	tests := map[string]struct {
		private, public func(*transaction.Witness)
	}{
		"a root that is not the tree's": {public: func(w *transaction.Witness) { w.Root = plus(w.Root, 1) }},
		"a path to another root":        {private: func(w *transaction.Witness) { w.Inputs[0].Path[3] = "1" }},
		"the index of another note":     {private: func(w *transaction.Witness) { w.Inputs[0].Index = "1" }},
		"an index beyond the tree, which would give the note a second nullifier": {
			private: func(w *transaction.Witness) {
				w.Inputs[0].Index = plus(w.Inputs[0].Index, 1<<32)
			},
		},
		"another amount than the note's": {private: func(w *transaction.Witness) {
			w.Inputs[0].Amount, w.Outputs[0].Amount = "101", "41"
		}},
		"a secret that is not the owner's":      {private: func(w *transaction.Witness) { w.Inputs[0].Secret = "54321" }},
		"a note of another mint":                {private: func(w *transaction.Witness) { w.MintAddress = "8" }},
		"outputs above the balance":             {private: func(w *transaction.Witness) { w.Outputs[0].Amount = "41" }},
		"outputs below the balance":             {private: func(w *transaction.Witness) { w.Outputs[0].Amount = "39" }},
		"a withdrawal above the balance":        {private: func(w *transaction.Witness) { w.PublicAmount = "-61" }},
		"a positive amount for a withdrawal":    {private: func(w *transaction.Witness) { w.PublicAmount = "60" }},
		"a negative output beside a larger one": {private: func(w *transaction.Witness) { w.Outputs[0].Amount, w.Outputs[1].Amount = "45", minus(5) }},
		"an output of more than 64 bits": {private: func(w *transaction.Witness) {
			w.Outputs[0].Amount, w.PublicAmount = power(64), plus(power(64), -100)
		}},
		"an unused input with value":                {private: func(w *transaction.Witness) { w.Inputs[0].Used = false }},
		"a used input with a zero nullifier":        {public: func(w *transaction.Witness) { w.Nullifiers[0] = "0" }},
		"a nullifier that is not the note's":        {public: func(w *transaction.Witness) { w.Nullifiers[0] = plus(w.Nullifiers[0], 1) }},
		"a commitment that is not the output's":     {public: func(w *transaction.Witness) { w.Commitments[0] = plus(w.Commitments[0], 1) }},
		"another destination than the chain note's": {public: func(w *transaction.Witness) { w.ExtDataHash = plus(w.ExtDataHash, 1) }},
		"a forged chain note":                       {public: func(w *transaction.Witness) { w.ChainNoteHash = plus(w.ChainNoteHash, 1) }},
		"a time of more than 64 bits":               {private: func(w *transaction.Witness) { w.Timestamp = power(64) }},
		"a chain note with a third commitment":      {private: func(w *transaction.Witness) { w.Which = "2" }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := transactiontest.New(t)
			w := l.Spend([2]transaction.WitnessInput{l.Note(100), l.Dummy()}, [2]uint64{40, 0}, -60)
			if tc.private != nil {
				tc.private(w)
				l.Rehash(w)
			}
			if tc.public != nil {
				tc.public(w)
			}
			if satisfies(t, circuit, w) {
				t.Error("the circuit accepts the witness")
			}
		})
	}
}

// In each of these transactions the inputs and outputs balance, and only one amount is out of
// range.
func TestCircuitRejectsAmountsOutOfRange(t *testing.T) {
	t.Parallel()
	circuit := compile(t)
	tests := map[string]func(*transactiontest.Ledger) *transaction.Witness{
		"a note of a negative amount beside a larger output": func(l *transactiontest.Ledger) *transaction.Witness {
			negative := l.Dummy()
			negative.Amount = new(big.Int).Sub(fr.Modulus(), big.NewInt(5)).String()
			return l.Spend([2]transaction.WitnessInput{l.Note(100), l.Place(negative)}, [2]uint64{35, 0}, -60)
		},
		"the smallest 64-bit integer as public amount": func(l *transactiontest.Ledger) *transaction.Witness {
			return l.Spend([2]transaction.WitnessInput{l.Note(1 << 63), l.Dummy()}, [2]uint64{0, 0}, math.MinInt64)
		},
		"two to the 63rd as public amount": func(l *transactiontest.Ledger) *transaction.Witness {
			w := l.Spend([2]transaction.WitnessInput{l.Dummy(), l.Dummy()}, [2]uint64{1 << 63, 0}, 1)
			w.PublicAmount = "9223372036854775808"
			l.Rehash(w)
			return w
		},
	}
	for name, witness := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if satisfies(t, circuit, witness(transactiontest.New(t))) {
				t.Error("the circuit accepts the witness")
			}
		})
	}
}

func TestCircuitRejectsTheSameNoteTwice(t *testing.T) {
	t.Parallel()
	l := transactiontest.New(t)
	note := l.Note(100)
	if satisfies(t, compile(t), l.Spend([2]transaction.WitnessInput{note, note}, [2]uint64{200, 0}, 0)) {
		t.Error("the circuit accepts the witness")
	}
}

// The test sets Used to 2. If the circuit accepted this, the nullifier would be doubled, and the
// note would have a second nullifier.
func TestCircuitRejectsAUsedFlagOfTwo(t *testing.T) {
	t.Parallel()
	l := transactiontest.New(t)
	unused := l.Dummy()
	unused.Used = false
	w := l.Spend([2]transaction.WitnessInput{l.Dummy(), unused}, [2]uint64{10, 0}, 10)
	nullifier, ok := new(big.Int).SetString(w.Nullifiers[0], 0)
	if !ok {
		t.Fatal("the nullifier is not a number")
	}
	assignment, err := w.Assign()
	if err != nil {
		t.Fatal(err)
	}
	assignment.Inputs[0].Used = 2
	assignment.Nullifiers[0] = nullifier.Lsh(nullifier, 1).Mod(nullifier, fr.Modulus())
	if isSolved(t, compile(t), assignment) {
		t.Error("the circuit accepts the witness")
	}
}

func TestWitnessErrorsNameTheField(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*transaction.Witness)
		want   string
	}{
		"a text that is not a number":      {func(w *transaction.Witness) { w.Inputs[1].Path[31] = "secret" }, "inputs[1].path[31]: want a string with a decimal number"},
		"an empty text":                    {func(w *transaction.Witness) { w.Root = "" }, "root: want a string with a decimal number"},
		"a negative amount":                {func(w *transaction.Witness) { w.Outputs[0].Amount = "-4" }, "outputs[0].amount: want a number that is not negative"},
		"the order of the field":           {func(w *transaction.Witness) { w.Nullifiers[1] = fr.Modulus().String() }, "nullifiers[1]: want a number below the order"},
		"only the first error is reported": {func(w *transaction.Witness) { w.Root, w.ExtDataHash = "x", "y" }, "root: "},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := transactiontest.New(t)
			w := l.Spend([2]transaction.WitnessInput{l.Note(100), l.Dummy()}, [2]uint64{40, 0}, -60)
			tc.change(w)
			_, err := w.Assign()
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("error %v contains the value", err)
			}
		})
	}
}

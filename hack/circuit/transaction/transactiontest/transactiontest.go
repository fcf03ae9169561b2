// Package transactiontest makes witnesses for the tests of the circuit.
package transactiontest

import (
	"math/big"
	"strconv"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"github.com/relaypool/relaypool/hack/circuit/poseidon"
	"github.com/relaypool/relaypool/hack/circuit/transaction"
)

// Ledger has a tree of commitments and makes transactions that spend their notes.
type Ledger struct {
	t      testing.TB
	hash   *poseidon.Hasher
	leaves []fr.Element
}

// New returns a ledger. Its tree has five leaves that are not commitments of notes.
func New(t testing.TB) *Ledger {
	l := &Ledger{t: t, hash: poseidon.New()}
	for i := range 5 {
		l.leaves = append(l.leaves, fr.NewElement(uint64(1000+i)))
	}
	return l
}

// Mint is the field value of the mint of every note.
const Mint = "7"

// Note puts a note of the amount into the tree and returns it as an input. Spend sets its path.
func (l *Ledger) Note(amount uint64) transaction.WitnessInput {
	in := l.Dummy()
	in.Amount = strconv.FormatUint(amount, 10)
	return l.Place(in)
}

// Place puts an input's note into the tree, even a note that no transaction could create.
func (l *Ledger) Place(in transaction.WitnessInput) transaction.WitnessInput {
	in.Index = strconv.Itoa(len(l.leaves))
	l.leaves = append(l.leaves, l.commitment(&in, Mint))
	return in
}

// Dummy returns an input of amount zero, which need not be in the tree.
func (l *Ledger) Dummy() transaction.WitnessInput {
	in := transaction.WitnessInput{
		Amount:   "0",
		Secret:   "12345",
		Blinding: l.random(),
		Index:    "0",
		Used:     true,
	}
	for i := range in.Path {
		in.Path[i] = "0"
	}
	return in
}

// Spend makes the witness of a transaction from the inputs, the outputs' amounts and the public
// amount.
func (l *Ledger) Spend(inputs [2]transaction.WitnessInput, outputs [2]uint64, public int64) *transaction.Witness {
	w := &transaction.Witness{
		PublicAmount: strconv.FormatInt(public, 10),
		ExtDataHash:  "99",
		MintAddress:  Mint,
		Inputs:       inputs,
		Timestamp:    "1790000000000",
		Which:        "1",
	}
	for i := range w.Inputs {
		root, path := l.path(l.int(w.Inputs[i].Index))
		w.Root = text(root)
		w.Inputs[i].Path = path
	}
	for i, amount := range outputs {
		w.Outputs[i] = transaction.WitnessOutput{
			Amount:   strconv.FormatUint(amount, 10),
			OwnerKey: text(l.hash.Sum(l.field("777"), fr.Element{})),
			Blinding: l.random(),
		}
	}
	l.Rehash(w)
	return w
}

// Rehash recomputes nullifiers, commitments and chain note from the witness's other values. After a
// test has changed one of these values, the witness then breaks only one rule.
func (l *Ledger) Rehash(w *transaction.Witness) {
	l.t.Helper()
	for i := range w.Inputs {
		in := &w.Inputs[i]
		w.Nullifiers[i] = "0"
		if in.Used {
			commitment, index := l.commitment(in, w.MintAddress), l.field(in.Index)
			signature := l.hash.Sum(l.field(in.Secret), commitment, index)
			w.Nullifiers[i] = text(l.hash.Sum(commitment, index, signature))
		}
	}
	for i, out := range w.Outputs {
		w.Commitments[i] = text(l.hash.Sum(l.field(out.Amount), l.field(out.OwnerKey), l.field(out.Blinding), l.field(w.MintAddress)))
	}
	value := l.hash.Sum(l.field(w.PublicAmount), l.field(w.ExtDataHash))
	moment := l.hash.Sum(l.field(w.Timestamp), l.field(w.Commitments[l.int(w.Which)%2]))
	w.ChainNoteHash = text(l.hash.Sum(l.field("0x434c4b4e4f544531"), l.field("2"), value, moment))
}

func (l *Ledger) commitment(in *transaction.WitnessInput, mint string) fr.Element {
	owner := l.hash.Sum(l.field(in.Secret), fr.Element{})
	return l.hash.Sum(l.field(in.Amount), owner, l.field(in.Blinding), l.field(mint))
}

// path returns the root and the siblings of the leaf at index.
func (l *Ledger) path(index int) (root fr.Element, siblings [transaction.Height]string) {
	var zero fr.Element
	nodes := append([]fr.Element(nil), l.leaves...)
	for level := range transaction.Height {
		if len(nodes)%2 == 1 {
			nodes = append(nodes, zero)
		}
		siblings[level] = text(nodes[index^1])
		for i := range len(nodes) / 2 {
			nodes[i] = l.hash.Sum(nodes[2*i], nodes[2*i+1])
		}
		nodes = nodes[:len(nodes)/2]
		zero = l.hash.Sum(zero, zero)
		index /= 2
	}
	return nodes[0], siblings
}

func (l *Ledger) random() string {
	var e fr.Element
	e.MustSetRandom()
	return text(e)
}

func (l *Ledger) field(s string) fr.Element {
	l.t.Helper()
	v, ok := new(big.Int).SetString(s, 0)
	if !ok {
		l.t.Fatalf("a test's witness contains %q, want a number", s)
	}
	var e fr.Element
	e.SetBigInt(v)
	return e
}

func (l *Ledger) int(s string) int {
	l.t.Helper()
	v, err := strconv.Atoi(s)
	if err != nil {
		l.t.Fatal(err)
	}
	return v
}

func text(e fr.Element) string {
	return "0x" + e.Text(16)
}

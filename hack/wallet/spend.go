package wallet

import (
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"github.com/relaypool/relaypool/relay/merkle"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	slots = 2

	// chainNoteTag and chainNoteVersion are the first two inputs of the chain note's hash.
	chainNoteTag     = 0x434c4b4e4f544531
	chainNoteVersion = 2
)

// Spend describes a transaction: a deposit if PublicAmount is positive, a withdrawal if it is
// negative, and a transfer if it is 0.
type Spend struct {
	// Inputs are at most two notes with their index among Leaves.
	Inputs []Note
	// Outputs are at most two notes. Dummy notes of amount zero replace missing outputs.
	Outputs []Note
	// PublicAmount is the gross amount that enters the pool, negative for a withdrawal, in the
	// mint's smallest unit.
	PublicAmount int64
	// ExtDataHash binds the destination; see the functions ExtDataHash and SwapExtDataHash.
	ExtDataHash fr.Element
	// Mint is the mint as a field element, from the pool's profile.
	Mint fr.Element
	// Leaves are all the pool's commitments from index 0. The proof is for their root.
	Leaves []fr.Element
	// At is the time in the chain note.
	At time.Time
	// Unused gives missing inputs the nullifier zero. By default, dummy notes of amount zero with
	// nullifiers replace missing inputs, and hide how many notes are spent.
	Unused bool
}

// Witness is a transaction with all data for its proof. If a test changes the public inputs before
// proving, the circuit refuses the witness.
type Witness struct {
	PublicInputs shieldpool.PublicInputs

	inputs    [slots]input
	outputs   [slots]Note
	timestamp int64 // milliseconds since 1970
}

type input struct {
	note Note
	path [merkle.Height]fr.Element
	used bool
}

// Witness completes the transaction with dummy notes, with secrets from random. An error names the
// invalid part, never a value. The circuit accepts every witness that Witness returns.
func (s *Spend) Witness(random io.Reader) (*Witness, error) {
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("transaction: %w", err)
	}
	root, err := rootOf(s.Leaves)
	if err != nil {
		return nil, fmt.Errorf("transaction: %w", err)
	}
	w := &Witness{
		PublicInputs: shieldpool.PublicInputs{
			Root:         merkle.Bytes(&root),
			PublicAmount: s.PublicAmount,
			ExtDataHash:  merkle.Bytes(&s.ExtDataHash),
			MintAddress:  merkle.Bytes(&s.Mint),
		},
		timestamp: s.At.UnixMilli(),
	}
	for i := range slots {
		if err := s.fill(w, i, random); err != nil {
			return nil, fmt.Errorf("transaction: %w", err)
		}
	}
	w.PublicInputs.ChainNoteHash = w.chainNote(s)
	return w, nil
}

func (s *Spend) check() error {
	if len(s.Inputs) > slots || len(s.Outputs) > slots {
		return fmt.Errorf("want at most %d inputs and %d outputs, received %d and %d", slots, slots, len(s.Inputs), len(s.Outputs))
	}
	if s.PublicAmount == math.MinInt64 {
		return errors.New("public amount is the smallest 64-bit integer, which cannot be negated: the pool program refuses it")
	}
	if s.At.UnixMilli() < 0 {
		return errors.New("time of the chain note is before 1970: set At")
	}
	var balance, e fr.Element
	balance.SetInt64(s.PublicAmount)
	for i := range s.Inputs {
		n := &s.Inputs[i]
		if n.Mint != s.Mint {
			return fmt.Errorf("input %d is a note of another mint", i)
		}
		if n.Index >= uint64(len(s.Leaves)) || s.Leaves[n.Index] != n.Commitment() {
			return fmt.Errorf("input %d is not at its index among the %d leaves: find the note in a new list", i, len(s.Leaves))
		}
		balance.Add(&balance, e.SetUint64(n.Amount))
	}
	if len(s.Inputs) == slots && s.Inputs[0].Index == s.Inputs[1].Index {
		return errors.New("both inputs are the same note")
	}
	for i := range s.Outputs {
		if s.Outputs[i].Mint != s.Mint {
			return fmt.Errorf("output %d is a note of another mint", i)
		}
		balance.Sub(&balance, e.SetUint64(s.Outputs[i].Amount))
	}
	if !balance.IsZero() {
		return errors.New("inputs and public amount together must equal the outputs: add a note for the change")
	}
	return nil
}

// fill sets input i and output i of the witness, and their nullifier and commitment.
func (s *Spend) fill(w *Witness, i int, random io.Reader) error {
	var err error
	in := &w.inputs[i]
	if i < len(s.Inputs) {
		in.note, in.used = s.Inputs[i], true
		in.path, err = merkle.Path(s.Leaves, int(in.note.Index)) //nolint:gosec // check has compared it with len(Leaves)
	} else {
		in.used = !s.Unused
		in.note, err = NewNote(random, 0, s.Mint)
	}
	if err != nil {
		return err
	}
	if in.used {
		nullifier := in.note.Nullifier()
		w.PublicInputs.Nullifiers[i] = merkle.Bytes(&nullifier)
	}

	out := &w.outputs[i]
	if i < len(s.Outputs) {
		*out = s.Outputs[i]
	} else if *out, err = NewNote(random, 0, s.Mint); err != nil {
		return err
	}
	commitment := out.Commitment()
	w.PublicInputs.Commitments[i] = merkle.Bytes(&commitment)
	return nil
}

// chainNote returns the hash of the chain note, which has the commitment of the first output.
func (w *Witness) chainNote(s *Spend) [32]byte {
	var amount, tag, version, moment fr.Element
	amount.SetInt64(s.PublicAmount)
	tag.SetUint64(chainNoteTag)
	version.SetUint64(chainNoteVersion)
	moment.SetInt64(w.timestamp)
	commitment := w.outputs[0].Commitment()
	value := merkle.Hash2(&amount, &s.ExtDataHash)
	when := merkle.Hash2(&moment, &commitment)
	hash := merkle.Hash4(&tag, &version, &value, &when)
	return merkle.Bytes(&hash)
}

func rootOf(leaves []fr.Element) (fr.Element, error) {
	tree := merkle.NewTree()
	for i := range leaves {
		if err := tree.Append(&leaves[i]); err != nil {
			return fr.Element{}, err
		}
	}
	return tree.Root(), nil
}

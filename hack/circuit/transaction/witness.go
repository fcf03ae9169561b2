package transaction

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"strings"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
)

// PublicInputsSize is the length of the encoded public inputs in bytes
// (docs/engineering/protocol.md, "Bytes").
const PublicInputsSize = 264

// Witness is a transaction in JSON. Numbers are strings: decimal, or hexadecimal after 0x. Only the
// public amount may be negative.
type Witness struct {
	Root          string               `json:"root"`
	PublicAmount  string               `json:"public_amount"`
	ExtDataHash   string               `json:"ext_data_hash"`
	MintAddress   string               `json:"mint_address"`
	Nullifiers    [Slots]string        `json:"nullifiers"`
	Commitments   [Slots]string        `json:"commitments"`
	ChainNoteHash string               `json:"chain_note_hash"`
	Inputs        [Slots]WitnessInput  `json:"inputs"`
	Outputs       [Slots]WitnessOutput `json:"outputs"`
	Timestamp     string               `json:"timestamp"`
	Which         string               `json:"which"`
}

// WitnessInput is a note to be spent; see Input.
type WitnessInput struct {
	Amount   string         `json:"amount"`
	Secret   string         `json:"secret"`
	Blinding string         `json:"blinding"`
	Index    string         `json:"index"`
	Path     [Height]string `json:"path"`
	Used     bool           `json:"used"`
}

// WitnessOutput is a note to be created; see Output.
type WitnessOutput struct {
	Amount   string `json:"amount"`
	OwnerKey string `json:"owner_key"`
	Blinding string `json:"blinding"`
}

// Assign parses the numbers into an assignment of the circuit. The error for an invalid number
// names its field, never its value.
func (w *Witness) Assign() (*Circuit, error) {
	var r parser
	c := &Circuit{
		Root:          r.field("root", w.Root),
		PublicAmount:  r.signed("public_amount", w.PublicAmount),
		ExtDataHash:   r.field("ext_data_hash", w.ExtDataHash),
		MintAddress:   r.field("mint_address", w.MintAddress),
		ChainNoteHash: r.field("chain_note_hash", w.ChainNoteHash),
		Timestamp:     r.field("timestamp", w.Timestamp),
		Which:         r.field("which", w.Which),
	}
	for i := range Slots {
		c.Nullifiers[i] = r.field(fmt.Sprintf("nullifiers[%d]", i), w.Nullifiers[i])
		c.Commitments[i] = r.field(fmt.Sprintf("commitments[%d]", i), w.Commitments[i])
		c.Inputs[i] = w.Inputs[i].assign(&r, fmt.Sprintf("inputs[%d].", i))
		c.Outputs[i] = Output{
			Amount:   r.field(fmt.Sprintf("outputs[%d].amount", i), w.Outputs[i].Amount),
			OwnerKey: r.field(fmt.Sprintf("outputs[%d].owner_key", i), w.Outputs[i].OwnerKey),
			Blinding: r.field(fmt.Sprintf("outputs[%d].blinding", i), w.Outputs[i].Blinding),
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	return c, nil
}

func (in *WitnessInput) assign(r *parser, place string) Input {
	out := Input{
		Amount:   r.field(place+"amount", in.Amount),
		Secret:   r.field(place+"secret", in.Secret),
		Blinding: r.field(place+"blinding", in.Blinding),
		Index:    r.field(place+"index", in.Index),
		Used:     0,
	}
	if in.Used {
		out.Used = 1
	}
	for level := range in.Path {
		out.Path[level] = r.field(fmt.Sprintf("%spath[%d]", place, level), in.Path[level])
	}
	return out
}

// PublicInputs encodes the nine public signals as the protocol's public inputs. Call Assign first,
// which validates the witness.
func (w *Witness) PublicInputs() ([PublicInputsSize]byte, error) {
	var (
		out [PublicInputsSize]byte
		r   parser
		b   []byte
	)
	element := func(place, s string) {
		e := fr.Element{}
		e.SetBigInt(r.field(place, s))
		b = append(b, e.Marshal()...)
	}
	element("root", w.Root)
	amount := r.signed("public_amount", w.PublicAmount)
	if !amount.IsInt64() {
		r.fail("public_amount", "want a signed 64-bit integer")
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(amount.Int64())) //nolint:gosec // the protocol uses two's complement
	element("ext_data_hash", w.ExtDataHash)
	element("mint_address", w.MintAddress)
	element("nullifiers[0]", w.Nullifiers[0])
	element("nullifiers[1]", w.Nullifiers[1])
	element("commitments[0]", w.Commitments[0])
	element("commitments[1]", w.Commitments[1])
	element("chain_note_hash", w.ChainNoteHash)
	copy(out[:], b)
	return out, r.err
}

// parser parses numbers and keeps the first error, so that callers check for an error only once.
type parser struct {
	err error
}

func (r *parser) fail(place, problem string) {
	if r.err == nil {
		r.err = fmt.Errorf("witness: %s: %s", place, problem)
	}
}

func (r *parser) field(place, s string) *big.Int {
	v := r.signed(place, s)
	if v.Sign() < 0 {
		r.fail(place, "want a number that is not negative")
	}
	return v
}

func (r *parser) signed(place, s string) *big.Int {
	digits, base := s, 10
	if rest, ok := strings.CutPrefix(s, "0x"); ok {
		digits, base = rest, 16
	}
	v, ok := new(big.Int).SetString(digits, base)
	if !ok {
		r.fail(place, fmt.Sprintf("want a string with a decimal number or a hexadecimal number after 0x, received %d other characters", len(s)))
		return new(big.Int)
	}
	if v.CmpAbs(fr.Modulus()) >= 0 {
		r.fail(place, "want a number below the order of BN254's scalar field")
	}
	return v
}

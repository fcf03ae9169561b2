// Package transaction is the shielded pool's transaction as a circuit. It has two inputs, two
// outputs and a tree of height 32. docs/engineering/protocol.md describes the nine public signals
// ("Bytes") and the hashes ("Hash and tree").
package transaction

import (
	"math/big"

	"github.com/consensys/gnark/frontend"

	"github.com/relaypool/relaypool/hack/circuit/poseidon"
)

const (
	// Height is the number of levels between a leaf and the root.
	Height = 32
	// Slots is the number of inputs and the number of outputs of a transaction.
	Slots = 2

	amountBits    = 64
	timestampBits = 64

	// chainNoteTag and chainNoteVersion are the first two inputs of the chain note's hash. The tag
	// is CLKNOTE1 in ASCII.
	chainNoteTag     = 0x434c4b4e4f544531
	chainNoteVersion = 2
)

// Circuit is a transaction. The public signals come first, in the order of the public inputs.
type Circuit struct {
	Root          frontend.Variable        `gnark:",public"`
	PublicAmount  frontend.Variable        `gnark:",public"`
	ExtDataHash   frontend.Variable        `gnark:",public"`
	MintAddress   frontend.Variable        `gnark:",public"`
	Nullifiers    [Slots]frontend.Variable `gnark:",public"`
	Commitments   [Slots]frontend.Variable `gnark:",public"`
	ChainNoteHash frontend.Variable        `gnark:",public"`

	Inputs  [Slots]Input
	Outputs [Slots]Output

	Timestamp frontend.Variable // milliseconds since 1970
	Which     frontend.Variable // the index of the commitment in the chain note, 0 or 1
}

// Input is a note to be spent, with its index and its path in the tree. A note of amount zero need
// not be in the tree.
type Input struct {
	Amount   frontend.Variable
	Secret   frontend.Variable
	Blinding frontend.Variable
	Index    frontend.Variable
	Path     [Height]frontend.Variable
	Used     frontend.Variable // 0 makes the nullifier zero and requires amount zero
}

// Output is a note to be created.
type Output struct {
	Amount   frontend.Variable
	OwnerKey frontend.Variable
	Blinding frontend.Variable
}

// Define implements frontend.Circuit.
func (c *Circuit) Define(api frontend.API) error {
	hash := poseidon.New()
	rangeCheckSigned(api, c.PublicAmount)

	balance := c.PublicAmount
	for i := range c.Inputs {
		nullifier := c.Inputs[i].define(api, hash, c.MintAddress, c.Root)
		api.AssertIsEqual(c.Nullifiers[i], nullifier)
		balance = api.Add(balance, c.Inputs[i].Amount)
	}
	for i := range c.Outputs {
		api.AssertIsEqual(c.Commitments[i], c.Outputs[i].define(api, hash, c.MintAddress))
		balance = api.Sub(balance, c.Outputs[i].Amount)
	}
	// The absolute value of each of the five terms is below 2^64. Their sum can therefore be zero
	// modulo the field's order only if it is zero.
	api.AssertIsEqual(balance, 0)

	bothUsed := api.Mul(c.Inputs[0].Used, c.Inputs[1].Used)
	difference := api.Sub(c.Nullifiers[0], c.Nullifiers[1])
	api.AssertIsDifferent(api.Select(bothUsed, difference, 1), 0)

	api.AssertIsEqual(c.ChainNoteHash, c.chainNote(api, hash))
	return nil
}

func (in *Input) define(api frontend.API, hash *poseidon.Hasher, mint, root frontend.Variable) frontend.Variable {
	api.AssertIsBoolean(in.Used)
	api.ToBinary(in.Amount, amountBits)
	api.AssertIsEqual(api.Mul(in.Amount, api.Sub(1, in.Used)), 0)

	ownerKey := hash.Constrain(api, in.Secret, 0)
	commitment := hash.Constrain(api, in.Amount, ownerKey, in.Blinding, mint)

	node := commitment
	for level, isRight := range api.ToBinary(in.Index, Height) {
		left := api.Select(isRight, in.Path[level], node)
		right := api.Sub(api.Add(in.Path[level], node), left)
		node = hash.Constrain(api, left, right)
	}
	api.AssertIsEqual(api.Mul(in.Amount, api.Sub(root, node)), 0)

	signature := hash.Constrain(api, in.Secret, commitment, in.Index)
	return api.Mul(in.Used, hash.Constrain(api, commitment, in.Index, signature))
}

func (out *Output) define(api frontend.API, hash *poseidon.Hasher, mint frontend.Variable) frontend.Variable {
	api.ToBinary(out.Amount, amountBits)
	return hash.Constrain(api, out.Amount, out.OwnerKey, out.Blinding, mint)
}

func (c *Circuit) chainNote(api frontend.API, hash *poseidon.Hasher) frontend.Variable {
	api.AssertIsBoolean(c.Which)
	api.ToBinary(c.Timestamp, timestampBits)
	value := hash.Constrain(api, c.PublicAmount, c.ExtDataHash)
	moment := hash.Constrain(api, c.Timestamp, api.Select(c.Which, c.Commitments[1], c.Commitments[0]))
	return hash.Constrain(api, chainNoteTag, chainNoteVersion, value, moment)
}

// rangeCheckSigned requires −2^63 < v < 2^63. Like the pool program, it refuses −2^63, whose
// negation does not fit in 64 bits.
func rangeCheckSigned(api frontend.API, v frontend.Variable) {
	offset := new(big.Int).Lsh(big.NewInt(1), amountBits-1)
	shifted := api.Add(v, offset)
	api.ToBinary(shifted, amountBits)
	api.AssertIsDifferent(shifted, 0)
}

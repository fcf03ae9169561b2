// Package wallet is the client side of the shielded pool for tests and demonstrations: notes, the
// transactions that spend and create notes, and a prover that runs hack/circuit.
//
// It is for development only: it keeps secrets in memory, and anybody can forge proofs under its
// keys.
package wallet

import (
	"fmt"
	"io"
	"slices"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/merkle"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Note is an amount in the pool, in the mint's smallest unit, that the holder of Secret owns.
// Index is the index of the note's commitment among the pool's leaves; Locate sets it.
type Note struct {
	Amount   uint64
	Secret   fr.Element
	Blinding fr.Element
	Mint     fr.Element
	Index    uint64
}

// NewNote returns a note with a secret and a blinding drawn from random. It fails only if random
// fails.
func NewNote(random io.Reader, amount uint64, mint fr.Element) (Note, error) {
	n := Note{Amount: amount, Mint: mint}
	for _, e := range []*fr.Element{&n.Secret, &n.Blinding} {
		if err := draw(random, e); err != nil {
			return Note{}, err
		}
	}
	return n, nil
}

// draw reads 48 bytes for an element of 254 bits. The element is then nearly uniform after the
// reduction modulo the field's order.
func draw(random io.Reader, e *fr.Element) error {
	var b [48]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return fmt.Errorf("draw a random field element: %w", err)
	}
	e.SetBytes(b[:])
	return nil
}

// OwnerKey is P2(secret, 0), with which anybody can create a note for this owner. Pn is Poseidon of
// n inputs (docs/engineering/protocol.md, "Hash and tree").
func (n *Note) OwnerKey() fr.Element {
	return merkle.Hash2(&n.Secret, new(fr.Element))
}

// Commitment is P4(amount, owner key, blinding, mint): the note's leaf in the tree.
func (n *Note) Commitment() fr.Element {
	amount, owner := fr.NewElement(n.Amount), n.OwnerKey()
	return merkle.Hash4(&amount, &owner, &n.Blinding, &n.Mint)
}

// Nullifier is P3(commitment, index, P3(secret, commitment, index)), which spending the note
// reveals. Index must be set.
func (n *Note) Nullifier() fr.Element {
	commitment, index := n.Commitment(), fr.NewElement(n.Index)
	signature := merkle.Hash3(&n.Secret, &commitment, &index)
	return merkle.Hash3(&commitment, &index, &signature)
}

// Locate sets Index to the note's index among the pool's leaves. It returns an error when the note
// is not (yet) among them.
func (n *Note) Locate(leaves []fr.Element) error {
	i := slices.Index(leaves, n.Commitment())
	if i < 0 {
		return fmt.Errorf("note is not among the pool's %d leaves: fetch the commitments again once its transaction is confirmed", len(leaves))
	}
	n.Index = uint64(i)
	return nil
}

// ExtDataHash binds a withdrawal to its recipient under the development profile: 0x00 and the first
// 31 bytes of sha256(recipient), as a field element (docs/engineering/protocol.md, "Destination").
func ExtDataHash(recipient solana.PublicKey) fr.Element {
	return bind(shieldpool.Destination{Recipient: recipient})
}

// SwapExtDataHash binds a swap to its terms under the development profile: 0x00 and the first 31
// bytes of sha256(output_mint ‖ recipient_ata ‖ min_output u64 LE), as a field element.
func SwapExtDataHash(terms shieldpool.SwapTerms) fr.Element {
	return bind(shieldpool.Destination{Swap: &terms})
}

func bind(destination shieldpool.Destination) fr.Element {
	b := shieldpool.ExtDataHash(destination)
	var e fr.Element
	e.SetBytes(b[:])
	return e
}

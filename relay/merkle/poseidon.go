// Package merkle implements the hash and the tree of the shielded pool: Poseidon over
// BN254's scalar field as circom computes it, and an incremental Merkle tree of height 32.
//
// Everything here is pure. Values are field elements; on the wire they are 32 bytes,
// big-endian.
package merkle

import (
	"errors"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
)

// ErrNotCanonical is returned by FromBytes for 32 bytes whose value is not below the order of the
// field. The same element, reduced, has a canonical encoding too. So accepting both encodings would
// let one nullifier be spent twice.
var ErrNotCanonical = errors.New("field element is not canonical: the 32 big-endian bytes must be a value below the order of BN254's scalar field")

const (
	fullRounds = 8
	maxWidth   = 5
)

// parameters are the constants of the permutation of one width. They are rearranged as appendix B
// of the Poseidon paper describes. A partial round then adds one constant and multiplies by a
// sparse matrix, which differs from the identity only in its first row and first column.
type parameters struct {
	width   int
	full    []fr.Element // as many constants as the width for each full round
	partial []fr.Element // one constant for each partial round
	mds     []fr.Element // width² elements, row by row
	pre     []fr.Element // used instead of mds in the last full round before the partial rounds
	// sparse holds 2·width−1 elements for each partial round: the first row of the sparse matrix,
	// then its first column without the top element.
	sparse []fr.Element
}

// Hash2 is circom's Poseidon of two inputs. The pool uses it for a node of the tree (left child,
// right child) and for an owner key (secret, zero). It allocates nothing.
func Hash2(a, b *fr.Element) fr.Element {
	state := [3]fr.Element{1: *a, 2: *b}
	width3.permute(state[:])
	return state[0]
}

// Hash3 is circom's Poseidon of three inputs. The pool uses it for a note's signature and for a
// note's nullifier. It allocates nothing.
func Hash3(a, b, c *fr.Element) fr.Element {
	state := [4]fr.Element{1: *a, 2: *b, 3: *c}
	width4.permute(state[:])
	return state[0]
}

// Hash4 is circom's Poseidon of four inputs. The pool uses it for a note's commitment and for the
// chain note. It allocates nothing.
func Hash4(a, b, c, d *fr.Element) fr.Element {
	state := [5]fr.Element{1: *a, 2: *b, 3: *c, 4: *d}
	width5.permute(state[:])
	return state[0]
}

// FromBytes reads a field element from 32 big-endian bytes. Its only error is ErrNotCanonical.
func FromBytes(b [32]byte) (fr.Element, error) {
	e, err := fr.BigEndian.Element(&b)
	if err != nil {
		return fr.Element{}, ErrNotCanonical
	}
	return e, nil
}

// Bytes writes a field element as 32 big-endian bytes; it is the inverse of FromBytes.
func Bytes(e *fr.Element) [32]byte {
	return e.Bytes()
}

func (p *parameters) permute(state []fr.Element) {
	for r := range fullRounds / 2 {
		matrix := p.mds
		if r == fullRounds/2-1 {
			matrix = p.pre
		}
		p.fullRound(state, r, matrix)
	}
	step := 2*p.width - 1
	for r := range p.partial {
		state[0].Add(&state[0], &p.partial[r])
		fifthPower(&state[0])
		multiplySparse(state, p.sparse[r*step:(r+1)*step])
	}
	for r := fullRounds / 2; r < fullRounds; r++ {
		p.fullRound(state, r, p.mds)
	}
}

func (p *parameters) fullRound(state []fr.Element, r int, matrix []fr.Element) {
	var before [maxWidth]fr.Element
	for i := range state {
		before[i].Add(&state[i], &p.full[r*p.width+i])
		fifthPower(&before[i])
	}
	for i := range state {
		state[i] = dot(matrix[i*p.width:(i+1)*p.width], before[:])
	}
}

// multiplySparse multiplies state by a sparse matrix. m holds the first row of the matrix, then its
// first column without the top element. All other elements are those of the identity.
func multiplySparse(state, m []fr.Element) {
	n := len(state)
	first := dot(m[:n], state)
	for i := 1; i < n; i++ {
		var product fr.Element
		product.Mul(&m[n+i-1], &state[0])
		state[i].Add(&state[i], &product)
	}
	state[0] = first
}

func dot(row, v []fr.Element) fr.Element {
	var sum, product fr.Element
	sum.Mul(&row[0], &v[0])
	for i := 1; i < len(row); i++ {
		product.Mul(&row[i], &v[i])
		sum.Add(&sum, &product)
	}
	return sum
}

func fifthPower(e *fr.Element) {
	var fourth fr.Element
	fourth.Square(e)
	fourth.Square(&fourth)
	e.Mul(e, &fourth)
}

package main

import (
	"errors"
	"slices"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
)

const fullRounds = 8

// partialRounds by width, as circomlib fixed them for 128 bits of security.
var partialRounds = map[int]int{3: 57, 4: 56, 5: 60}

// instance is Poseidon of one width: the plain constants of the paper, and the same permutation
// rearranged so that a partial round costs 2·width−1 products instead of width².
type instance struct {
	width, partial int
	constants      []fr.Element // width for each of the fullRounds+partial rounds
	mds            matrix

	full   []fr.Element // width for each full round
	single []fr.Element // one for each partial round
	pre    matrix       // in place of mds in the last full round before the partial ones
	rows   []vector     // sparse matrices: first row, width long
	cols   []vector     // sparse matrices: first column below the corner
}

func derive() ([]*instance, error) {
	var all []*instance
	for _, width := range []int{3, 4, 5} {
		p, err := plain(width)
		if err != nil {
			return nil, err
		}
		p.moveConstants()
		if err := p.sparsify(); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// plain draws round constants and then, from the same stream, the 2·width points of the Cauchy
// matrix 1/(x+y).
func plain(width int) (*instance, error) {
	p := &instance{width: width, partial: partialRounds[width], mds: newMatrix(width)}
	g := newGrain(width, fullRounds, p.partial)
	for range (fullRounds + p.partial) * width {
		p.constants = append(p.constants, g.below())
	}
	points := make([]fr.Element, 2*width)
	for i := range points {
		points[i] = g.reduced()
		if slices.Contains(points[:i], points[i]) {
			return nil, errors.New("points of the Cauchy matrix repeat: the parameters are not usable")
		}
	}
	for i := range width {
		for j := range width {
			p.mds[i][j].Add(&points[i], &points[width+j])
			p.mds[i][j].Inverse(&p.mds[i][j])
		}
	}
	return p, nil
}

// moveConstants leaves one constant in each partial round. The others of a round meet no S-box, so
// they pass through the matrix into the next round, and what remains joins the first full round
// after the partial ones.
func (p *instance) moveConstants() {
	round := func(r int) vector { return slices.Clone(p.constants[r*p.width : (r+1)*p.width]) }
	half := fullRounds / 2
	for r := range half {
		p.full = append(p.full, round(r)...)
	}
	carried := make(vector, p.width)
	for r := half; r < half+p.partial; r++ {
		c := sum(round(r), carried)
		p.single = append(p.single, c[0])
		c[0].SetZero()
		carried = p.mds.apply(c)
	}
	for r := half + p.partial; r < fullRounds+p.partial; r++ {
		p.full = append(p.full, sum(round(r), carried)...)
		carried = make(vector, p.width)
	}
}

func sum(a, b vector) vector {
	for i := range a {
		a[i].Add(&a[i], &b[i])
	}
	return a
}

// sparsify writes the matrix of each partial round, from the last to the first, as S·D with
// D = diag(1, block) and S the identity but for its first row and column. D leaves the first
// element alone, so it may act before the round's S-box, where it joins the matrix before.
func (p *instance) sparsify() error {
	current := p.mds
	p.rows, p.cols = make([]vector, p.partial), make([]vector, p.partial)
	for r := p.partial - 1; r >= 0; r-- {
		block := newMatrix(p.width - 1)
		for i := range block {
			copy(block[i], current[i+1][1:])
		}
		inverse, err := block.inverse()
		if err != nil {
			return err
		}
		p.rows[r] = append(vector{current[0][0]}, inverse.transposed().apply(current[0][1:])...)
		for i := range block {
			p.cols[r] = append(p.cols[r], current[i+1][0])
		}
		diagonal := newMatrix(p.width)
		diagonal[0][0].SetOne()
		for i := range block {
			copy(diagonal[i+1][1:], block[i])
		}
		current = diagonal.times(p.mds)
	}
	p.pre = current
	return nil
}

// hash is the permutation straight from the paper, for the zeros and the package's own test.
func (p *instance) hash(inputs ...fr.Element) fr.Element {
	state := append(make(vector, 1), inputs...)
	for r := range fullRounds + p.partial {
		state = sum(state, p.constants[r*p.width:(r+1)*p.width])
		for i := range state {
			if i == 0 || r < fullRounds/2 || r >= fullRounds/2+p.partial {
				fifth(&state[i])
			}
		}
		state = p.mds.apply(state)
	}
	return state[0]
}

func fifth(e *fr.Element) {
	var square fr.Element
	square.Square(e)
	square.Square(&square)
	e.Mul(e, &square)
}

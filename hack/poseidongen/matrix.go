package main

import (
	"errors"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
)

type vector []fr.Element

type matrix []vector

func newMatrix(n int) matrix {
	m := make(matrix, n)
	for i := range m {
		m[i] = make(vector, n)
	}
	return m
}

func (m matrix) apply(v vector) vector {
	out := make(vector, len(m))
	for i := range m {
		for j := range v {
			var product fr.Element
			product.Mul(&m[i][j], &v[j])
			out[i].Add(&out[i], &product)
		}
	}
	return out
}

func (m matrix) times(o matrix) matrix {
	out := newMatrix(len(m))
	for j := range o {
		column := make(vector, len(o))
		for i := range o {
			column[i] = o[i][j]
		}
		for i, e := range m.apply(column) {
			out[i][j] = e
		}
	}
	return out
}

func (m matrix) transposed() matrix {
	out := newMatrix(len(m))
	for i := range m {
		for j := range m {
			out[j][i] = m[i][j]
		}
	}
	return out
}

// inverse is Gauss-Jordan elimination beside the identity.
func (m matrix) inverse() (matrix, error) {
	n := len(m)
	left, right := newMatrix(n), newMatrix(n)
	for i := range n {
		copy(left[i], m[i])
		right[i][i].SetOne()
	}
	for c := range n {
		pivot := c
		for pivot < n && left[pivot][c].IsZero() {
			pivot++
		}
		if pivot == n {
			return nil, errors.New("matrix is singular: the parameters are not usable")
		}
		left[c], left[pivot] = left[pivot], left[c]
		right[c], right[pivot] = right[pivot], right[c]
		var scale fr.Element
		scale.Inverse(&left[c][c])
		for j := range n {
			left[c][j].Mul(&left[c][j], &scale)
			right[c][j].Mul(&right[c][j], &scale)
		}
		for r := range n {
			if r == c {
				continue
			}
			factor := left[r][c]
			subtractScaled(left[r], left[c], &factor)
			subtractScaled(right[r], right[c], &factor)
		}
	}
	return right, nil
}

func subtractScaled(target, source vector, factor *fr.Element) {
	for j := range target {
		var product fr.Element
		product.Mul(factor, &source[j])
		target[j].Sub(&target[j], &product)
	}
}

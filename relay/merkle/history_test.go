package merkle

import (
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
)

func TestHistory(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		pushes []uint64
		want   map[uint64]int // headroom in a ring of three
	}{
		"an empty ring holds nothing, zero included": {
			want: map[uint64]int{0: -1, 1: -1},
		},
		"the newest root survives two more pushes": {
			pushes: []uint64{1},
			want:   map[uint64]int{0: -1, 1: 2, 2: -1},
		},
		"the fourth push drives the first root out": {
			pushes: []uint64{1, 2, 3, 4},
			want:   map[uint64]int{1: -1, 2: 0, 3: 1, 4: 2},
		},
		"a root pushed again counts from its last push": {
			pushes: []uint64{1, 2, 1, 3},
			want:   map[uint64]int{1: 1, 2: 0, 3: 2},
		},
		"a root pushed again leaves with its last push": {
			pushes: []uint64{1, 2, 1, 3, 4, 5},
			want:   map[uint64]int{1: -1, 3: 0, 4: 1, 5: 2},
		},
		"zero takes a slot and is never valid": {
			pushes: []uint64{1, 0, 0},
			want:   map[uint64]int{0: -1, 1: 0},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, err := NewHistory(3)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range tc.pushes {
				h.Push(fr.NewElement(v))
			}
			for v, want := range tc.want {
				root := fr.NewElement(v)
				if got := h.Headroom(root); got != want {
					t.Errorf("headroom of %d = %d, want %d", v, got, want)
				}
				if got := h.Contains(root); got != (want >= 0) {
					t.Errorf("contains %d = %v, want %v", v, got, want >= 0)
				}
			}
		})
	}
	if _, err := NewHistory(0); err == nil {
		t.Error("a ring of no roots was made")
	}
}

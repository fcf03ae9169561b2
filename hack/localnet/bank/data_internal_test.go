package bank

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestPagedDataBehavesLikeAByteSlice compares pagedData with a plain slice over random writes. At the end
// every earlier version must still have its content.
func TestPagedDataBehavesLikeAByteSlice(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{0, 1, 100, dataPage - 1, dataPage, dataPage + 1, 3 * dataPage, 5*dataPage + 77} {
		model := make([]byte, size)
		for i := range model {
			model[i] = byte(random.Uint32())
		}
		data := paged(bytes.Clone(model))
		type version struct {
			data  pagedData
			model []byte
		}
		var versions []version
		for range 50 {
			versions = append(versions, version{data, bytes.Clone(model)})
			var patches []Patch
			for range random.IntN(4) {
				from := random.IntN(size + 1)
				patch := Patch{Offset: from, Data: make([]byte, random.IntN(min(size-from, 2*dataPage+5)+1))}
				for i := range patch.Data {
					patch.Data[i] = byte(random.Uint32())
				}
				copy(model[from:], patch.Data)
				patches = append(patches, patch)
			}
			data = data.with(patches)
			from := random.IntN(size + 1)
			n := random.IntN(size - from + 1)
			if got := data.read(from, n); !bytes.Equal(got, model[from:from+n]) {
				t.Fatalf("size %d: %d bytes from %d are not what was written", size, n, from)
			}
		}
		versions = append(versions, version{data, model})
		for i, v := range versions {
			if !bytes.Equal(v.data.bytes(), v.model) || v.data.length != size {
				t.Fatalf("size %d: version %d has changed", size, i)
			}
		}
	}
}

func TestPatchOutsideDataPanics(t *testing.T) {
	t.Parallel()
	for name, patch := range map[string]Patch{
		"before the data":       {Offset: -1, Data: []byte{1}},
		"after the data":        {Offset: 11, Data: nil},
		"across the data's end": {Offset: 9, Data: []byte{1, 2}},
	} {
		data := paged(make([]byte, 10))
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			data.with([]Patch{patch})
		}()
	}
}

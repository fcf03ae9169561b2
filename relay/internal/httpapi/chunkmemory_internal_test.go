package httpapi

import (
	"bytes"
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/relaypool/relaypool/relay/internal/commitments"
)

// endlessLeaves is a list whose leaves are their indexes.
type endlessLeaves struct{ Commitments }

func (endlessLeaves) Read(_ context.Context, _, from uint64, limit int) ([]commitments.IndexedCommitment, error) {
	out := make([]commitments.IndexedCommitment, limit)
	for i := range out {
		out[i].Commitment = indexLeaf(from + uint64(i))
	}
	return out, nil
}

func indexLeaf(index uint64) (leaf [leafSize]byte) {
	for i := range 8 {
		leaf[i], leaf[31-i] = byte(index>>(8*i)), byte(index>>(8*i))
	}
	return leaf
}

// Readers read chunks while others drive these out of the cache, and the collector frees them.
func TestChunksThatAreDroppedStayWithTheirReaders(t *testing.T) {
	const most = 8 << 20
	const numbers = 3 * most / (chunkLeaves * leafSize) // three times what the cache takes
	c, err := newChunks(endlessLeaves{}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	c.most = most
	pos := commitments.Position{Published: numbers * chunkLeaves}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var readers sync.WaitGroup
	for reader := range uint64(4) {
		readers.Go(func() {
			for n := range uint64(numbers) {
				number := (n*7 + reader*numbers/4) % numbers
				leaves, err := c.leaves(t.Context(), pos, number)
				if err != nil {
					t.Error(err)
					return
				}
				if n%64 == 0 {
					runtime.GC()
				}
				want := indexLeaf(number*chunkLeaves + 990)
				if got := leaves.appendTo(nil, 990*leafSize, 991*leafSize); !bytes.Equal(got, want[:]) {
					t.Errorf("leaf 990 of chunk %d is %x, want %x", number, got, want)
					return
				}
			}
		})
	}
	readers.Wait()
	var held int
	for _, k := range c.cached {
		held += k.memory.size()
	}
	if c.size != held || held > most {
		t.Errorf("the cache holds %d bytes and counts %d, want the same, and at most %d", held, c.size, most)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if after.HeapAlloc > before.HeapAlloc+most/2 {
		t.Errorf("the heap grew from %d to %d bytes while the cache holds %d, which ought to be outside of it", before.HeapAlloc, after.HeapAlloc, held)
	}
}

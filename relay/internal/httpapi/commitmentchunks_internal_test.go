package httpapi

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/relaypool/relaypool/relay/internal/commitments"
)

// growing has leaves that are their own index, and refuses to read none.
type growing struct {
	Commitments
	reads atomic.Int64
}

func (g *growing) Read(_ context.Context, _, from uint64, limit int) ([]commitments.IndexedCommitment, error) {
	g.reads.Add(1)
	if limit < 1 {
		return nil, fmt.Errorf("a read of %d leaves", limit)
	}
	out := make([]commitments.IndexedCommitment, limit)
	for i := range out {
		binary.BigEndian.PutUint64(out[i].Commitment[24:], from+uint64(i))
	}
	return out, nil
}

// Readers of the last chunk know of different numbers of leaves, and each gets its own.
func TestReadersOfAGrowingChunk(t *testing.T) {
	t.Parallel()
	g := &growing{}
	c, err := newChunks(g, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	var published atomic.Uint64
	published.Store(1)
	var readers sync.WaitGroup
	for range 32 {
		readers.Go(func() {
			for n := published.Load(); n < 400; n = published.Add(1) - 1 {
				got, err := c.leaves(t.Context(), commitments.Position{Published: n}, 0)
				if err != nil || got.memory.size() < int(n)*leafSize {
					t.Errorf("%d leaves: got %d bytes, error %v", n, got.memory.size(), err)
					return
				}
			}
		})
	}
	readers.Wait()
	if g.reads.Load() == 0 {
		t.Error("nothing was read")
	}
}

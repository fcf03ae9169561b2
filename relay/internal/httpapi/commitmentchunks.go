package httpapi

import (
	"context"
	"encoding/hex"
	"math"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/relaypool/relaypool/relay/internal/commitments"
)

const (
	// chunkLeaves is how many leaves are encoded together. Their text has 100 KB. A stalled
	// reader keeps at most one such chunk in memory.
	chunkLeaves = 1024
	// maxChunks is how many encoded chunks are cached for all readers together: 25 MB.
	maxChunks = 256

	leafText, indexText, entryEnd = `{"commitment":"`, `","index":`, `},`
	// entrySize is the size in bytes of an entry with its comma, without the digits of
	// its index.
	entrySize = len(leafText) + 2*32 + len(indexText) + len(entryEnd)
)

// chunkName names chunkLeaves consecutive published leaves. Within a generation these
// leaves do not change.
type chunkName struct{ generation, number uint64 }

// chunks encodes published leaves, and caches whole chunks for other readers.
type chunks struct {
	source Commitments
	// timeout bounds one read of the database, for which several readers may wait.
	timeout time.Duration

	loading singleflight.Group
	mu      sync.Mutex
	cached  map[chunkName][]byte
}

func newChunks(source Commitments, timeout time.Duration) *chunks {
	return &chunks{source: source, timeout: timeout, cached: map[chunkName][]byte{}}
}

// read returns the encoded leaves [from, to), but stops at the end of the chunk that contains
// the first of them. Each entry ends with a comma; next is the index after the last entry.
// Only fully published chunks are shared between readers.
func (c *chunks) read(ctx context.Context, pos commitments.Position, from, to uint64) (text []byte, next uint64, err error) {
	number := from / chunkLeaves
	first, end := number*chunkLeaves, (number+1)*chunkLeaves
	next = min(to, end)
	if end > pos.Published {
		text, err = c.readChunk(ctx, pos.Generation, from, next)
		return text, next, err
	}
	text, err = c.cachedOrRead(ctx, chunkName{pos.Generation, number})
	if err != nil {
		return nil, 0, err
	}
	return text[textSize(first, from):textSize(first, next)], next, nil
}

// cachedOrRead returns a chunk. One read serves all concurrent requests for it, and a
// client that disconnects does not cancel the read for the others.
func (c *chunks) cachedOrRead(ctx context.Context, name chunkName) ([]byte, error) {
	c.mu.Lock()
	text := c.cached[name]
	c.mu.Unlock()
	if text != nil {
		return text, nil
	}
	key := strconv.FormatUint(name.generation, 10) + "/" + strconv.FormatUint(name.number, 10)
	loaded := c.loading.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.timeout)
		defer cancel()
		text, err := c.readChunk(ctx, name.generation, name.number*chunkLeaves, (name.number+1)*chunkLeaves)
		if err == nil {
			c.store(name, text)
		}
		return text, err
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case result := <-loaded:
		text, _ := result.Val.([]byte)
		return text, result.Err
	}
}

// store caches a chunk. It drops the chunks of other generations. While the cache is full, it
// drops arbitrary chunks. It hardly matters which, because clients read whole lists.
func (c *chunks) store(name chunkName, text []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for other := range c.cached {
		if other.generation != name.generation {
			delete(c.cached, other)
		}
	}
	for other := range c.cached {
		if len(c.cached) < maxChunks {
			break
		}
		delete(c.cached, other)
	}
	c.cached[name] = text
}

// readChunk reads and encodes leaves. If the store returns fewer leaves than requested, a rewind
// has removed some of them. A rewind also ends the generation, so readChunk returns ErrMoved.
func (c *chunks) readChunk(ctx context.Context, generation, from, to uint64) ([]byte, error) {
	leaves, err := c.source.Read(ctx, generation, from, int(to-from)) //nolint:gosec // a chunk's size at most
	if err != nil {
		return nil, err
	}
	if uint64(len(leaves)) != to-from {
		return nil, commitments.ErrMoved
	}
	text := make([]byte, 0, textSize(from, to))
	for i := range leaves {
		text = append(text, leafText...)
		text = hex.AppendEncode(text, leaves[i].Commitment[:])
		text = append(text, indexText...)
		text = strconv.AppendUint(text, from+uint64(i), 10)
		text = append(text, entryEnd...)
	}
	return text, nil
}

// textSize is the size in bytes of the entries [from, to), each with its comma.
func textSize(from, to uint64) int64 {
	size := int64(to-from) * int64(entrySize) //nolint:gosec // an answer's leaves at most
	for from < to {
		// Indexes with as many digits as from are counted together.
		digits := len(strconv.FormatUint(from, 10))
		end := min(to, uint64(math.Pow10(digits)))
		size += int64(end-from) * int64(digits) //nolint:gosec // as above
		from = end
	}
	return size
}

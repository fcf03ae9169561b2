package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/relaypool/relaypool/relay/internal/commitments"
)

const (
	leafSize = 32
	// chunkLeaves is how many leaves are read and compressed together. As JSON they have 100 KB. Pages
	// of maxCommitments leaves have whole chunks, which are compressed once.
	chunkLeaves = 1000
	// MaxCached is how many bytes of chunks are cached for all readers together, outside Go's heap. A
	// million leaves have 31 MiB, and 36 MiB as compressed JSON.
	MaxCached = 80 << 20
)

const _ = uint(-(maxCommitments % chunkLeaves)) // does not compile unless it is 0

// chunkName names the published leaves of a chunk in a format, which is not plainJSON: writing JSON
// costs less than reading it from memory. Within a generation these leaves do not change.
type chunkName struct {
	generation, number uint64
	format             format
}

// chunk is chunkLeaves consecutive leaves, or fewer at the end of the list. sum and text are the
// checksum and the length of their JSON, if they are compressed.
type chunk struct {
	*memory
	sum  uint32
	text int64
}

// chunks reads and compresses published leaves, and caches them for other readers.
type chunks struct {
	source Commitments
	// timeout bounds one read of the database, for which several readers may wait.
	timeout     time.Duration
	compressors map[format]compressor

	loading singleflight.Group
	mu      sync.Mutex
	cached  map[chunkName]chunk
	size    int // of what is cached
	most    int // what size may be
}

func newChunks(source Commitments, timeout time.Duration) (*chunks, error) {
	compressors, err := newCompressors()
	if err != nil {
		return nil, err
	}
	return &chunks{source: source, timeout: timeout, compressors: compressors, cached: map[chunkName]chunk{}, most: MaxCached}, nil
}

// leaves returns the published leaves of a chunk; some more may follow them.
func (c *chunks) leaves(ctx context.Context, pos commitments.Position, number uint64) (chunk, error) {
	first := number * chunkLeaves
	size := int(min(chunkLeaves, pos.Published-first)) * leafSize
	name := chunkName{pos.Generation, number, rawLeaves}
	return c.get(ctx, name, size, func(ctx context.Context) (chunk, error) {
		have := c.find(name)
		if have.memory.size() >= size { // another request has stored it meanwhile
			return have, nil
		}
		out := have.appendTo(make([]byte, 0, size), 0, have.memory.size())
		from := first + uint64(len(out)/leafSize)
		more, err := c.source.Read(ctx, pos.Generation, from, (size-len(out))/leafSize)
		if err != nil {
			return chunk{}, err
		}
		for i := range more {
			out = append(out, more[i].Commitment[:]...)
		}
		if len(out) != size { // a rewind has removed some, which ends the generation
			return chunk{}, commitments.ErrMoved
		}
		return chunk{memory: newMemory(out)}, nil
	})
}

// compressed returns the compressed JSON of a chunk all of whose leaves are published.
func (c *chunks) compressed(ctx context.Context, pos commitments.Position, number uint64, f format) (chunk, error) {
	return c.get(ctx, chunkName{pos.Generation, number, f}, 1, func(ctx context.Context) (chunk, error) {
		leaves, err := c.leaves(ctx, pos, number)
		if err != nil {
			return chunk{}, err
		}
		first, end := number*chunkLeaves, (number+1)*chunkLeaves
		text := entries(make([]byte, 0, textSize(first, end)), leaves.appendTo(nil, 0, chunkLeaves*leafSize), first)
		compressed, err := c.compressors[f].compress(text)
		if err != nil {
			return chunk{}, err
		}
		return chunk{newMemory(compressed), checksum(text), int64(len(text))}, nil
	})
}

// get returns a chunk that has at least so many bytes. One call of load serves all concurrent
// requests for it, and a client that disconnects does not cancel it for the others.
func (c *chunks) get(ctx context.Context, name chunkName, least int, load func(context.Context) (chunk, error)) (chunk, error) {
	if found := c.find(name); found.memory.size() >= least {
		return found, nil
	}
	loaded := c.loading.DoChan(fmt.Sprint(name, least), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.timeout)
		defer cancel()
		made, err := load(ctx)
		if err == nil {
			c.store(name, made)
		}
		return made, err
	})
	select {
	case <-ctx.Done():
		return chunk{}, ctx.Err()
	case result := <-loaded:
		made, _ := result.Val.(chunk)
		return made, result.Err
	}
}

func (c *chunks) find(name chunkName) chunk {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cached[name]
}

// store caches a chunk. It drops the chunks of other generations. While the cache is full, it
// drops arbitrary chunks. It hardly matters which, because clients read whole lists.
func (c *chunks) store(name chunkName, made chunk) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(name)
	c.size += made.memory.size()
	for other := range c.cached {
		if other.generation != name.generation {
			c.remove(other)
		}
	}
	for other := range c.cached {
		if c.size <= c.most {
			break
		}
		c.remove(other)
	}
	c.cached[name] = made
}

func (c *chunks) remove(name chunkName) {
	c.size -= c.cached[name].memory.size()
	delete(c.cached, name)
}

// compare drops all chunks if the cached newest leaf is not the stored one: the database was
// restored, and has other leaves of the same generation.
func (c *chunks) compare(pos commitments.Position, newest [leafSize]byte) {
	if pos.Published == 0 {
		return
	}
	last := pos.Published - 1
	at := int(last%chunkLeaves) * leafSize
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.cached[chunkName{pos.Generation, last / chunkLeaves, rawLeaves}]
	if known.memory.size() >= at+leafSize && !bytes.Equal(known.appendTo(nil, at, at+leafSize), newest[:]) {
		clear(c.cached)
		c.size = 0
	}
}

package httpapi

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/internal/commitments"
)

const (
	leafSize = 32
	// chunkLeaves is how many leaves are read and encoded together. As JSON they have 100 KB. Pages
	// of maxCommitments leaves have whole chunks, which are encoded once.
	chunkLeaves = 1000
)

const _ = uint(-(maxCommitments % chunkLeaves)) // does not compile unless it is 0

// chunks reads and encodes published leaves, and stores them for other readers.
type chunks struct {
	source   Commitments
	timeout  time.Duration
	log      *slog.Logger
	encoders map[format]encoder

	mu    sync.Mutex
	store *chunkStore // of the generation that was last asked for
}

func newChunks(source Commitments, timeout time.Duration, l *slog.Logger) (*chunks, error) {
	encoders, err := newEncoders()
	if err != nil {
		return nil, err
	}
	store, err := newChunkStore(0, timeout, l)
	if err != nil {
		return nil, err
	}
	return &chunks{source: source, timeout: timeout, log: l, encoders: encoders, store: store}, nil
}

// of returns the store of a generation.
func (c *chunks) of(generation uint64) *chunkStore {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.store.generation != generation {
		c.replace(generation)
	}
	return c.store
}

// compare empties the store if its newest leaf is not the database's: that was
// restored, and has other leaves of the same generation.
func (c *chunks) compare(pos commitments.Position, newest [leafSize]byte) error {
	if pos.Published == 0 {
		return nil
	}
	s, last := c.of(pos.Generation), pos.Published-1
	at := int(last%chunkLeaves) * leafSize
	known := s.find(chunkName{last / chunkLeaves, rawLeaves})
	if known.size < at+leafSize {
		return nil
	}
	leaf, err := known.appendTo(nil, at, at+leafSize)
	if err != nil || bytes.Equal(leaf, newest[:]) {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.store == s {
		c.replace(pos.Generation)
	}
	return nil
}

func (c *chunks) replace(generation uint64) {
	var err error
	if c.store, err = newChunkStore(generation, c.timeout, c.log); err != nil {
		c.log.Warn("the list of commitments is encoded for each request until it is read from the chain anew", "error", err)
	}
}

// leaves returns the leaves of a chunk in binary, of which so many are published in all; some more
// may follow them.
func (c *chunks) leaves(ctx context.Context, s *chunkStore, published, number uint64) (chunk, error) {
	first := number * chunkLeaves
	size := int(min(chunkLeaves, published-first)) * leafSize
	name := chunkName{number, rawLeaves}
	return s.get(ctx, name, size, func(ctx context.Context) (chunk, error) {
		have := s.find(name)
		if have.size >= size { // another request has stored it meanwhile
			return have, nil
		}
		out, err := have.appendTo(make([]byte, 0, size), 0, have.size)
		if err != nil {
			return chunk{}, err
		}
		more, err := c.source.Read(ctx, s.generation, first+uint64(have.size/leafSize), (size-have.size)/leafSize) //nolint:gosec // a chunk's size at most
		if err != nil {
			return chunk{}, err
		}
		for i := range more {
			out = append(out, more[i].Commitment[:]...)
		}
		if len(out) != size { // a rewind has removed some, which ends the generation
			return chunk{}, commitments.ErrMoved
		}
		return chunk{text: out, size: size}, nil
	})
}

// encoded returns a chunk all of whose leaves are published, as a part of a list: with the comma
// after it, if its format has one.
func (c *chunks) encoded(ctx context.Context, s *chunkStore, number uint64, f format) (chunk, error) {
	first, end := number*chunkLeaves, (number+1)*chunkLeaves
	if f == rawLeaves {
		return c.leaves(ctx, s, end, number)
	}
	return s.get(ctx, chunkName{number, f}, 1, func(ctx context.Context) (chunk, error) {
		leaves, err := c.leaves(ctx, s, end, number)
		if err != nil {
			return chunk{}, err
		}
		raw, err := leaves.appendTo(nil, 0, chunkLeaves*leafSize)
		if err != nil {
			return chunk{}, err
		}
		text := entries(make([]byte, 0, textSize(first, end)), raw, first)
		out, err := c.encoders[f].encode(text)
		if err != nil {
			return chunk{}, err
		}
		out = c.encoders[f].verbatim(out, ",")
		return chunk{text: out, size: len(out), sum: checksum(text), length: int64(len(text))}, nil
	})
}

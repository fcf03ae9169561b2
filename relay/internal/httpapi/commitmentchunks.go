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
	return &chunks{source: source, timeout: timeout, log: l, encoders: encoders, store: newChunkStore(0, timeout, l)}, nil
}

// has reports whether the store is that of a generation.
func (c *chunks) has(generation uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.store.generation == generation
}

// of returns the store of a generation, the newest one.
func (c *chunks) of(generation uint64) *chunkStore {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.store.generation != generation {
		c.store = newChunkStore(generation, c.timeout, c.log)
	}
	return c.store
}

// drop replaces a store by an empty one of its generation.
func (c *chunks) drop(s *chunkStore) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.store == s {
		c.store = newChunkStore(s.generation, c.timeout, c.log)
	}
}

// appendTo appends a chunk's bytes [from, end) to a text. If the file cannot be read, the store is
// dropped, and the error is ErrMoved: the database still has the leaves.
func (c *chunks) appendTo(text []byte, s *chunkStore, of chunk, from, end int) ([]byte, error) {
	text, err := of.appendTo(text, from, end)
	if err != nil {
		c.log.Warn("stored list of commitments dropped, because it cannot be read", "error", err)
		c.drop(s)
		return text, commitments.ErrMoved
	}
	return text, nil
}

// compare drops the store if its newest leaf is not the database's: that was
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
	leaf, err := c.appendTo(nil, s, known, at, at+leafSize)
	if err == nil && !bytes.Equal(leaf, newest[:]) {
		c.drop(s)
	}
	return err
}

// leaves returns the leaves of a chunk in binary, of which so many are published in all; some more
// may follow them.
func (c *chunks) leaves(ctx context.Context, s *chunkStore, published, number uint64) (chunk, error) {
	size := int(min(chunkLeaves, published-number*chunkLeaves)) * leafSize
	name := chunkName{number, rawLeaves}
	return s.get(ctx, name, size, func(ctx context.Context) (chunk, error) {
		have := s.find(name)
		if have.size >= size { // another request has stored it meanwhile
			return have, nil
		}
		out, err := c.appendTo(make([]byte, 0, size), s, have, 0, have.size)
		if err == nil {
			out, err = c.read(ctx, s, number, out, size)
		}
		return chunk{text: out, size: size}, err
	})
}

// read appends the leaves of a chunk that come after those that are known, until it has so many bytes.
// It reads the leaf before them again, if that is stored: a database that was restored may have another one.
func (c *chunks) read(ctx context.Context, s *chunkStore, number uint64, out []byte, size int) ([]byte, error) {
	from := number*chunkLeaves + uint64(len(out)/leafSize)
	before := out[max(0, len(out)-leafSize):]
	if len(out) == 0 && number > 0 {
		if previous := s.find(chunkName{number - 1, rawLeaves}); previous.size == chunkLeaves*leafSize {
			var err error
			if before, err = c.appendTo(nil, s, previous, previous.size-leafSize, previous.size); err != nil {
				return nil, err
			}
		}
	}
	overlap := len(before) / leafSize
	more, err := c.source.Read(ctx, s.generation, from-uint64(overlap), (size-len(out))/leafSize+overlap)
	if err != nil {
		return nil, err
	}
	for i := range more {
		switch leaf := more[i].Commitment[:]; {
		case i >= overlap:
			out = append(out, leaf...)
		case !bytes.Equal(leaf, before):
			c.drop(s)
			return nil, commitments.ErrMoved
		}
	}
	if len(out) != size { // a rewind has removed some, which ends the generation
		return nil, commitments.ErrMoved
	}
	return out, nil
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
		raw, err := c.appendTo(nil, s, leaves, 0, chunkLeaves*leafSize)
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

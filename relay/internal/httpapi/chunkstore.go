package httpapi

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// maxStored is how many bytes of chunks a store's file holds. A million leaves have 97 MB as JSON,
// some 37 MB compressed, and 32 MB in binary. Binary leaves are stored beyond it, because every answer
// needs some of the newest.
const maxStored = 512 << 20

// chunkName names a chunk of published leaves in a format.
type chunkName struct {
	number uint64
	format format
}

// chunk is chunkLeaves consecutive leaves in a format, or fewer at the end of the list: size bytes
// of a file, or a text, while it is not in the file.
type chunk struct {
	file *os.File
	at   int64
	text []byte
	size int
	// sum and length are the checksum and the length of the chunk's JSON.
	sum    uint32
	length int64
}

// appendTo appends the bytes [from, end) to a text.
func (c *chunk) appendTo(text []byte, from, end int) ([]byte, error) {
	if c.file == nil {
		return append(text, c.text[from:end]...), nil
	}
	have := len(text)
	text = slices.Grow(text, end-from)[:have+end-from]
	if _, err := c.file.ReadAt(text[have:], c.at+int64(from)); err != nil {
		return nil, fmt.Errorf("read stored leaves: %w", err)
	}
	return text, nil
}

// extentName names the extent of a store's file for the chunks of one page, which are sent together.
type extentName struct {
	page   uint64
	format format
}

// extent starts at a byte of the file, and its first size bytes are reserved.
type extent struct{ start, size int64 }

// extentSize is the most that an extent holds: more than a page of JSON. The file is sparse, so that what
// is not written uses no disk.
const extentSize = 16 << 20

// chunkStore holds the chunks of one generation, whose leaves do not change. They are in a file without a
// name: the kernel sends those of an answer of known length from there without a copy in the relay's memory,
// and the file's space is free once nothing refers to the store.
type chunkStore struct {
	generation uint64
	// timeout bounds one read of the database, for which several readers may wait.
	timeout time.Duration
	log     *slog.Logger
	file    *os.File // nil if none could be made
	loading singleflight.Group
	warn    sync.Once

	mu      sync.Mutex
	chunks  map[chunkName]chunk
	extents map[extentName]*extent
	used    int64 // bytes of the file
	most    int64 // what used may be
}

// newChunkStore makes a store. If it cannot make a file, it stores nothing.
func newChunkStore(generation uint64, timeout time.Duration, l *slog.Logger) *chunkStore {
	s := &chunkStore{generation: generation, timeout: timeout, log: l, chunks: map[chunkName]chunk{}, extents: map[extentName]*extent{}}
	file, err := os.CreateTemp("", "relay-list-*")
	if err == nil {
		err = os.Remove(file.Name())
	}
	if err != nil {
		l.Warn("list of commitments is encoded for each request: TMPDIR has to name a folder that the relay may write to", "error", err)
		return s
	}
	s.file, s.most = file, maxStored
	return s
}

// get returns a chunk that has at least so many bytes. One call of load serves all concurrent
// requests for it, and a client that disconnects does not cancel it for the others.
func (s *chunkStore) get(ctx context.Context, name chunkName, least int, load func(context.Context) (chunk, error)) (chunk, error) {
	if found := s.find(name); found.size >= least {
		return found, nil
	}
	loaded := s.loading.DoChan(fmt.Sprint(name, least), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
		defer cancel()
		made, err := load(ctx)
		if err == nil {
			made = s.put(name, made)
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

// find returns a chunk, or one of no bytes.
func (s *chunkStore) find(name chunkName) chunk {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.chunks[name]
}

// put moves a chunk to the file, and returns the one there; if the file takes no more, it
// returns the chunk itself. A chunk that has grown stays where it is. What is there is not written
// again, because the kernel may be sending it.
func (s *chunkStore) put(name chunkName, made chunk) chunk {
	if s.file == nil {
		return made
	}
	if stored := s.find(name); stored.size >= made.size {
		return stored
	}
	at, ok := s.reserve(name, int64(made.size))
	if !ok {
		return made
	}
	if _, err := s.file.WriteAt(made.text, at); err != nil {
		s.warn.Do(func() {
			s.log.Warn("storing the list of commitments failed; it is encoded for each request until that succeeds", "error", err)
		})
		return made
	}
	made.file, made.at, made.text = s.file, at, nil
	s.mu.Lock()
	defer s.mu.Unlock()
	if made.size > s.chunks[name].size {
		s.chunks[name] = made
	}
	return made
}

// reserve returns where in the file a chunk is, or will be: after the last one of its page, unless
// the file takes no more.
func (s *chunkStore) reserve(name chunkName, size int64) (at int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stored := s.chunks[name]; stored.file != nil {
		return stored.at, true
	}
	if name.format == rawLeaves {
		size = chunkLeaves * leafSize // it grows
	}
	of := extentName{name.number / (maxCommitments / chunkLeaves), name.format}
	e := s.extents[of]
	if e == nil {
		e = &extent{start: int64(len(s.extents)) * extentSize}
		s.extents[of] = e
	}
	if name.format != rawLeaves && s.used+size > s.most || e.size+size > extentSize {
		return 0, false
	}
	at = e.start + e.size
	e.size += size
	s.used += size
	s.chunks[name] = chunk{file: s.file, at: at}
	return at, true
}

// reader returns a reader of the file with a position of its own, and what closes it.
func (s *chunkStore) reader() (io.ReadSeeker, func() error) {
	if own, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", s.file.Fd())); err == nil {
		return own, own.Close
	}
	// Only Linux has such names. From this other reader, bytes are copied.
	return io.NewSectionReader(s.file, 0, math.MaxInt64), func() error { return nil }
}

package httpapi

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
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

// leavesOf returns the leaves of a chunk, and checks that each is its own index.
func leavesOf(t *testing.T, c *chunks, s *chunkStore, published, number uint64) (chunk, bool) {
	t.Helper()
	got, err := c.leaves(t.Context(), s, published, number)
	if err != nil {
		t.Error(err)
		return got, false
	}
	text, err := got.appendTo(nil, 0, got.size)
	if err != nil {
		t.Error(err)
		return got, false
	}
	for i := 0; i < len(text); i += leafSize {
		if index := binary.BigEndian.Uint64(text[i+24:]); index != number*chunkLeaves+uint64(i/leafSize) {
			t.Errorf("leaf %d of chunk %d is %d", i/leafSize, number, index)
			return got, false
		}
	}
	return got, true
}

func newTestChunks(t *testing.T, source Commitments) *chunks {
	t.Helper()
	c, err := newChunks(source, time.Minute, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Readers of the last chunk know of different numbers of leaves, and each gets its own.
func TestReadersOfAGrowingChunk(t *testing.T) {
	t.Parallel()
	g := &growing{}
	c := newTestChunks(t, g)
	var published atomic.Uint64
	published.Store(1)
	var readers sync.WaitGroup
	for range 32 {
		readers.Go(func() {
			for n := published.Load(); n < 400; n = published.Add(1) - 1 {
				if got, ok := leavesOf(t, c, c.store, n, 0); !ok || got.size < int(n)*leafSize {
					t.Errorf("%d leaves: got %d bytes", n, got.size)
					return
				}
			}
		})
	}
	readers.Wait()
	if g.reads.Load() == 0 || c.store.used != chunkLeaves*leafSize {
		t.Errorf("%d reads filled %d bytes, want some reads and the bytes of one chunk", g.reads.Load(), c.store.used)
	}
}

func TestChunksThatAreNotStored(t *testing.T) {
	t.Parallel()
	const chunks = 8
	room := textSize(0, 3*chunkLeaves)
	cases := map[string]struct {
		unstore              func(t *testing.T, s *chunkStore)
		wantLeaves, wantJSON int
	}{
		"are JSON that the file has no room for": {unstore: func(_ *testing.T, s *chunkStore) { s.most = chunks*chunkLeaves*leafSize + room }, wantLeaves: chunks, wantJSON: 3},
		"are all if the file cannot be written": {unstore: func(t *testing.T, s *chunkStore) {
			t.Helper()
			if err := s.file.Close(); err != nil {
				t.Fatal(err)
			}
		}},
		"are all if no file could be made": {unstore: func(_ *testing.T, s *chunkStore) { s.file = nil }},
	}
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newTestChunks(t, &growing{})
			tt.unstore(t, c.store)
			var leaves, text int
			for range 2 {
				leaves, text = 0, 0
				for number := range uint64(chunks) {
					if got, ok := leavesOf(t, c, c.store, chunks*chunkLeaves, number); ok && got.file != nil {
						leaves++
					}
				}
				for number := range uint64(chunks) {
					got, err := c.encoded(t.Context(), c.store, number, plainJSON)
					if err != nil || int64(got.size) != textSize(number*chunkLeaves, (number+1)*chunkLeaves) {
						t.Errorf("chunk %d has %d bytes of JSON, error %v", number, got.size, err)
					}
					if got.file != nil {
						text++
					}
				}
			}
			if leaves != tt.wantLeaves || text != tt.wantJSON {
				t.Errorf("%d chunks are stored in binary and %d as JSON, want %d and %d", leaves, text, tt.wantLeaves, tt.wantJSON)
			}
		})
	}
}

// A reader that has begun keeps the leaves of its generation.
func TestAStoreOutlivesItsGeneration(t *testing.T) {
	t.Parallel()
	c := newTestChunks(t, &growing{})
	before := c.of(7)
	got, _ := leavesOf(t, c, before, chunkLeaves, 0)
	if err := c.compare(commitments.Position{Generation: 7, Published: chunkLeaves}, [leafSize]byte{1}); err != nil {
		t.Fatal(err)
	}
	restored := c.of(7)
	if restored == before || restored.find(chunkName{0, rawLeaves}).size != 0 {
		t.Error("leaves of a database that was restored are still served")
	}
	if c.of(8) == restored || c.of(7) == restored {
		t.Error("another generation has the same leaves")
	}
	for range 3 {
		runtime.GC() // a file that nothing refers to is closed
	}
	if _, ok := leavesOf(t, c, before, chunkLeaves, 0); !ok || got.file == nil {
		t.Error("a reader lost its leaves")
	}
}

func TestARelayThatCannotStoreTheListSaysSo(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	var log bytes.Buffer
	c, err := newChunks(&growing{}, time.Minute, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil || !strings.Contains(log.String(), "TMPDIR") {
		t.Errorf("the log is %q, want that it names TMPDIR; error %v", log.String(), err)
	}
	leavesOf(t, c, c.store, chunkLeaves, 0)
}

// differing has leaves that another database does not have.
type differing struct {
	Commitments
	from uint64
	by   byte
}

func (d *differing) Read(_ context.Context, _, from uint64, limit int) ([]commitments.IndexedCommitment, error) {
	out := make([]commitments.IndexedCommitment, limit)
	for i := range out {
		binary.BigEndian.PutUint64(out[i].Commitment[24:], from+uint64(i))
		if from+uint64(i) >= d.from {
			out[i].Commitment[0] = d.by
		}
	}
	return out, nil
}

func TestStoredLeavesOfARestoredDatabase(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]uint64{"in the chunk of what comes next": 600, "in the chunk before it": chunkLeaves + 100} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &differing{from: 400, by: 1}
			c := newTestChunks(t, d)
			before := c.store
			known := min(after-100, chunkLeaves)
			if _, err := c.leaves(t.Context(), before, known, 0); err != nil {
				t.Fatal(err)
			}
			d.by = 2 // restored
			if _, err := c.leaves(t.Context(), before, after, (after-1)/chunkLeaves); !errors.Is(err, commitments.ErrMoved) {
				t.Errorf("the error is %v, want that the list is read anew", err)
			}
			got, err := c.leaves(t.Context(), c.of(0), after, 0)
			if err != nil {
				t.Fatal(err)
			}
			if leaf, err := got.appendTo(nil, 400*leafSize, 401*leafSize); err != nil || leaf[0] != 2 {
				t.Errorf("leaf 400 is %x, want the restored one, error %v", leaf, err)
			}
		})
	}
}

// Parts of an answer are stored bytes and text in turn when not all chunks are in the file.
func TestAnswersOfChunksSomeOfWhichAreStored(t *testing.T) {
	t.Parallel()
	answer := func(a *api, f format, from, to uint64) (text []byte) {
		l := &list{listRequest: listRequest{from: from, format: f}, pos: commitments.Position{Published: 10 * chunkLeaves}, store: a.chunks.store, to: to, next: from}
		for !l.ended {
			if err := a.nextPart(t.Context(), l); err != nil {
				t.Error(err)
				return nil
			}
			text = append(text, l.text...)
			if l.stored.size > 0 {
				var err error
				if text, err = l.stored.appendTo(text, 0, l.stored.size); err != nil {
					t.Error(err)
				}
			}
		}
		if size, known := a.length(l); known && size != int64(len(text)) {
			t.Errorf("%s of [%d, %d) has %d bytes, its Content-Length is %d", f, from, to, len(text), size)
		}
		return text
	}
	for _, f := range []format{plainJSON, zstdJSON, gzipJSON, rawLeaves} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			all, some := &api{chunks: newTestChunks(t, &growing{})}, &api{chunks: newTestChunks(t, &growing{})}
			none := &api{chunks: newTestChunks(t, &growing{})}
			none.chunks.store.file = nil
			for _, number := range []uint64{2, 3, 6} {
				if _, err := some.chunks.encoded(t.Context(), some.chunks.store, number, f); err != nil {
					t.Fatal(err)
				}
			}
			some.chunks.store.most = 0
			for _, page := range [][2]uint64{{0, 10_000}, {2000, 7000}, {1500, 6500}, {6000, 7000}, {5999, 7001}} {
				want := answer(none, f, page[0], page[1])
				for name, a := range map[string]*api{"all": all, "some": some} {
					for range 2 {
						if got := answer(a, f, page[0], page[1]); !bytes.Equal(got, want) {
							t.Errorf("leaves [%d, %d) with %s chunks stored have %d bytes, want the %d of an answer without any", page[0], page[1], name, len(got), len(want))
						}
					}
				}
			}
		})
	}
}

// An answer without Content-Length would otherwise end as if it were complete.
func TestAnAnswerWhoseFileCannotBeReadBreaksOff(t *testing.T) {
	t.Parallel()
	for _, f := range []format{plainJSON, zstdJSON, gzipJSON, rawLeaves} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			const leaves = 2*chunkLeaves + 10
			now := time.Now
			a := &api{Options: Options{Now: now, ListStall: time.Minute, ListTime: time.Minute, CallTimeout: time.Minute}, chunks: newTestChunks(t, &growing{})}
			pos := commitments.Position{Published: leaves}
			l := &list{listRequest: listRequest{format: f, began: now()}, pos: pos, store: a.chunks.store, to: leaves}
			if err := a.nextPart(t.Context(), l); err != nil || l.stored.size == 0 {
				t.Fatalf("the first part has %d stored bytes, error %v", l.stored.size, err)
			}
			if err := l.store.file.Truncate(10); err != nil {
				t.Fatal(err)
			}
			if err := a.writeList(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil), l); !errors.Is(err, commitments.ErrMoved) {
				t.Errorf("an answer whose leaves are lost ends with the error %v", err)
			}
			// The database still has them.
			again := &list{listRequest: l.listRequest, pos: pos, store: a.chunks.of(0), to: leaves}
			if err := a.nextPart(t.Context(), again); err != nil || again.store == l.store {
				t.Errorf("the store was not replaced, error %v", err)
			}
		})
	}
}

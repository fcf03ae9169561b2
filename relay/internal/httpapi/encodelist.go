package httpapi

import (
	"context"
	"encoding/hex"
	"math"
	"strconv"
	"sync"
)

const (
	listHead, listTail            = `{"commitments":[`, `],"count":`
	leafText, indexText, entryEnd = `{"commitment":"`, `","index":`, `},`
	// entrySize is the size in bytes of an entry with its comma, without the digits of
	// its index.
	entrySize = len(leafText) + 2*leafSize + len(indexText) + len(entryEnd)
	// writeSize is how much text is sent at once, at least, and how many stored bytes, at most: fewer
	// calls of the kernel, each of which has a deadline.
	writeSize = 128 << 10
)

// entries appends the JSON of leaves, from the index on, with commas between them.
func entries(text, leaves []byte, index uint64) []byte {
	for ; len(leaves) > 0; leaves = leaves[leafSize:] {
		text = append(text, leafText...)
		text = hex.AppendEncode(text, leaves[:leafSize])
		text = append(text, indexText...)
		text = strconv.AppendUint(text, index, 10)
		text = append(text, entryEnd...)
		index++
	}
	return text[:len(text)-1]
}

func (l *list) tail() string { return listTail + strconv.FormatUint(l.to-l.from, 10) + "}\n" }

// length is the length of the whole answer, if that is known before it is made. Of a compressed
// answer it is once all of it is stored.
func (a *api) length(l *list) (size int64, known bool) {
	e := a.chunks.encoders[l.format]
	ends := len(e.start) + len(e.verbatim(nil, listHead)) + len(e.verbatim(nil, l.tail())) + len(e.end(nil, 0, 0))
	if l.to > l.from {
		ends -= len(e.verbatim(nil, ",")) // after the last leaf
	}
	switch l.format {
	case rawLeaves:
		size = int64(l.to-l.from) * leafSize //nolint:gosec // an answer's leaves at most
	case plainJSON:
		size = textSize(l.from, l.to)
	default:
		if l.from%chunkLeaves != 0 || l.to%chunkLeaves != 0 {
			return 0, false
		}
		for number := l.from / chunkLeaves; number < l.to/chunkLeaves; number++ {
			stored := l.store.find(chunkName{number, l.format})
			if stored.size == 0 {
				return 0, false
			}
			size += int64(stored.size)
		}
	}
	return size + int64(ends), true
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

// nextPart replaces the text and the stored bytes after it by the next part of the answer.
func (a *api) nextPart(ctx context.Context, l *list) error {
	l.text, l.stored = l.text[:0], chunk{}
	e := a.chunks.encoders[l.format]
	if l.next == l.from {
		l.text = l.verbatim(e, append(l.text, e.start...), listHead)
	}
	for fits := true; fits && l.next < l.to && len(l.text) < writeSize; {
		var err error
		if fits, err = a.nextChunk(ctx, l, e); err != nil {
			return err
		}
	}
	if l.next == l.to && l.stored.size == 0 {
		l.text = e.end(l.verbatim(e, l.text, l.tail()), l.sum, l.size)
		l.ended = true
	}
	return nil
}

// nextChunk adds the answer's leaves of one chunk to its next part, if they fit.
func (a *api) nextChunk(ctx context.Context, l *list, e encoder) (fits bool, err error) {
	number, from := l.next/chunkLeaves, l.next
	first, end := number*chunkLeaves, min(l.to, (number+1)*chunkLeaves)
	if from == first && end-from == chunkLeaves {
		return a.fullChunk(ctx, l, e, number)
	}
	if l.stored.size > 0 {
		return false, nil
	}
	return true, a.someLeaves(ctx, l, e, end)
}

// someLeaves adds a chunk's leaves before an index to the text.
func (a *api) someLeaves(ctx context.Context, l *list, e encoder, end uint64) error {
	number, from := l.next/chunkLeaves, l.next
	first := number * chunkLeaves
	l.next = end
	leaves, err := a.chunks.leaves(ctx, l.store, l.pos.Published, number)
	if err != nil {
		return err
	}
	some := a.buffers.get()
	defer a.buffers.put(some)
	if *some, err = a.chunks.appendTo((*some)[:0], l.store, leaves, int(from-first)*leafSize, int(end-first)*leafSize); err != nil { //nolint:gosec // a chunk's size at most
		return err
	}
	switch l.format {
	case rawLeaves:
		l.text = append(l.text, *some...)
		return nil
	case plainJSON:
		l.text = entries(l.text, *some, from)
	default:
		text := entries(make([]byte, 0, textSize(from, end)), *some, from)
		encoded, err := e.encode(text)
		if err != nil {
			return err
		}
		l.text = append(l.text, encoded...)
		l.count(e, checksum(text), int64(len(text)))
	}
	if end < l.to {
		l.text = l.verbatim(e, l.text, ",")
	}
	return nil
}

// fullChunk adds a whole chunk to the answer's next part, without the comma after the last one. It
// fits if it comes after the part's stored bytes in the file, too.
func (a *api) fullChunk(ctx context.Context, l *list, e encoder, number uint64) (fits bool, err error) {
	c, err := a.chunks.encoded(ctx, l.store, number, l.format)
	if err != nil {
		return false, err
	}
	have := l.stored.size
	if have > 0 && (c.file == nil || c.at != l.stored.at+int64(have) || have+c.size > writeSize) {
		return false, nil
	}
	l.next += chunkLeaves
	l.count(e, c.sum, c.length)
	if l.next < l.to {
		l.count(e, checksum([]byte(",")), 1)
	} else {
		c.size -= len(e.verbatim(nil, ","))
	}
	switch {
	case c.file == nil:
		l.text = append(l.text, c.text[:c.size]...)
	case have > 0:
		l.stored.size += c.size
	default:
		l.stored = c
	}
	return true, nil
}

// count adds a part of the text before compression.
func (l *list) count(e encoder, sum uint32, size int64) {
	if e.checksum {
		l.sum = joinChecksums(l.sum, sum, size)
		l.size += size
	}
}

// verbatim appends text between the leaves.
func (l *list) verbatim(e encoder, to []byte, text string) []byte {
	l.count(e, checksum([]byte(text)), int64(len(text)))
	return e.verbatim(to, text)
}

// buffers are reused, so that an answer makes no garbage.
type buffers struct{ pool sync.Pool }

func (b *buffers) get() *[]byte {
	if buffer, ok := b.pool.Get().(*[]byte); ok {
		return buffer
	}
	return new([]byte)
}

func (b *buffers) put(buffer *[]byte) { b.pool.Put(buffer) }

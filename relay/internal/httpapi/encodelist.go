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
	// writeSize is how much is sent at once, at least: fewer calls of the kernel.
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

// length is the length of the whole answer, if that is known before it is made.
func (l *list) length() (size int64, known bool) {
	switch l.format {
	case rawLeaves:
		return int64(l.to-l.from) * leafSize, true //nolint:gosec // an answer's leaves at most
	case plainJSON:
		size = int64(len(listHead)) + textSize(l.from, l.to) + int64(len(l.tail()))
		if l.to > l.from {
			size-- // the last entry has no comma
		}
		return size, true
	default:
		return 0, false
	}
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

// nextText replaces the text by the part of the answer after it.
func (a *api) nextText(ctx context.Context, l *list) error {
	l.text = l.text[:0]
	c := a.chunks.compressors[l.format]
	if l.next == l.from {
		l.text = l.verbatim(c, append(l.text, c.start...), listHead)
	}
	for l.next < l.to && len(l.text) < writeSize {
		if err := a.nextChunk(ctx, l, c); err != nil {
			return err
		}
		if l.next < l.to {
			l.text = l.verbatim(c, l.text, ",")
		}
	}
	if l.next == l.to {
		l.text = l.verbatim(c, l.text, l.tail())
		if c.end != nil {
			l.text = c.end(l.text, l.sum, l.size)
		}
	}
	return nil
}

// nextChunk appends the answer's leaves of one chunk to the text.
func (a *api) nextChunk(ctx context.Context, l *list, c compressor) error {
	number := l.next / chunkLeaves
	first, end := number*chunkLeaves, min(l.to, (number+1)*chunkLeaves)
	from := l.next
	if c.compress != nil && from == first && end-from == chunkLeaves {
		ready, err := a.chunks.compressed(ctx, l.pos, number, l.format)
		if err != nil {
			return err
		}
		l.text = ready.appendTo(l.text, 0, ready.memory.size())
		l.count(c, ready.sum, ready.text)
		l.next = end
		return nil
	}
	leaves, err := a.chunks.leaves(ctx, l.pos, number)
	if err != nil {
		return err
	}
	l.next = end
	at, to := int(from-first)*leafSize, int(end-first)*leafSize //nolint:gosec // a chunk's size at most
	if l.format == rawLeaves {
		l.text = leaves.appendTo(l.text, at, to)
		return nil
	}
	some := a.buffers.get()
	defer a.buffers.put(some)
	*some = leaves.appendTo((*some)[:0], at, to)
	if c.compress == nil {
		l.text = entries(l.text, *some, from)
		return nil
	}
	text := entries(make([]byte, 0, textSize(from, end)), *some, from)
	compressed, err := c.compress(text)
	if err != nil {
		return err
	}
	l.text = append(l.text, compressed...)
	l.count(c, checksum(text), int64(len(text)))
	return nil
}

// count adds a part of the text before compression.
func (l *list) count(c compressor, sum uint32, size int64) {
	if c.checksum {
		l.sum = joinChecksums(l.sum, sum, size)
	}
	l.size += size
}

// verbatim appends text between the leaves.
func (l *list) verbatim(c compressor, to []byte, text string) []byte {
	switch {
	case l.format == rawLeaves:
		return to
	case c.verbatim == nil:
		return append(to, text...)
	default:
		l.count(c, checksum([]byte(text)), int64(len(text)))
		return c.verbatim(to, text)
	}
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

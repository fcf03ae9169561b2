package httpapi

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/bits"
	"sync"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"
)

// encoder makes an answer of parts that were encoded apart: one text, zstd frame or gzip member. Not
// all clients read several frames or members as one text.
type encoder struct {
	start []byte
	// verbatim appends a short text, as a block of its own. Binary leaves have none between them.
	verbatim func(to []byte, text string) []byte
	// encode makes blocks of JSON that mean the same after any others.
	encode func(text []byte) ([]byte, error)
	// end appends what comes last: the checksum and the length of the whole text.
	end      func(to []byte, sum uint32, size int64) []byte
	checksum bool
}

func newEncoders() (map[format]encoder, error) {
	z, err := newZstd()
	if err != nil {
		return nil, err
	}
	noEnd := func(to []byte, _ uint32, _ int64) []byte { return to }
	return map[format]encoder{
		plainJSON: {
			verbatim: func(to []byte, text string) []byte { return append(to, text...) },
			encode:   func(text []byte) ([]byte, error) { return text, nil },
			end:      noEnd,
		},
		rawLeaves: {verbatim: func(to []byte, _ string) []byte { return to }, end: noEnd},
		zstdJSON:  z, gzipJSON: newGzip(),
	}, nil
}

// zstdLog is the binary logarithm of the window's size: 128 KiB, also the most that a block may
// have. A chunk's JSON is shorter.
const zstdLog = 17

// newZstd uses the fastest level, which refers to nothing in the blocks before a block; the
// format would allow that. TestPartsThatAreCompressedApartAreOneText shows when a level does.
func newZstd() (encoder, error) {
	writer, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<zstdLog), zstd.WithEncoderCRC(false))
	if err != nil {
		return encoder{}, fmt.Errorf("make a zstd encoder: %w", err)
	}
	return encoder{
		// RFC 8878 §3.1.1: magic number, no optional fields, window descriptor.
		start: []byte{0x28, 0xb5, 0x2f, 0xfd, 0, (zstdLog - 10) << 3},
		verbatim: func(to []byte, text string) []byte {
			header := len(text) << 3
			return append(append(to, byte(header), byte(header>>8), byte(header>>16)), text...) //nolint:gosec // each is one byte of it
		},
		encode: func(text []byte) ([]byte, error) { return zstdBlocks(writer.EncodeAll(text, nil)) },
		end:    func(to []byte, _ uint32, _ int64) []byte { return append(to, 1, 0, 0) },
	}, nil
}

const zstdBlockHeader = 3 // bytes: the lowest bit says that the block is the last, the rest are type and size

// zstdBlocks returns the blocks of a frame, none of them as the last.
func zstdBlocks(frame []byte) ([]byte, error) {
	var h zstd.Header
	if err := h.Decode(frame); err != nil {
		return nil, fmt.Errorf("read a zstd frame: %w", err)
	}
	blocks := frame[h.HeaderSize:]
	for at, last := 0, false; !last; {
		if len(blocks) < at+zstdBlockHeader {
			return nil, errors.New("read a zstd frame: it has no last block")
		}
		header := int(blocks[at]) | int(blocks[at+1])<<8 | int(blocks[at+2])<<16
		last = header&1 == 1
		blocks[at] &^= 1
		if size := header >> 3; header>>1&3 == 1 { // one byte, repeated
			at += zstdBlockHeader + 1
		} else {
			at += zstdBlockHeader + size
		}
	}
	return blocks, nil
}

func newGzip() encoder {
	writers := sync.Pool{New: func() any {
		w, _ := flate.NewWriter(nil, flate.BestSpeed) // fails for a wrong level only
		return w
	}}
	return encoder{
		start:    []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}, // RFC 1952 §2.3: deflate, no optional fields
		verbatim: func(to []byte, text string) []byte { return verbatimDeflate(to, text, 0) },
		checksum: true,
		encode: func(text []byte) ([]byte, error) {
			w, _ := writers.Get().(*flate.Writer)
			defer writers.Put(w)
			var out bytes.Buffer
			w.Reset(&out)
			_, err := w.Write(text)
			if err = errors.Join(err, w.Flush()); err != nil { // Flush ends at a full byte
				return nil, fmt.Errorf("compress with gzip: %w", err)
			}
			return out.Bytes(), nil
		},
		end: func(to []byte, sum uint32, size int64) []byte {
			to = verbatimDeflate(to, "", 1)
			to = binary.LittleEndian.AppendUint32(to, sum)
			return binary.LittleEndian.AppendUint32(to, uint32(size)) //nolint:gosec // the length modulo 2^32
		},
	}
}

// verbatimDeflate appends a stored block (RFC 1951 §3.2.4).
func verbatimDeflate(to []byte, text string, last byte) []byte {
	size := uint16(len(text)) //nolint:gosec // texts between leaves are short
	to = append(to, last)
	to = binary.LittleEndian.AppendUint16(to, size)
	to = binary.LittleEndian.AppendUint16(to, ^size)
	return append(to, text...)
}

func checksum(text []byte) uint32 { return crc32.ChecksumIEEE(text) }

// joinChecksums returns the checksum of two texts, one after the other: that of the first, moved
// on by the second's length, and that of the second. A checksum is a polynomial over one bit,
// highest power in the lowest bit, modulo the polynomial of CRC-32.
func joinChecksums(first, second uint32, size int64) uint32 {
	power, square := uint32(1)<<31, uint32(1)<<23 // 1, and x^8: one byte
	for n := size; n > 0; n >>= 1 {
		if n&1 == 1 {
			power = multiply(power, square)
		}
		square = multiply(square, square)
	}
	return multiply(power, first) ^ second
}

func multiply(a, b uint32) (product uint32) {
	for ; a != 0; a <<= 1 {
		if bits.LeadingZeros32(a) == 0 {
			product ^= b
		}
		carry := b & 1
		if b >>= 1; carry == 1 {
			b ^= crc32.IEEE
		}
	}
	return product
}

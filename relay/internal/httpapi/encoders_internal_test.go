package httpapi

import (
	"bytes"
	"compress/gzip"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// decompress reads one frame or member. What follows it is an error.
func decompress(t *testing.T, f format, text []byte) []byte {
	t.Helper()
	if f == zstdJSON {
		if n := bytes.Count(text, []byte{0x28, 0xb5, 0x2f, 0xfd}); n != 1 {
			t.Errorf("the text has %d zstd frames, want 1", n)
		}
		d, err := zstd.NewReader(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		out, err := d.DecodeAll(text, nil)
		if err != nil {
			t.Fatalf("decompress zstd: %v", err)
		}
		return out
	}
	source := bytes.NewReader(text)
	d, err := gzip.NewReader(source)
	if err != nil {
		t.Fatal(err)
	}
	d.Multistream(false)
	out, err := io.ReadAll(d)
	if err != nil || source.Len() > 0 {
		t.Fatalf("decompress gzip: %v, with %d bytes after the first member", err, source.Len())
	}
	return out
}

func TestPartsThatAreCompressedApartAreOneText(t *testing.T) {
	t.Parallel()
	encoders, err := newEncoders()
	if err != nil {
		t.Fatal(err)
	}
	random := rand.NewChaCha8([32]byte{})
	leaves := make([]byte, chunkLeaves*leafSize)
	_, _ = random.Read(leaves)
	parts := []string{
		string(entries(nil, leaves, 0)), string(entries(nil, leaves[:leafSize], 1<<31)), string(entries(nil, leaves, 999_500)),
		"a", strings.Repeat("ab", 9), strings.Repeat("one two ", 30),
		// A zstd frame starts with the offsets 1, 4 and 8: these texts repeat at those.
		strings.Repeat("a", 4000), strings.Repeat("abcd", 1000), strings.Repeat("abcdefgh", 500), strings.Repeat("\x00\x01\x02", 3000),
		"aaaaaaaaaaaaaaaaaaaaaaaa" + string(entries(nil, leaves[:leafSize*40], 7)),
	}
	for _, f := range []format{zstdJSON, gzipJSON} {
		c := encoders[f]
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			for i := range parts {
				for k := range parts {
					l, want, text := &list{listRequest: listRequest{format: f}}, "", bytes.Clone(c.start)
					for _, part := range []string{parts[i], parts[k], parts[i]} {
						made, err := c.encode([]byte(part))
						if err != nil {
							t.Fatal(err)
						}
						l.count(c, checksum([]byte(part)), int64(len(part)))
						text = l.verbatim(c, append(text, made...), ",")
						want += part + ","
					}
					if got := decompress(t, f, c.end(text, l.sum, l.size)); string(got) != want {
						t.Fatalf("parts %d, %d, %d are read as %d bytes, want the %d bytes that were compressed", i, k, i, len(got), len(want))
					}
				}
			}
		})
	}
}

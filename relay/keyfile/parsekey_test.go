package keyfile

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/mr-tron/base58"
)

func generate(t testing.TB) ed25519.PrivateKey {
	t.Helper()
	private, err := Generate(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return private
}

func TestParseReadsBothFormats(t *testing.T) {
	t.Parallel()
	private := generate(t)
	for name, content := range map[string]string{
		"what Format writes":          string(Format(private)),
		"base58 with a newline":       base58.Encode(private) + "\n",
		"numbers with spaces between": strings.ReplaceAll(string(Format(private)), ",", ", "),
		"the maximum length":          padded(Format(private)),
	} {
		back, err := Parse([]byte(content))
		if err != nil || !bytes.Equal(back, private) {
			t.Errorf("%s gives another key, error %v", name, err)
		}
	}
	if public, err := base58.Decode(Address(private)); err != nil || !bytes.Equal(public, private[ed25519.SeedSize:]) {
		t.Errorf("the address is not the public half: %v", err)
	}
}

// padded adds white space until the key has the maximum length.
func padded(content []byte) string {
	text := strings.TrimSpace(string(content))
	return text[:1] + strings.Repeat(" ", MaxContent-len(text)) + text[1:]
}

func TestFormatMatchesSolanaTools(t *testing.T) {
	t.Parallel()
	content := string(Format(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))))
	if !strings.HasPrefix(content, "[0,0,0,") || !strings.HasSuffix(content, ",41]\n") || strings.Count(content, ",") != 63 {
		t.Errorf("content is %q, want 64 numbers without spaces", content)
	}
}

// TestInvalidKeysAreRefusedWithoutBeingRepeated has the forms that are not
// covered by the fee payer's own table.
func TestInvalidKeysAreRefusedWithoutBeingRepeated(t *testing.T) {
	t.Parallel()
	private := generate(t)
	damaged := bytes.Clone(private)
	damaged[40] ^= 1
	for name, test := range map[string]struct {
		content string
		want    string
	}{
		"a public half of another key": {string(Format(damaged)), "does not belong"},
		"65 numbers":                   {strings.Replace(string(Format(private)), "[", "[7,", 1), "65 bytes"},
		"a number below 0":             {strings.Replace(string(Format(private)), "[", "[-", 1), "not one of numbers"},
		"a key in two pieces":          {base58.Encode(private)[:40] + " " + base58.Encode(private)[40:], "neither"},
		"nothing":                      {"", "is empty"},
	} {
		_, err := Parse([]byte(test.content))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error is %v, want one with %q", name, err, test.want)
			continue
		}
		for _, part := range []string{base58.Encode(private)[:10], string(Format(private))[1:12]} {
			if strings.Contains(err.Error(), part) {
				t.Errorf("%s: the error repeats the content", name)
			}
		}
	}
}

func TestGenerateFailsWithTooFewRandomBytes(t *testing.T) {
	t.Parallel()
	if _, err := Generate(bytes.NewReader(make([]byte, ed25519.SeedSize-1))); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error is %v, want io.ErrUnexpectedEOF", err)
	}
}

func FuzzParse(f *testing.F) {
	private := generate(f)
	f.Add(Format(private))
	f.Add([]byte(base58.Encode(private)))
	f.Add([]byte("[1,2,3"))
	f.Fuzz(func(t *testing.T, content []byte) {
		private, err := Parse(content)
		if err != nil {
			return
		}
		back, err := Parse(Format(private))
		if err != nil || !bytes.Equal(back, private) {
			t.Errorf("parsing the formatted key gives another key, or error %v", err)
		}
	})
}

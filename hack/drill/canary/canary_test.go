package canary_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mr-tron/base58"

	"github.com/relaypool/relaypool/hack/drill/canary"
)

func secret(n int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, seed))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func TestSearchFindsPartOfSecretInEveryEncoding(t *testing.T) {
	t.Parallel()
	nullifier, proof, note := secret(32, 1), secret(256, 2), secret(40, 3)
	set := canary.New()
	set.Add("nullifier", nullifier)
	set.Add("proof", proof)
	set.Add("note", note)
	long := append(append(secret(7, 4), nullifier...), secret(9, 5)...)
	numbers, err := json.Marshal([]int{int(note[0]), int(note[1]), int(note[2]), int(note[3]), int(note[4]), int(note[5]), int(note[6]), int(note[7])})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		line string
		want []string
	}{
		"hexadecimal":                           {"error=" + hex.EncodeToString(nullifier), []string{"nullifier in hexadecimal"}},
		"hexadecimal in capitals":               {strings.ToUpper(hex.EncodeToString(nullifier)), []string{"nullifier in hexadecimal"}},
		"the first 16 digits":                   {hex.EncodeToString(nullifier)[:16], []string{"nullifier in hexadecimal"}},
		"31 digits from the middle":             {hex.EncodeToString(nullifier)[9:40], []string{"nullifier in hexadecimal"}},
		"base58":                                {`{"x":"` + base58.Encode(nullifier) + `"}`, []string{"nullifier in base58"}},
		"base64":                                {base64.StdEncoding.EncodeToString(proof), []string{"proof in base64"}},
		"base64 for URLs":                       {base64.URLEncoding.EncodeToString(proof), []string{"proof in base64"}},
		"base64 of a longer value":              {base64.StdEncoding.EncodeToString(long), []string{"nullifier in base64"}},
		"base64 of a longer value, shift 1":     {base64.StdEncoding.EncodeToString(append([]byte{1}, long...)), []string{"nullifier in base64"}},
		"base64 of a longer value, shift 2":     {base64.StdEncoding.EncodeToString(append([]byte{1, 2}, long...)), []string{"nullifier in base64"}},
		"bytes printed as numbers":              {fmt.Sprintf("note=%v", note), []string{"note as numbers"}},
		"bytes printed as numbers of JSON":      {string(numbers), []string{"note as numbers"}},
		"bytes printed as Go syntax, in hex":    {fmt.Sprintf("%x", note), []string{"note in hexadecimal"}},
		"two secrets in a line":                 {hex.EncodeToString(note) + " " + base58.Encode(nullifier), []string{"note in hexadecimal", "nullifier in base58"}},
		"another value of the same length":      {hex.EncodeToString(secret(32, 6)), nil},
		"the first 15 digits, too few to match": {hex.EncodeToString(nullifier)[:15], nil},
		"an empty line":                         {"", nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := "first line\n" + tc.line + "\nthird line without an end"
			hits, read, err := set.Search(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			var want []canary.Hit
			for _, name := range tc.want {
				want = append(want, canary.Hit{Line: 2, Name: name})
			}
			if diff := cmp.Diff(want, hits); diff != "" {
				t.Errorf("hits (-want +got):\n%s", diff)
			}
			if read != int64(len(text)) {
				t.Errorf("read %d bytes, want all %d", read, len(text))
			}
		})
	}
}

func TestValuesWithoutContentAreNotSearched(t *testing.T) {
	t.Parallel()
	set := canary.New()
	set.Add("nullifier", make([]byte, 32))
	set.Add("note", []byte("short"))
	set.Add("note", nil)
	hits, _, err := set.Search(strings.NewReader(strings.Repeat("A", 64) + " short " + strings.Repeat("0", 64) + " " + strings.Repeat("1", 64)))
	if err != nil || len(hits) > 0 {
		t.Errorf("found %v, %v; want nothing", hits, err)
	}
}

// A drill has some thousand submissions and logs of megabytes.
func BenchmarkSearch(b *testing.B) {
	set := canary.New()
	for i := range uint64(5000) {
		set.Add("nullifier", secret(32, 2*i))
	}
	text := bytes.Repeat([]byte(hex.EncodeToString(secret(60, 1))+"\n"), 10_000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, _, err := set.Search(bytes.NewReader(text)); err != nil {
			b.Fatal(err)
		}
	}
}

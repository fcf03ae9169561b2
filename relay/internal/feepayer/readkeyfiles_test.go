package feepayer

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"
	"github.com/mr-tron/base58"
)

// keyFromSeed makes the key whose seed is 32 bytes of n.
func keyFromSeed(t *testing.T, n byte) *Key {
	t.Helper()
	key, err := Generate(bytes.NewReader(bytes.Repeat([]byte{n}, 32)))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func TestReadKeys(t *testing.T) {
	t.Parallel()
	one, two, three := keyFromSeed(t, 1), keyFromSeed(t, 2), keyFromSeed(t, 3)
	array := func(k *Key) string { return numbers(k.private()) }
	tests := map[string]struct {
		files   map[string]string // content by path
		links   [][2]string       // target and path
		paths   []string
		want    []*Key
		wantErr []string // parts of the error
	}{
		"a file": {
			files: map[string]string{"a.json": array(one)}, paths: []string{"a.json"}, want: []*Key{one},
		},
		"files in both formats, in the given order": {
			files: map[string]string{"a": array(one), "b": base58.Encode(two.private())}, paths: []string{"b", "a"}, want: []*Key{two, one},
		},
		"a folder's files sorted by name, without hidden files and folders": {
			files: map[string]string{"keys/2": array(one), "keys/1": array(two), "keys/.hidden": "no key", "keys/sub/x": "no key"},
			paths: []string{"keys"}, want: []*Key{two, one},
		},
		"a folder and a file": {
			files: map[string]string{"keys/1": array(one), "x": array(three)}, paths: []string{"keys", "x"}, want: []*Key{one, three},
		},
		"a Secret as Kubernetes mounts it": {
			files: map[string]string{"secret/..2026_11_21/payer.json": array(one)},
			links: [][2]string{{"..2026_11_21", "secret/..data"}, {"..data/payer.json", "secret/payer.json"}},
			paths: []string{"secret"}, want: []*Key{one},
		},
		"no path":                    {wantErr: []string{"no fee payer key was given", "relay keygen"}},
		"a file that does not exist": {paths: []string{"missing"}, wantErr: []string{"missing", "no such file"}},
		"an empty folder":            {files: map[string]string{"keys/.x": ""}, paths: []string{"keys"}, wantErr: []string{"keys holds no fee payer key"}},
		"a broken link":              {files: map[string]string{"keys/1": array(one)}, links: [][2]string{{"gone", "keys/2"}}, paths: []string{"keys"}, wantErr: []string{"keys/2"}},
		"a file without a key":       {files: map[string]string{"keys/1": array(one), "keys/readme": "467 words"}, paths: []string{"keys"}, wantErr: []string{"keys/readme", "9 characters"}},
		"the same key twice": {
			files: map[string]string{"keys/1": array(one), "other": base58.Encode(one.private())}, paths: []string{"keys", "other"},
			wantErr: []string{"keys/1", "other", "the same key", one.PublicKey().String()},
		},
		"the same file twice": {files: map[string]string{"a": array(one)}, paths: []string{"a", "a"}, wantErr: []string{"the same key"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for path, content := range test.files {
				writeFile(t, filepath.Join(dir, path), content)
			}
			for _, l := range test.links {
				link(t, l[0], filepath.Join(dir, l[1]))
			}
			paths := make([]string, len(test.paths))
			for i, p := range test.paths {
				paths[i] = filepath.Join(dir, p)
			}
			keys, err := ReadKeys(paths)
			if len(test.wantErr) > 0 {
				if err == nil {
					t.Fatalf("%d keys were read, want an error", len(keys))
				}
				for _, part := range test.wantErr {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("error is %q, want %q in it", err, part)
					}
				}
				// The folder has a random number in its name.
				checkSecret(t, strings.ReplaceAll(err.Error(), dir, ""), one.private(), "467")
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(addresses(test.want), addresses(keys)); diff != "" {
				t.Errorf("keys differ (-want +got):\n%s", diff)
			}
		})
	}
}

func addresses(keys []*Key) []solana.PublicKey {
	out := make([]solana.PublicKey, len(keys))
	for i, k := range keys {
		out[i] = k.PublicKey()
	}
	return out
}

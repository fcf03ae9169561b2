package feepayer

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"
	"github.com/mr-tron/base58"

	"github.com/relaypool/relaypool/relay/keyfile"
)

func testKey(t *testing.T) *Key {
	t.Helper()
	key, err := Generate(bytes.NewReader(bytes.Repeat([]byte{0xa7, 0x3c}, 16)))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// numbers formats bytes as solana-keygen does.
func numbers(b []byte) string {
	return strings.ReplaceAll(fmt.Sprintf("%d", b), " ", ",")
}

// web3Key returns the payer's key of the vectors from @solana/web3.js, its address, and a
// transaction that it signed there.
func web3Key(t *testing.T) (content []byte, address solana.PublicKey, transaction *solana.Transaction) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "web3js.json"))
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Secret      json.RawMessage `json:"payer_secret_key_json"`
		Transaction string          `json:"transaction_base64"`
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	transaction, err = solana.TransactionFromBase64(v.Transaction)
	if err != nil {
		t.Fatal(err)
	}
	return v.Secret, transaction.Message.AccountKeys[0], transaction
}

func TestKeySignsAsWeb3JS(t *testing.T) {
	t.Parallel()
	content, address, tx := web3Key(t)
	key, err := Parse(content)
	if err != nil {
		t.Fatal(err)
	}
	if key.PublicKey() != address {
		t.Errorf("public key is %s, want %s", key.PublicKey(), address)
	}
	message, err := tx.Message.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	signature, err := key.Sign(t.Context(), message)
	if err != nil {
		t.Fatal(err)
	}
	if signature != tx.Signatures[0] {
		t.Error("the signature is not the one that web3.js made of the same message")
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	good := []byte(testKey(t).private())
	swapped := append(bytes.Clone(good[:32]), make([]byte, 32)...)
	tests := map[string]struct {
		content string
		wantErr string // part of the error; empty for none
	}{
		"a JSON array of 64 numbers":             {content: numbers(good)},
		"a JSON array with spaces and a newline": {content: " " + strings.ReplaceAll(numbers(good), ",", ", ") + "\n"},
		"base58 of 64 bytes with a newline":      {content: base58.Encode(good) + "\n"},
		"an empty file":                          {content: " \n", wantErr: "key is empty"},
		"a seed of 32 numbers":                   {content: numbers(good[:32]), wantErr: "decodes to 32 bytes: expected 64"},
		"base58 of 32 bytes":                     {content: base58.Encode(good[:32]), wantErr: "decodes to 32 bytes: expected 64"},
		"a number above 255":                     {content: strings.Replace(numbers(good), "167", "467", 1), wantErr: "one of numbers from 0 to 255"},
		"a truncated array":                      {content: numbers(good)[:40], wantErr: "one of numbers"},
		"hex":                                    {content: hex.EncodeToString(good), wantErr: "neither a JSON array"},
		"a JSON string":                          {content: `"` + base58.Encode(good) + `"`, wantErr: "neither a JSON array"},
		"another public half":                    {content: numbers(swapped), wantErr: "does not belong"},
		"base58 with another public half":        {content: base58.Encode(swapped), wantErr: "does not belong"},
		"a file that is too long":                {content: strings.Repeat("2", keyfile.MaxContent+1), wantErr: "4097 bytes"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, err := Parse([]byte(test.content))
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Fatalf("error is %v, want one with %q", err, test.wantErr)
				}
				checkSecret(t, err.Error(), good, "467")
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if key.PublicKey() != testKey(t).PublicKey() {
				t.Errorf("public key is %s, want %s", key.PublicKey(), testKey(t).PublicKey())
			}
		})
	}
}

// checkSecret fails when text contains the private key in a usual format, a part of it that a
// decoder's error could show, or one of more.
func checkSecret(t *testing.T, text string, private []byte, more ...string) {
	t.Helper()
	forms := append([]string{
		numbers(private)[1:12], strings.Trim(fmt.Sprintf("%d", private), "[]")[:11],
		base58.Encode(private), base58.Encode(private)[:8],
		hex.EncodeToString(private[:6]), strings.ToUpper(hex.EncodeToString(private[:6])), "0xa7, 0x3c",
	}, more...)
	for _, form := range forms {
		if strings.Contains(text, form) {
			t.Errorf("the text shows the private key as %q", form)
		}
	}
}

func TestKeyIsNeverFormatted(t *testing.T) {
	t.Parallel()
	key := testKey(t)
	type holder struct {
		key   *Key
		Named *Key
		value Key
	}
	held := holder{key: key, Named: key, value: *key}
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+"\n", key)
		fmt.Fprintf(&out, verb+"\n", *key)
		fmt.Fprintf(&out, verb+"\n", held)
		fmt.Fprintf(&out, verb+"\n", &held)
		fmt.Fprintf(&out, verb+"\n", []*Key{key})
	}
	for _, v := range []any{key, held, map[string]any{"key": key}} {
		encoded, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(encoded)
	}
	for _, handler := range []slog.Handler{slog.NewJSONHandler(&out, nil), slog.NewTextHandler(&out, nil)} {
		slog.New(handler).Info("Read key", "key", key, "held", held, "pointer", &held)
	}
	checkSecret(t, out.String(), key.private())
	if !strings.Contains(out.String(), redacted) {
		t.Error("the output has no placeholder, so the test printed no key")
	}
}

func TestWriteFile(t *testing.T) {
	t.Parallel()
	key, path := testKey(t), filepath.Join(t.TempDir(), "payer.json")
	if err := key.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("mode is %o, want 600", got)
	}
	read, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]byte(key.private()), []byte(read.private())); diff != "" {
		t.Error("the key read is not the one written")
	}
	// solana-go reads the file too.
	private, err := solana.PrivateKeyFromSolanaKeygenFile(path)
	if err != nil || private.PublicKey() != key.PublicKey() {
		t.Errorf("solana-go reads another key, or fails with error %v", err)
	}

	other, err := Generate(bytes.NewReader(make([]byte, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	if err := other.WriteFile(path); !errors.Is(err, os.ErrExist) {
		t.Errorf("overwriting a key returned %v, want ErrExist", err)
	}
	if again, err := ReadFile(path); err != nil || again.PublicKey() != key.PublicKey() {
		t.Errorf("the first key was overwritten, or cannot be read: %v", err)
	}
}

func TestUnusableFilesAndSources(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := ReadFile(filepath.Join(dir, "missing.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("reading a missing file returned %v, want ErrNotExist", err)
	}
	if err := testKey(t).WriteFile(filepath.Join(dir, "no", "such", "folder.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("writing into a missing folder returned %v, want ErrNotExist", err)
	}
	if _, err := Generate(bytes.NewReader(make([]byte, ed25519.SeedSize-1))); err == nil {
		t.Error("generating a key from 31 bytes returned no error")
	}
}

func FuzzParse(f *testing.F) {
	key, err := Generate(bytes.NewReader(make([]byte, ed25519.SeedSize)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(numbers(key.private())))
	f.Add([]byte(base58.Encode(key.private())))
	f.Add([]byte("[1,2,3"))
	f.Fuzz(func(t *testing.T, content []byte) {
		key, err := Parse(content)
		if err != nil {
			return
		}
		message := []byte("message")
		signature, err := key.Sign(t.Context(), message)
		if err != nil || !key.PublicKey().Verify(message, signature) {
			t.Errorf("a parsed key made no valid signature: %v", err)
		}
	})
}

package viewingkey

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustGenerate(t testing.TB) ([32]byte, PrivateKey) {
	t.Helper()
	public, private, err := GenerateComplianceKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return public, private
}

func TestPrivateKeyFile(t *testing.T) {
	t.Parallel()
	public, private := mustGenerate(t)
	path := filepath.Join(t.TempDir(), "compliance.key")
	if err := WritePrivateKeyFile(path, private); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("mode %o, want 600", got)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(content), "relaypool-compliance-private-key-v1 "+KeyID(public)+" ") || strings.Count(string(content), "\n") != 1 {
		t.Error("the file is not one line that starts with header and key id")
	}
	parsed, err := ParsePrivateKey(content)
	if err != nil {
		t.Fatal(err)
	}
	if parsed != private || parsed.public() != public {
		t.Error("the key read is not the key written")
	}

	_, other := mustGenerate(t)
	if err := WritePrivateKeyFile(path, other); !errors.Is(err, os.ErrExist) {
		t.Errorf("writing over a key: error %v, want %v", err, os.ErrExist)
	}
	contentAfter, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(contentAfter, content) {
		t.Error("a second write changed the file")
	}
}

func TestParsePrivateKeyRefuses(t *testing.T) {
	t.Parallel()
	_, private := mustGenerate(t)
	good := string(EncodePrivateKey(private))
	digits := strings.Fields(good)[2]
	changed := "0"
	if digits[10] == '0' {
		changed = "1"
	}
	tests := map[string]struct{ content, want string }{
		"an empty file":         {"", "received 0 bytes of another form"},
		"only the digits":       {digits, "received 64 bytes of another form"},
		"another header":        {strings.Replace(good, "v1", "v2", 1), "of another form"},
		"two keys":              {good + good, "of another form"},
		"a digit lost":          {strings.TrimSuffix(good, "\n")[:len(good)-2], "received 63 characters"},
		"a digit changed":       {strings.Replace(good, digits, digits[:10]+changed+digits[11:], 1), "the file is damaged"},
		"a letter among digits": {strings.Replace(good, digits, digits[:63]+"x", 1), "not all hexadecimal"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ParsePrivateKey([]byte(tt.content))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error %v does not contain %q", err, tt.want)
			}
			if strings.Contains(err.Error(), digits[:10]) {
				t.Error("the error shows the key")
			}
		})
	}
}

func TestPrivateKeyDoesNotPrint(t *testing.T) {
	t.Parallel()
	_, private := mustGenerate(t)
	secret := hex.EncodeToString(private.bytes[:])
	asNumbers := strings.Trim(fmt.Sprint(private.bytes), "[]")
	asJSON, err := json.Marshal(map[string]any{"key": private})
	if err != nil {
		t.Fatal(err)
	}
	printed := []string{string(asJSON)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%x", "%X", "%s", "%q", "%d"} {
		printed = append(printed, fmt.Sprintf(verb, private), fmt.Sprintf(verb, struct{ K PrivateKey }{private}))
	}
	for _, text := range printed {
		if strings.Contains(strings.ToLower(text), secret) || strings.Contains(text, asNumbers) {
			t.Errorf("the key is printed in %q", text)
		}
	}
}

func TestParsePublicKey(t *testing.T) {
	t.Parallel()
	public, _ := mustGenerate(t)
	got, err := ParsePublicKey(hex.EncodeToString(public[:]))
	if err != nil || got != public {
		t.Errorf("a generated key: error %v, equal: %t; want no error and an equal key", err, got == public)
	}
	tests := map[string]string{
		"empty":                        "",
		"31 bytes":                     strings.Repeat("1", 62),
		"not hex":                      strings.Repeat("z", 64),
		"zero":                         strings.Repeat("0", 64),
		"one":                          "01" + strings.Repeat("0", 62),
		"of order eight":               "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
		"p, a second encoding of zero": "ed" + strings.Repeat("f", 60) + "7f",
	}
	for name, text := range tests {
		if _, err := ParsePublicKey(text); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// sealedRecord registers the key 07 <id> 00… under the identifier <id> 00…, and
// returns the stored record.
func sealedRecord(t testing.TB, store *memoryStore, s *Service, id byte) Record {
	t.Helper()
	identifier, key := [32]byte{id}, [32]byte{7, id}
	if err := s.put(t.Context(), [32]byte{}, "", identifier, key); err != nil {
		t.Fatal(err)
	}
	return store.records[identifier]
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	store := &memoryStore{}
	s, private := newTestService(t, store, "message")
	_, stranger := mustGenerate(t)
	good, other := sealedRecord(t, store, s, 1), sealedRecord(t, store, s, 2)
	if key, err := Open(private, good); err != nil || key != [32]byte{7, 1} {
		t.Fatalf("a good record: error %v", err)
	}
	tests := map[string]struct {
		private PrivateKey
		change  func(*Record)
		want    error
	}{
		"with another officer's key":             {stranger, func(*Record) {}, ErrOtherKey},
		"another officer's key under a false id": {stranger, func(r *Record) { r.KeyID = KeyID(stranger.public()) }, ErrDamaged},
		"a box with a byte changed":              {private, func(r *Record) { r.Sealed = append(bytes.Clone(r.Sealed[:79]), r.Sealed[79]^1) }, ErrDamaged},
		"a box cut short":                        {private, func(r *Record) { r.Sealed = r.Sealed[:79] }, ErrDamaged},
		"no box":                                 {private, func(r *Record) { r.Sealed = nil }, ErrDamaged},
		"another record's box":                   {private, func(r *Record) { r.Sealed = other.Sealed }, ErrDamaged},
		"another record's identifier":            {private, func(r *Record) { r.Identifier = other.Identifier }, ErrDamaged},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := good
			tt.change(&r)
			if key, err := Open(tt.private, r); !errors.Is(err, tt.want) || key != [32]byte{} {
				t.Errorf("error %v, want %v", err, tt.want)
			}
		})
	}
}

func TestExportRoundTrip(t *testing.T) {
	t.Parallel()
	store := &memoryStore{}
	s, private := newTestService(t, store, "message")
	foreignStore := &memoryStore{}
	foreign, _ := newTestService(t, foreignStore, "message")

	first, second := sealedRecord(t, store, s, 1), sealedRecord(t, store, s, 2)
	damaged := sealedRecord(t, store, s, 3)
	damaged.Sealed = append(bytes.Clone(damaged.Sealed[:79]), damaged.Sealed[79]^1)

	var export bytes.Buffer
	for _, r := range []Record{first, sealedRecord(t, foreignStore, foreign, 9), damaged, second} {
		if err := WriteRecord(&export, r); err != nil {
			t.Fatal(err)
		}
	}
	var line map[string]string
	if err := json.Unmarshal(export.Bytes()[:bytes.IndexByte(export.Bytes(), '\n')], &line); err != nil {
		t.Fatal(err)
	}
	wantLine := map[string]string{
		"identifier":  hex.EncodeToString(first.Identifier[:]),
		"sealed":      base64.StdEncoding.EncodeToString(first.Sealed),
		"fingerprint": hex.EncodeToString(first.Fingerprint[:]),
		"key_id":      first.KeyID,
	}
	if diff := cmp.Diff(wantLine, line); diff != "" {
		t.Errorf("export line (-want +got):\n%s", diff)
	}

	export.WriteString("\nnot a record\n{\"identifier\":\"00\"}\n")
	var opened bytes.Buffer
	sum, err := OpenExport(private, &export, &opened)
	if err != nil {
		t.Fatal(err)
	}
	if sum.Opened != 2 || sum.OtherKey != 1 {
		t.Errorf("%d opened, %d of another key; want 2, 1", sum.Opened, sum.OtherKey)
	}
	wantFaults := []string{
		"line 3: " + ErrDamaged.Error(),
		"line 6: want a record as `relay compliance export` writes it, received 12 bytes of other text",
		"line 7: identifier: want 64 hexadecimal digits, received 2 characters",
	}
	var faults []string
	for _, fault := range sum.Faults {
		faults = append(faults, fault.Error())
	}
	if diff := cmp.Diff(wantFaults, faults); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	wantOpened := fmt.Sprintf("{\"identifier\":\"%x\",\"viewing_key\":\"%x\"}\n{\"identifier\":\"%x\",\"viewing_key\":\"%x\"}\n",
		first.Identifier, [32]byte{7, 1}, second.Identifier, [32]byte{7, 2})
	if diff := cmp.Diff(wantOpened, opened.String()); diff != "" {
		t.Errorf("opened (-want +got):\n%s", diff)
	}
}

func TestOpenExportReportsReadFaults(t *testing.T) {
	t.Parallel()
	_, private := mustGenerate(t)
	if _, err := OpenExport(private, strings.NewReader(strings.Repeat("x", maxLine+1)), &bytes.Buffer{}); err == nil {
		t.Error("an overlong line: no error, want one")
	}
}

// FuzzRecord checks that no line of an export makes parseRecord or Open panic, and
// that every record that parseRecord accepts can be written and read again.
func FuzzRecord(f *testing.F) {
	store := &memoryStore{}
	s, private := newTestService(f, store, "message")
	var export bytes.Buffer
	if err := WriteRecord(&export, sealedRecord(f, store, s, 1)); err != nil {
		f.Fatal(err)
	}
	f.Add(export.Bytes())
	f.Add([]byte(`{"identifier":null,"sealed":"!"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := parseRecord(text)
		if err != nil {
			return
		}
		_, _ = Open(private, r) // most will not open; none may panic
		var line bytes.Buffer
		if err := WriteRecord(&line, r); err != nil {
			t.Fatal(err)
		}
		parsed, err := parseRecord(line.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, parsed); diff != "" {
			t.Errorf("read again (-want +got):\n%s", diff)
		}
	})
}

// FuzzDecodeSignature checks that every decoded signature has 64 bytes.
func FuzzDecodeSignature(f *testing.F) {
	v := readSignIn(f)
	for _, text := range []string{v.SignatureBase64, v.SignatureBase58, v.SignatureHex, "", "==", "1", "é"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if b, ok := decodeSignature(text); ok && len(b) != 64 {
			t.Errorf("the decoded signature has %d bytes, want 64", len(b))
		}
	})
}

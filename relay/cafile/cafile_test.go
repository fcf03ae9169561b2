package cafile_test

import (
	"bytes"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/relaypool/relaypool/hack/testca"
	"github.com/relaypool/relaypool/relay/cafile"
)

const canary = "c4n4ryc4n4ry"

func TestAuthoritiesAreRead(t *testing.T) {
	t.Parallel()
	one, two := testca.New(t), testca.New(t)
	_, key := one.Issue(t, "server", "127.0.0.1")
	der, _ := pem.Decode(one.PEM)
	tests := map[string]struct {
		content []byte
		want    string // a part of the error; empty for none
	}{
		"one certificate is read":                 {one.PEM, ""},
		"several certificates are read":           {slicesOf(one.PEM, two.PEM), ""},
		"text beside certificates is ignored":     {slicesOf([]byte("# our own\n"), one.PEM, []byte("\n# "+canary+"\n"), two.PEM), ""},
		"an empty file is refused":                {nil, "file of 0 bytes has no certificate: expected one or more certificates in PEM"},
		"garbage is refused":                      {[]byte(canary), "file of 12 bytes has no certificate"},
		"a certificate in DER is refused":         {der.Bytes, "has no certificate"},
		"an incomplete certificate is refused":    {slicesOf(one.PEM, two.PEM[:len(two.PEM)/2]), "part 2 of 2 of the file is incomplete"},
		"a private key is refused":                {slicesOf(one.PEM, key), "part 2 of 2 of the file is not a certificate"},
		"a block of another kind is refused":      {[]byte("-----BEGIN " + canary + "-----\nAAAA\n-----END " + canary + "-----\n"), "part 1 of 1 of the file is not a certificate"},
		"a certificate of nothing is refused":     {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(canary)}), "certificate 1 of 1 in the file does not parse"},
		"a file that is too large is refused":     {bytes.Repeat([]byte(canary), 400_000), "file has more than"},
		"a certificate with a comment is read":    {slicesOf([]byte("subject=CN = authority\n"), one.PEM), ""},
		"Windows' ends of lines are read as well": {bytes.ReplaceAll(one.PEM, []byte("\n"), []byte("\r\n")), ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), canary)
			testca.Write(t, path, tc.content)
			pool, err := cafile.Read(path)
			check(t, err, tc.want)
			if (pool == nil) != (err != nil) {
				t.Errorf("authorities %v with error %v, want one of both", pool, err)
			}
		})
	}
}

func TestFileThatCannotBeReadIsNotNamed(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"a missing file": filepath.Join(t.TempDir(), canary), "a folder": t.TempDir(), "a file's content": "-----BEGIN " + canary} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := cafile.Read(path)
			check(t, err, "file cannot be read: ")
			if err != nil && strings.Contains(err.Error(), os.TempDir()) {
				t.Errorf("the error contains the path: %v", err)
			}
		})
	}
}

func TestClientCertificate(t *testing.T) {
	t.Parallel()
	authority := testca.New(t)
	certificate, key := authority.Issue(t, "relay")
	other, _ := authority.Issue(t, "relay")
	tests := map[string]struct {
		certificate, key []byte
		want             string
	}{
		"a pair is read": {certificate, key, ""},
		"the key of another certificate is refused": {other, key, "do not fit together: expected a certificate in PEM"},
		"a key in place of the certificate":         {key, key, "do not fit together"},
		"garbage in place of the key":               {certificate, []byte("-----BEGIN " + canary + "-----\nAAAA\n-----END " + canary + "-----\n"), "do not fit together"},
		"the certificate's file is missing":         {nil, key, "client certificate's file: file cannot be read"},
		"the key's file is missing":                 {certificate, nil, "client key's file: file cannot be read"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string][]byte{filepath.Join(t.TempDir(), canary): tc.certificate, filepath.Join(t.TempDir(), canary+".key"): tc.key}
			var paths [2]string
			for path, content := range files {
				i := 0
				if strings.HasSuffix(path, ".key") {
					i = 1
				}
				if paths[i] = path; content != nil {
					testca.Write(t, path, content)
				}
			}
			pair, err := cafile.ClientCertificate(paths[0], paths[1])
			check(t, err, tc.want)
			if (len(pair.Certificate) == 1) != (err == nil) {
				t.Errorf("%d certificates with error %v", len(pair.Certificate), err)
			}
		})
	}
}

// check checks that the error is as wanted and contains no canary.
func check(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case (err == nil) != (want == ""):
		t.Errorf("error is %v, want %q", err, want)
	case err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), canary)):
		t.Errorf("error is %v, want …%s… without the canary", err, want)
	}
}

func slicesOf(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

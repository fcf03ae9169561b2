package signer

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	vaultMessage = []byte("canary: the message of a transaction")
	// vaultInput is the message as the server sees it.
	vaultInput = base64.StdEncoding.EncodeToString(vaultMessage)
)

// newTransit makes a VaultTransit of version 1 of the server's key payer, with a token file.
func (v *vaultServer) newTransit(t *testing.T, change func(*VaultTransitOptions)) *VaultTransit {
	t.Helper()
	o := VaultTransitOptions{URL: v.url, Key: "payer", KeyVersion: 1, CAFile: v.caFile(t), Now: time.Now}
	o.TokenFile = replaceFile(t, filepath.Join(t.TempDir(), "token"), []byte(vaultToken+"\n"))
	if change != nil {
		change(&o)
	}
	transit, err := NewVaultTransit(o)
	if err != nil {
		t.Fatal(err)
	}
	return transit
}

// checkVaultError checks an error's text, and that it contains no secret.
func checkVaultError(t *testing.T, what string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: got error %q, want none", what, err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("%s: got error %v, want one with %q", what, err, want)
	}
	for _, secret := range []string{vaultToken, vaultJWT, vaultInput, string(vaultMessage)} {
		if err != nil && strings.Contains(fmt.Sprintf("%v %+v", err, err), secret) {
			t.Errorf("%s: the error contains the secret %q: %v", what, secret, err)
		}
	}
	if err != nil && strings.ContainsAny(err.Error(), "\n\t") {
		t.Errorf("%s: the error has several lines: %q", what, err)
	}
}

// The vectors are those of RFC 8032, section 7.1.
func TestVaultTransitSignsAsRFC8032(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ seed, public, message, signature string }{
		"TEST 1, of no bytes": {
			"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60", "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
			"e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
		},
		"TEST 2, of one byte": {
			"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb", "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
			"92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
		},
		"TEST 3, of two bytes": {
			"c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7", "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
			"6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newVaultServer(t, vaultSeed(1), vaultHex(t, test.seed))
			transit := server.newTransit(t, func(o *VaultTransitOptions) { o.KeyVersion, o.Namespace = 2, "payments" })
			public, err := transit.PublicKey(t.Context())
			if diff := cmp.Diff(test.public, hex.EncodeToString(public)); err != nil || diff != "" {
				t.Errorf("public key: error %v (-want +got):\n%s", err, diff)
			}
			signature, err := transit.Sign(t.Context(), vaultHex(t, test.message))
			if diff := cmp.Diff(test.signature, hex.EncodeToString(signature)); err != nil || diff != "" {
				t.Errorf("signature: error %v (-want +got):\n%s", err, diff)
			}
			if server.namespace != "payments" {
				t.Errorf("the server was asked in namespace %q", server.namespace)
			}
		})
	}
}

func vaultHex(t *testing.T, text string) []byte {
	t.Helper()
	content, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// vaultKeyField returns a change of what the server tells of its key.
func vaultKeyField(field string, value any) func(*vaultServer) {
	return func(v *vaultServer) { v.key[field] = value }
}

func vaultKeyPublic(text string) func(*vaultServer) {
	return func(v *vaultServer) { v.key["keys"].(map[string]any)["1"].(map[string]any)["public_key"] = text }
}

// vaultAnswers returns a change of what the server answers to all calls of the engine.
func vaultAnswers(answer http.HandlerFunc) func(*vaultServer) {
	return func(v *vaultServer) { v.answer = answer }
}

func vaultFails(status int, reasons ...string) func(*vaultServer) {
	return vaultAnswers(func(w http.ResponseWriter, _ *http.Request) { refuseAsVault(w, status, reasons...) })
}

func vaultSigns(text string) func(*vaultServer) {
	return vaultAnswers(func(w http.ResponseWriter, _ *http.Request) {
		answerAsVault(w, "data", map[string]any{"signature": text})
	})
}

func TestVaultTransitErrors(t *testing.T) {
	t.Parallel()
	const noType = `has the type "": expected ed25519`
	tests := map[string]struct {
		server              func(*vaultServer)
		options             func(*VaultTransitOptions)
		wantPublic, wantSig string // in the errors; empty for no error
	}{
		"a key of another type": {server: vaultKeyField("type", "ecdsa-p256"), wantPublic: `vault's key "payer" has the type "ecdsa-p256": expected ed25519`},
		"a symmetric key, whose versions are numbers": {
			server:     func(v *vaultServer) { v.key["type"], v.key["keys"] = "aes256-gcm96", map[string]any{"1": 1442851412} },
			wantPublic: `has the type "aes256-gcm96"`,
		},
		"a derived key": {server: vaultKeyField("derived", true), wantPublic: "is derived: expected a key that signs without a context"},
		"a key that is missing": {
			options:    func(o *VaultTransitOptions) { o.Key = "other" },
			wantPublic: `vault has no key "other" at "transit" (404: no reason given): correct the key, the mount or the namespace`,
			wantSig:    `vault has no key "other" at "transit" (400: signing key not found)`,
		},
		"a mount that is missing": {
			options:    func(o *VaultTransitOptions) { o.Mount = "/teams/a/transit/" },
			wantPublic: `vault has no key "payer" at "teams/a/transit" (404: no handler for route`, wantSig: "no handler for route",
		},
		"a version that is not there yet": {
			options:    func(o *VaultTransitOptions) { o.KeyVersion = 3 },
			wantPublic: `has no version 3: its latest version is 2`, wantSig: `vault's key "payer" does not sign with version 3 (500: 1 error occurred: * requested version for signing is higher`,
		},
		"a version that is archived": {
			server: func(v *vaultServer) {
				v.key["min_decryption_version"], v.key["min_encryption_version"] = 2, 2
				delete(v.key["keys"].(map[string]any), "1")
			},
			wantPublic: "does not use version 1: its min_decryption_version is 2: set that to 1 or less", wantSig: "does not sign with version 1",
		},
		"a version below the one to sign with": {
			server:     vaultKeyField("min_encryption_version", 2),
			wantPublic: "its min_encryption_version is 2: set that to 1 or less", wantSig: "less than the minimum encryption key version): correct the version, or set min_encryption_version",
		},
		"a public key that is not base64":        {server: vaultKeyPublic("MCowBQYDK2VwAyEA!"), wantPublic: "has 17 characters: expected 32 bytes in base64"},
		"a public key that is too short":         {server: vaultKeyPublic("AAAA"), wantPublic: "has 4 characters: expected 32 bytes"},
		"a public key that is a number":          {server: func(v *vaultServer) { v.key["keys"] = map[string]any{"1": 5} }, wantPublic: `decode version 1 of vault's key "payer"`},
		"a signature of another version":         {server: vaultSigns("vault:v2:AAAA"), wantPublic: noType, wantSig: `begins with "vault:v2:AAA": expected "vault:v1:"`},
		"a signature without a version":          {server: vaultSigns("AAAAAAAAAAAAAAAAAAAA"), wantPublic: noType, wantSig: `begins with "AAAAAAAAAAAA": expected "vault:v1:"`},
		"a signature of a version like it":       {server: vaultSigns("vault:v11:AAAA"), wantPublic: noType, wantSig: `expected "vault:v1:"`},
		"a signature that is not base64":         {server: vaultSigns("vault:v1:AAAA$"), wantPublic: noType, wantSig: "has 5 characters after its version: expected 64 bytes in base64"},
		"a signature that is too short":          {server: vaultSigns("vault:v1:AAAA"), wantPublic: noType, wantSig: "expected 64 bytes"},
		"an answer without a signature":          {server: vaultAnswers(func(w http.ResponseWriter, _ *http.Request) { answerAsVault(w, "data", nil) }), wantPublic: noType, wantSig: `begins with ""`},
		"a sealed server":                        {server: vaultFails(503, "Vault is sealed"), wantPublic: "vault does not serve (503: Vault is sealed): unseal it", wantSig: "unseal it"},
		"too many calls":                         {server: vaultFails(429, "request path \"x\": rate limit quota exceeded"), wantPublic: "raise its quota", wantSig: "raise its quota"},
		"an error of the server":                 {server: vaultFails(500, "1 error occurred:\n\t* internal error\n\n"), wantPublic: "vault answered with a failure (500: 1 error occurred: * internal error): its log says more", wantSig: "(500: 1 error"},
		"an error with a long text":              {server: vaultFails(500, strings.Repeat("x", 1000)), wantPublic: "xxx…)", wantSig: "xxx…)"},
		"a policy that allows neither":           {server: vaultFails(403, "1 error occurred:\n\t* permission denied\n\n"), wantPublic: `(403: 1 error occurred: * permission denied): expected a valid one with a policy that allows read on "transit/keys/payer" and update on "transit/sign/payer"`, wantSig: `update on "transit/sign/payer"`},
		"an error that repeats what it was sent": {server: vaultAnswers(vaultRepeats), wantPublic: "(400: token [redacted];", wantSig: `{"input":"[redacted]",`},
		"a page of a proxy with all headers": {server: vaultAnswers(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			fmt.Fprintf(w, "<html>%v</html>", r.Header)
		}), wantPublic: "(502: an answer that is not vault's JSON)", wantSig: "(502: "},
		"a page that is no failure": {server: vaultAnswers(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "<html>%v</html>", r.Header) }),
			wantPublic: "answered to transit/keys/payer: invalid character '<'", wantSig: "expected the JSON of vault: correct the url"},
		"an answer that never ends": {server: vaultAnswers(func(w http.ResponseWriter, _ *http.Request) {
			for n := 0; n < 4*maxVaultAnswer; n += 1024 {
				fmt.Fprintf(w, "%1024s", "")
			}
		}), wantPublic: "answered to transit/keys/payer: EOF", wantSig: "EOF"},
		"a redirect that shows the token to the network": {server: vaultAnswers(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+r.Host+r.URL.Path, http.StatusTemporaryRedirect)
		}), wantPublic: "redirects (307), and the token is for no other server", wantSig: "redirects (307)"},
		"another token": {server: func(v *vaultServer) { clear(v.tokens) }, wantPublic: "vault refused the token (403", wantSig: "vault refused the token (403"},
		"a token file that is missing": {
			options:    func(o *VaultTransitOptions) { o.TokenFile += ".gone" },
			wantPublic: "read the token: open ", wantSig: "read the token: open ",
		},
		"a token file with two lines": {
			options: func(o *VaultTransitOptions) {
				o.TokenFile = replaceFile(t, filepath.Join(t.TempDir(), "token"), []byte(vaultToken+"\n"+vaultToken))
			},
			wantPublic: "has 33 bytes that are not one: expected one line", wantSig: "not one",
		},
		"a token file that is empty": {
			options: func(o *VaultTransitOptions) {
				o.TokenFile = replaceFile(t, filepath.Join(t.TempDir(), "token"), []byte("\n"))
			},
			wantPublic: "has 1 bytes that are not one", wantSig: "not one",
		},
		"the ca file of another authority": {
			options: func(o *VaultTransitOptions) {
				o.CAFile = replaceFile(t, filepath.Join(t.TempDir(), "ca.crt"), encodeVaultCertificate(newVaultCertificate(t)))
			},
			wantPublic: "certificate signed by unknown authority: put the authority of vault's certificate into the ca file", wantSig: "unknown authority",
		},
		"the system's authorities": {options: func(o *VaultTransitOptions) { o.CAFile = "" }, wantPublic: "certificate signed by unknown authority", wantSig: "unknown authority"},
		"a server that is away":    {options: func(o *VaultTransitOptions) { o.URL = "https://127.0.0.1:1" }, wantPublic: "call vault at 127.0.0.1:1: dial tcp", wantSig: "connection refused"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newVaultServer(t, vaultSeed(1), vaultSeed(2))
			if test.server != nil {
				server.set(test.server)
			}
			transit := server.newTransit(t, test.options)
			public, err := transit.PublicKey(t.Context())
			checkVaultError(t, "PublicKey", err, test.wantPublic)
			if (public == nil) != (test.wantPublic != "") {
				t.Errorf("got public key %x", public)
			}
			signature, err := transit.Sign(t.Context(), vaultMessage)
			checkVaultError(t, "Sign", err, test.wantSig)
			if (signature == nil) != (test.wantSig != "") {
				t.Errorf("got signature %x", signature)
			}
			if server.calls > 2 {
				t.Errorf("the server was asked %d times, want once for each", server.calls)
			}
		})
	}
}

// vaultRepeats is what Vault does not do.
func vaultRepeats(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	refuseAsVault(w, http.StatusBadRequest, "token "+r.Header.Get("X-Vault-Token"), string(body))
}

func TestVaultTransitReadsTheTokenAnew(t *testing.T) {
	t.Parallel()
	server := newVaultServer(t, vaultSeed(1))
	transit := server.newTransit(t, nil)
	if _, err := transit.Sign(t.Context(), vaultMessage); err != nil {
		t.Fatal(err)
	}
	server.set(func(v *vaultServer) { v.tokens = map[string]bool{vaultToken + "-2": true} })
	_, err := transit.Sign(t.Context(), vaultMessage)
	checkVaultError(t, "with the old token", err, "vault refused the token")
	replaceFile(t, transit.o.TokenFile, []byte(vaultToken+"-2"))
	if _, err := transit.Sign(t.Context(), vaultMessage); err != nil {
		t.Errorf("with the new token: %v", err)
	}
}

func TestVaultTransitTakesATokenThatWasReplacedDuringTheCall(t *testing.T) {
	t.Parallel()
	server := newVaultServer(t, vaultSeed(1))
	transit := server.newTransit(t, nil)
	server.set(vaultAnswers(func(w http.ResponseWriter, _ *http.Request) {
		server.set(func(v *vaultServer) { v.answer, v.tokens = nil, map[string]bool{vaultToken + "-2": true} })
		replaceFile(t, transit.o.TokenFile, []byte(vaultToken+"-2"))
		refuseAsVault(w, http.StatusForbidden, "permission denied")
	}))
	if _, err := transit.Sign(t.Context(), vaultMessage); err != nil || server.calls != 2 {
		t.Errorf("got error %v after %d calls, want none after 2", err, server.calls)
	}
}

func TestVaultTransitTrustsAReplacedAuthority(t *testing.T) {
	t.Parallel()
	server := newVaultServer(t, vaultSeed(1))
	now := time.Now()
	transit := server.newTransit(t, func(o *VaultTransitOptions) { o.Now = func() time.Time { return now } })
	sign := func(what, want string) {
		t.Helper()
		now = now.Add(time.Minute) // the file is not read for each call
		_, err := transit.Sign(t.Context(), vaultMessage)
		checkVaultError(t, what, err, want)
	}
	sign("with the first authority", "")
	next := newVaultCertificate(t)
	replaceFile(t, transit.o.CAFile, append(encodeVaultCertificate(server.certificate), encodeVaultCertificate(next)...))
	server.set(func(v *vaultServer) { v.certificate = next })
	sign("with both authorities", "")
	replaceFile(t, transit.o.CAFile, []byte("half a certificate"))
	sign("with a file that is being written", "")
	replaceFile(t, transit.o.CAFile, encodeVaultCertificate(newVaultCertificate(t)))
	sign("with a third authority", "unknown authority")
}

func TestVaultTransitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	hangs := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	hangsWithin := func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"data":`)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	deadline := func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, 100*time.Millisecond)
	}
	cancelled := func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(50*time.Millisecond, cancel)
		return ctx, cancel
	}
	tests := map[string]struct {
		answer http.HandlerFunc
		limit  func(context.Context) (context.Context, context.CancelFunc)
		want   error
	}{
		"a slow server and a deadline":              {hangs, deadline, context.DeadlineExceeded},
		"a caller that stops waiting":               {hangs, cancelled, context.Canceled},
		"an answer that stops and a deadline":       {hangsWithin, deadline, context.DeadlineExceeded},
		"an answer that stops and a caller as well": {hangsWithin, cancelled, context.Canceled},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newVaultServer(t, vaultSeed(1))
			server.set(vaultAnswers(test.answer))
			transit := server.newTransit(t, nil)
			ctx, cancel := test.limit(t.Context())
			defer cancel()
			began := time.Now()
			_, err := transit.Sign(ctx, vaultMessage)
			checkVaultError(t, "Sign", err, "call vault at 127.0.0.1:")
			if took := time.Since(began); !errors.Is(err, test.want) || took > 5*time.Second {
				t.Errorf("got error %v after %s, want %v at once", err, took, test.want)
			}
		})
	}
}

var _ Service = (*VaultTransit)(nil)

package signer

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openbao/openbao/api/v2"
)

// realVault is a server of hack/vault.
type realVault struct {
	url   string
	admin *api.Client
}

// startRealVault starts the program that RELAYPOOL_VAULT_SERVER names, with the key payer of two
// versions, and a policy for it.
func startRealVault(t *testing.T) *realVault {
	t.Helper()
	program := os.Getenv("RELAYPOOL_VAULT_SERVER")
	if program == "" {
		t.Skip("RELAYPOOL_VAULT_SERVER does not name the program of hack/vault")
	}
	server := exec.CommandContext(t.Context(), program, "-listen", "127.0.0.1:0", "-token", "root-of-a-test")
	server.Stderr = os.Stderr
	output, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Wait() }) // the test's context has ended by now, which kills it
	line, err := bufio.NewReader(output).ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		t.Fatalf("the server said %q and failed: %v", line, err)
	}
	config := api.NewConfig()
	config.Address = address
	v := &realVault{url: address}
	if v.admin, err = api.NewClient(config); err != nil {
		t.Fatal(err)
	}
	v.admin.SetToken("root-of-a-test")
	v.write(t, "transit/keys/payer", map[string]any{"type": "ed25519"})
	v.write(t, "transit/keys/payer/rotate", nil)
	v.write(t, "sys/policies/acl/relay", map[string]any{"policy": `path "transit/keys/payer" { capabilities = ["read"] }
path "transit/sign/payer" { capabilities = ["update"] }`})
	return v
}

func (v *realVault) write(t *testing.T, path string, data map[string]any) *api.Secret {
	t.Helper()
	secret, err := v.admin.Logical().WriteWithContext(t.Context(), path, data)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// tokenOf makes a token with the policies and writes it to a file.
func (v *realVault) tokenOf(t *testing.T, policies ...string) (file string) {
	t.Helper()
	secret := v.write(t, "auth/token/create", map[string]any{"policies": policies, "no_parent": true})
	return replaceFile(t, filepath.Join(t.TempDir(), "token"), []byte(secret.Auth.ClientToken))
}

func (v *realVault) newTransit(t *testing.T, change func(*VaultTransitOptions)) *VaultTransit {
	t.Helper()
	o := VaultTransitOptions{URL: v.url, Key: "payer", KeyVersion: 1, Now: time.Now}
	change(&o)
	transit, err := NewVaultTransit(o)
	if err != nil {
		t.Fatal(err)
	}
	return transit
}

// checkSigns checks that the key signs messages of all sizes of a transaction, and returns its public key.
func checkSigns(t *testing.T, transit *VaultTransit) ed25519.PublicKey {
	t.Helper()
	public, err := transit.PublicKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 1, 200, 1232} {
		message := make([]byte, size)
		_, _ = rand.Read(message)
		signature, err := transit.Sign(t.Context(), message)
		if err != nil || !ed25519.Verify(public, message, signature) {
			t.Errorf("a message of %d bytes: got signature %x and error %v", size, signature, err)
		}
	}
	return public
}

func TestVaultTransitRealServer(t *testing.T) {
	t.Parallel()
	v := startRealVault(t)
	token := v.tokenOf(t, "relay")
	first := v.newTransit(t, func(o *VaultTransitOptions) { o.TokenFile = token })
	second := v.newTransit(t, func(o *VaultTransitOptions) { o.TokenFile, o.KeyVersion = token, 2 })
	if checkSigns(t, first).Equal(checkSigns(t, second)) {
		t.Error("two versions have the same public key")
	}
	v.write(t, "transit/keys/derived", map[string]any{"type": "ed25519", "derived": true})
	v.write(t, "transit/keys/p256", map[string]any{"type": "ecdsa-p256"})
	v.write(t, "transit/keys/aes", map[string]any{"type": "aes256-gcm96"})
	v.write(t, "transit/keys/archived", map[string]any{"type": "ed25519"})
	v.write(t, "transit/keys/archived/rotate", nil)
	v.write(t, "transit/keys/archived/config", map[string]any{"min_decryption_version": 2})
	v.write(t, "transit/keys/minimum", map[string]any{"type": "ed25519"})
	v.write(t, "transit/keys/minimum/rotate", nil)
	v.write(t, "transit/keys/minimum/config", map[string]any{"min_encryption_version": 2})
	root, none := v.tokenOf(t, "root"), v.tokenOf(t, "default")
	tests := map[string]struct {
		options             VaultTransitOptions
		wantPublic, wantSig string // in the errors
	}{
		"no version 3":              {VaultTransitOptions{Key: "payer", KeyVersion: 3}, "has no version 3: its latest version is 2", "does not sign with version 3 (500: 1 error occurred: * requested version for signing is higher"},
		"a derived key":             {VaultTransitOptions{Key: "derived"}, "is derived", "vault answered with a failure"},
		"a key on another curve":    {VaultTransitOptions{Key: "p256"}, `has the type "ecdsa-p256"`, "expected 64 bytes in base64"},
		"a symmetric key":           {VaultTransitOptions{Key: "aes"}, `has the type "aes256-gcm96"`, "does not support signing"},
		"an archived version":       {VaultTransitOptions{Key: "archived"}, "its min_decryption_version is 2: set that to 1 or less", "does not sign with version 1 (500: 1 error occurred: * no such key version)"},
		"a version below the least": {VaultTransitOptions{Key: "minimum"}, "its min_encryption_version is 2: set that to 1 or less", "less than the minimum encryption key version"},
		"no key":                    {VaultTransitOptions{Key: "none"}, `vault has no key "none" at "transit" (404`, `vault has no key "none" at "transit" (400: signing key not found)`},
		"no mount":                  {VaultTransitOptions{Key: "payer", Mount: "none"}, `vault has no key "payer" at "none" (404: no handler for route`, "(404: no handler for route"},
		"no policy":                 {VaultTransitOptions{Key: "payer", TokenFile: none}, `allows read on "transit/keys/payer"`, `update on "transit/sign/payer"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			transit := v.newTransit(t, func(o *VaultTransitOptions) {
				base := *o
				*o = test.options
				o.URL, o.Now, o.KeyVersion = base.URL, base.Now, max(o.KeyVersion, 1)
				if o.TokenFile == "" {
					o.TokenFile = root
				}
			})
			_, err := transit.PublicKey(t.Context())
			checkVaultError(t, "PublicKey", err, test.wantPublic)
			_, err = transit.Sign(t.Context(), vaultMessage)
			checkVaultError(t, "Sign", err, test.wantSig)
		})
	}
	checkRealLogin(t, v)
	v.write(t, "sys/seal", nil)
	_, err := first.Sign(t.Context(), vaultMessage)
	checkVaultError(t, "sealed", err, "vault does not serve (503: Vault is sealed): unseal it")
}

// checkRealLogin logs in by the real auth method, with an API server that knows one service account.
func checkRealLogin(t *testing.T, v *realVault) {
	t.Helper()
	jwt := newServiceAccountToken(t)
	kubernetes := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "status": map[string]any{
			"authenticated": strings.Contains(string(body), jwt), "audiences": []string{"vault"},
			"user": map[string]any{"username": "system:serviceaccount:pool:relay", "uid": "e1a2"},
		}})
	}))
	t.Cleanup(kubernetes.Close)
	v.write(t, "auth/kubernetes/config", map[string]any{"kubernetes_host": kubernetes.URL, "disable_local_ca_jwt": true})
	v.write(t, "auth/kubernetes/role/relay", map[string]any{
		"bound_service_account_names": "relay", "bound_service_account_namespaces": "pool", "audience": "vault", "policies": "relay", "ttl": "3s",
	})
	file := replaceFile(t, filepath.Join(t.TempDir(), "jwt"), []byte(jwt))
	transit := v.newTransit(t, func(o *VaultTransitOptions) { o.KubernetesRole, o.JWTFile = "relay", file })
	checkSigns(t, transit)
	v.write(t, "sys/leases/revoke-prefix/auth/kubernetes/login", nil)
	checkSigns(t, transit) // by another login, after a 403
	for range 10 {         // past the lease
		time.Sleep(400 * time.Millisecond)
		if _, err := transit.Sign(t.Context(), vaultMessage); err != nil {
			t.Fatal(err)
		}
	}
	other := v.newTransit(t, func(o *VaultTransitOptions) { o.KubernetesRole, o.JWTFile = "other", file })
	_, err := other.Sign(t.Context(), vaultMessage)
	checkVaultError(t, "another role", err, `vault refused the login with the role "other" at "auth/kubernetes" (400: invalid role name "other")`)
	v.write(t, "auth/kubernetes/role/other", map[string]any{
		"bound_service_account_names": "another", "bound_service_account_namespaces": "pool", "audience": "vault", "policies": "relay",
	})
	_, err = other.Sign(t.Context(), vaultMessage)
	checkVaultError(t, "a role of another service account", err, "(403: service account name not authorized)")
	away := v.newTransit(t, func(o *VaultTransitOptions) { o.KubernetesRole, o.KubernetesMount, o.JWTFile = "relay", "none", file })
	_, err = away.Sign(t.Context(), vaultMessage)
	checkVaultError(t, "another mount", err, `at "auth/none" (403: permission denied)`)
}

// newServiceAccountToken makes a token as Kubernetes projects it.
func newServiceAccountToken(t *testing.T) string {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	claims, err := json.Marshal(map[string]any{
		"aud": []string{"vault"}, "iss": "https://kubernetes.default.svc", "sub": "system:serviceaccount:pool:relay",
		"iat": time.Now().Unix(), "nbf": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
		"kubernetes.io": map[string]any{"namespace": "pool", "serviceaccount": map[string]any{"name": "relay", "uid": "e1a2"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	content := encode([]byte(`{"alg":"ES256","kid":"a"}`)) + "." + encode(claims)
	sum := sha256.Sum256([]byte(content))
	r, s, err := ecdsa.Sign(rand.Reader, private, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	signature := append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	return content + "." + encode(signature)
}

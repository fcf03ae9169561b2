package signer

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Values that no error may contain.
const (
	vaultToken = "hvs.canary-token"
	vaultJWT   = "eyJ.canary-jwt.sig"
)

// vaultServer speaks the protocol of Vault's engine Transit and of its auth method kubernetes, as far
// as the adapter needs it.
type vaultServer struct {
	url string

	mu sync.Mutex
	// certificate is what the server presents.
	certificate *tls.Certificate
	// tokens are those that it accepts.
	tokens map[string]bool
	// jwt is the one that it accepts, and lease what a login is valid for, in seconds.
	jwt   string
	lease int
	// key is what a read of transit/keys/payer tells; private are the versions' keys.
	key     map[string]any
	private map[int]ed25519.PrivateKey
	// answer replaces the answer to calls of the engine, and loginAnswer those to logins, if set.
	answer, loginAnswer http.HandlerFunc
	// logins and calls count requests; namespace is the last one asked for.
	logins, calls int
	namespace     string
}

// newVaultServer starts a server whose key payer has a version for each seed.
func newVaultServer(t *testing.T, seeds ...[]byte) *vaultServer {
	t.Helper()
	v := &vaultServer{tokens: map[string]bool{vaultToken: true}, jwt: vaultJWT, lease: 3600, private: map[int]ed25519.PrivateKey{}}
	versions := map[string]any{}
	for i, seed := range seeds {
		v.private[i+1] = ed25519.NewKeyFromSeed(seed)
		versions[strconv.Itoa(i+1)] = map[string]any{
			"name": "ed25519", "creation_time": "2026-11-02T10:00:00Z", "certificate_chain": "",
			"public_key": base64.StdEncoding.EncodeToString(v.private[i+1].Public().(ed25519.PublicKey)),
		}
	}
	v.key = map[string]any{
		"name": "payer", "type": "ed25519", "derived": false, "latest_version": len(seeds), "min_available_version": 0,
		"min_decryption_version": 1, "min_encryption_version": 0, "supports_signing": true, "keys": versions,
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/transit/keys/{name}", v.authorised(v.readKey))
	mux.HandleFunc("POST /v1/transit/sign/{name}", v.authorised(v.sign))
	mux.HandleFunc("POST /v1/auth/kubernetes/login", v.login)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuseAsVault(w, http.StatusNotFound, fmt.Sprintf("no handler for route %q. route entry not found.", r.URL.Path))
	})
	server := httptest.NewUnstartedServer(mux)
	v.certificate = newVaultCertificate(t)
	server.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		v.mu.Lock()
		defer v.mu.Unlock()
		return &tls.Config{Certificates: []tls.Certificate{*v.certificate}, NextProtos: []string{"h2", "http/1.1"}}, nil
	}}
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes are expected
	server.StartTLS()
	t.Cleanup(server.Close)
	v.url = server.URL
	return v
}

// refuseAsVault answers as Vault does.
func refuseAsVault(w http.ResponseWriter, status int, reasons ...string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"errors": append([]string{}, reasons...)})
}

func answerAsVault(w http.ResponseWriter, field string, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"request_id": "2f0fbb0e-6b5c-2bd7-6f1d-0d7f6a2d7a6d", "lease_id": "", "renewable": false, "lease_duration": 0,
		"data": nil, "wrap_info": nil, "warnings": nil, "auth": nil, field: value,
	})
}

func (v *vaultServer) authorised(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v.mu.Lock()
		v.calls++
		v.namespace = r.Header.Get("X-Vault-Namespace")
		accepted, answer := v.tokens[r.Header.Get("X-Vault-Token")], v.answer
		v.mu.Unlock()
		switch {
		case r.Header.Get("X-Vault-Request") != "true", r.Header.Get("X-Vault-Wrap-TTL") != "":
			refuseAsVault(w, http.StatusBadRequest, "missing required header or unexpected wrapping")
		case answer != nil:
			answer(w, r)
		case !accepted:
			refuseAsVault(w, http.StatusForbidden, "2 errors occurred:\n\t* permission denied\n\t* invalid token\n\n")
		default:
			next(w, r)
		}
	}
}

func (v *vaultServer) readKey(w http.ResponseWriter, r *http.Request) {
	if r.PathValue("name") != "payer" {
		refuseAsVault(w, http.StatusNotFound)
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	answerAsVault(w, "data", v.key)
}

func (v *vaultServer) sign(w http.ResponseWriter, r *http.Request) {
	var request map[string]any
	decoder := json.NewDecoder(r.Body)
	decoder.UseNumber()
	err := decoder.Decode(&request)
	text, _ := request["input"].(string)
	number, _ := request["key_version"].(json.Number)
	input, inputErr := base64.StdEncoding.DecodeString(text)
	version, _ := strconv.Atoi(number.String())
	v.mu.Lock()
	defer v.mu.Unlock()
	private := v.private[version]
	minimum, _ := v.key["min_encryption_version"].(int)
	switch {
	case err != nil || inputErr != nil || len(request) != 2:
		refuseAsVault(w, http.StatusBadRequest, "unable to decode input")
	case r.PathValue("name") != "payer":
		refuseAsVault(w, http.StatusBadRequest, "signing key not found")
	case version < minimum:
		refuseAsVault(w, http.StatusInternalServerError, "1 error occurred:\n\t* requested version for signing is less than the minimum encryption key version\n\n")
	case private == nil:
		refuseAsVault(w, http.StatusInternalServerError, "1 error occurred:\n\t* requested version for signing is higher than the latest key version\n\n")
	default:
		signature := fmt.Sprintf("vault:v%d:%s", version, base64.StdEncoding.EncodeToString(ed25519.Sign(private, input)))
		answerAsVault(w, "data", map[string]any{"signature": signature, "key_version": version})
	}
}

func (v *vaultServer) login(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.logins++
	var request struct{ Role, JWT string }
	switch err := json.NewDecoder(r.Body).Decode(&request); {
	case v.loginAnswer != nil:
		v.loginAnswer(w, r)
	case err != nil || r.Header.Get("X-Vault-Token") != "" || request.Role != "relay":
		refuseAsVault(w, http.StatusBadRequest, fmt.Sprintf("invalid role name %q", request.Role))
	case request.JWT != v.jwt:
		refuseAsVault(w, http.StatusForbidden, "permission denied")
	default:
		token := fmt.Sprintf("%s-%d", vaultToken, v.logins)
		v.tokens[token] = true
		answerAsVault(w, "auth", map[string]any{"client_token": token, "accessor": "a", "policies": []string{"relay"}, "lease_duration": v.lease, "renewable": true})
	}
}

// set changes the server's state between calls.
func (v *vaultServer) set(change func(*vaultServer)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	change(v)
}

// caFile writes the server's authority to a file.
func (v *vaultServer) caFile(t *testing.T) string {
	t.Helper()
	return replaceFile(t, filepath.Join(t.TempDir(), "ca.crt"), encodeVaultCertificate(v.certificate))
}

// replaceFile replaces the file as Kubernetes and Vault Agent do, by a rename.
func replaceFile(t *testing.T, path string, content []byte) string {
	t.Helper()
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	return path
}

func encodeVaultCertificate(c *tls.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]})
}

// newVaultCertificate makes a certificate of 127.0.0.1 that is its own authority.
func newVaultCertificate(t *testing.T) *tls.Certificate {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "vault " + serial.String()}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}
}

// vaultSeed makes a key's seed.
func vaultSeed(b byte) []byte { return bytes.Repeat([]byte{b}, ed25519.SeedSize) }

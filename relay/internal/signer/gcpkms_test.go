package signer

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// kmsVectors are the keys of RFC 8032, 7.1, tests 1 to 3. The messages and signatures of tests 2 and 3
// are the RFC's, too. The message of test 1 is empty, which no service signs: OpenSSL signed another.
var kmsVectors = map[string]struct{ seed, public, message, signature string }{
	"the key of test 1 of RFC 8032": {
		"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60", "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
		hex.EncodeToString([]byte("relaypool: does this signer sign?")),
		"e7f540cf9c0b7867b61c03536ec8e0df8baa411edd33414afae1a8417a7df2e14ecab68c3b142356bc41df5e5cfcce54ef941007bbd8d607812e6da90b698a06",
	},
	"test 2 of RFC 8032": {
		"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb", "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
		"92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
	},
	"test 3 of RFC 8032": {
		"c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7", "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
		"6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
	},
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// spki encodes a public key as key services do.
func spki(t *testing.T, public any) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func p256(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return spki(t, key.Public())
}

// writeFile writes a file of the test, and returns its path.
func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func checkBounds(t *testing.T, s Service, private ed25519.PrivateKey, longest int) {
	t.Helper()
	message := bytes.Repeat([]byte("m"), longest)
	if signature, err := s.Sign(t.Context(), message); err != nil || !bytes.Equal(signature, ed25519.Sign(private, message)) {
		t.Errorf("the longest message: got signature %x and error %v", signature, err)
	}
	_, err := s.Sign(t.Context(), append(message, 'm'))
	checkError(t, err, []string{fmt.Sprintf("the message has %d bytes: expected 1 to %d", longest+1, longest)}, nil)
	_, err = s.Sign(t.Context(), nil)
	checkError(t, err, []string{"the message has 0 bytes"}, nil)
}

const (
	gcpKeyName     = "projects/relay-1/locations/europe-west3/keyRings/relay/cryptoKeys/payer/cryptoKeyVersions/1"
	gcpCanaryToken = "ya29.canaryAccessToken-0123456789"
)

// gcpServer is Google Cloud KMS with one key version, and the token server of a service account, and a
// metadata server.
type gcpServer struct {
	*httptest.Server
	private ed25519.PrivateKey
	// change changes an answer before it is sent, if it is not nil.
	change func(answer map[string]any)
	// refuse answers in place of Cloud KMS, and refuseToken in place of the token server, if not nil.
	refuse, refuseToken func(w http.ResponseWriter, r *http.Request)

	mu       sync.Mutex
	requests []gcpRequest // to Cloud KMS
}

type gcpRequest struct {
	Method, Path, Authorization string
	Body                        map[string]any
}

func newGCPServer(t *testing.T, seed []byte) *gcpServer {
	t.Helper()
	s := &gcpServer{private: ed25519.NewKeyFromSeed(seed)}
	public := spki(t, s.private.Public())
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request := gcpRequest{Method: r.Method, Path: r.URL.Path, Authorization: r.Header.Get("Authorization")}
		answer := map[string]any{"name": gcpKeyName, "protectionLevel": "HSM"}
		switch path := strings.TrimPrefix(r.URL.Path, "/v1/"+gcpKeyName); {
		case r.URL.Path == "/token" || r.URL.Path == "/computeMetadata/v1/instance/service-accounts/default/token":
			if s.refuseToken != nil {
				s.refuseToken(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"access_token":%q,"expires_in":3600,"token_type":"Bearer"}`, gcpCanaryToken)
			return
		case path == "/publicKey":
			setPublicKey(answer, "PUBLIC KEY", public)
			answer["algorithm"] = "EC_SIGN_ED25519"
		case path == ":asymmetricSign":
			var sign struct{ Data []byte } // in base64
			raw, err := io.ReadAll(r.Body)
			if err != nil || json.Unmarshal(raw, &request.Body) != nil || json.Unmarshal(raw, &sign) != nil {
				t.Errorf("request body %q is not JSON (%v)", raw, err)
			}
			signature := ed25519.Sign(s.private, sign.Data)
			answer["signature"], answer["signatureCrc32c"] = signature, crc32c(signature)
			answer["verifiedDataCrc32c"] = request.Body["dataCrc32c"] == crc32c(sign.Data)
		default:
			t.Errorf("unknown path %q", r.URL.Path)
		}
		s.mu.Lock()
		s.requests = append(s.requests, request)
		s.mu.Unlock()
		if s.refuse != nil {
			s.refuse(w, r)
			return
		}
		if s.change != nil {
			s.change(answer)
		}
		w.Header().Set("Content-Type", "application/json; charset=UTF-8")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(s.Close)
	return s
}

// crc32c is a checksum as Google writes 64-bit integers in JSON.
func crc32c(b []byte) string {
	return strconv.FormatUint(uint64(crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))), 10)
}

func setPublicKey(answer map[string]any, kind string, der []byte) {
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	answer["pem"], answer["pemCrc32c"] = string(text), crc32c(text)
}

// take returns the requests since it was last called.
func (s *gcpServer) take() []gcpRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.requests = nil }()
	return s.requests
}

// client has tokens from a metadata server, as a pod with Workload Identity has.
func (s *gcpServer) client(t *testing.T) *GCPKMS {
	t.Helper()
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(s.URL, "http://"))
	k, err := NewGCPKMS(t.Context(), GCPKMSOptions{KeyVersion: gcpKeyName, Endpoint: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// serviceAccountFile is a credentials file whose tokens the server issues, and its private key in
// base64.
func (s *gcpServer) serviceAccountFile(t *testing.T) (path, private string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	content, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "relay@relay-1.iam.gserviceaccount.com", "private_key_id": "1", "token_uri": s.URL + "/token",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, "account.json", string(content)), base64.StdEncoding.EncodeToString(der)[130:180]
}

var _ Service = (*GCPKMS)(nil)

func TestGCPKMSCallsAreAsDocumentedAndSignaturesExact(t *testing.T) {
	for name, vector := range kmsVectors {
		t.Run(name, func(t *testing.T) {
			server, message := newGCPServer(t, unhex(t, vector.seed)), unhex(t, vector.message)
			k := server.client(t)
			public, err := k.PublicKey(t.Context())
			if got := hex.EncodeToString(public); err != nil || got != vector.public {
				t.Errorf("got public key %s and error %v, want %s", got, err, vector.public)
			}
			signature, err := k.Sign(t.Context(), message)
			if got := hex.EncodeToString(signature); err != nil || got != vector.signature {
				t.Errorf("got signature %s and error %v, want %s", got, err, vector.signature)
			}
			want := []gcpRequest{
				{"GET", "/v1/" + gcpKeyName + "/publicKey", "Bearer " + gcpCanaryToken, nil},
				{"POST", "/v1/" + gcpKeyName + ":asymmetricSign", "Bearer " + gcpCanaryToken, map[string]any{"data": base64.StdEncoding.EncodeToString(message), "dataCrc32c": crc32c(message)}},
			}
			if diff := cmp.Diff(want, server.take()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// gcpRefusal is an error of Cloud KMS whose message repeats all of the request's headers.
func gcpRefusal(code int, status, reason, message string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{
			"code": code, "status": status, "message": fmt.Sprint(message, r.Header),
			"details": []any{map[string]any{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "metadata": r.Header}},
		}})
	}
}

func TestGCPKMSErrorsSayWhatToDoAndHoldNoCredentials(t *testing.T) {
	set := func(field string, value any) func(map[string]any) {
		return func(answer map[string]any) { answer[field] = value }
	}
	both, read, sign := []string{"PublicKey", "Sign"}, []string{"PublicKey"}, []string{"Sign"}
	disabled := gcpKeyName + " is not enabled, current state is: DISABLED."
	tests := map[string]struct {
		calls  []string
		refuse func(http.ResponseWriter, *http.Request)
		change func(map[string]any)
		want   []string
	}{
		"access is denied":                       {both, gcpRefusal(403, "PERMISSION_DENIED", "IAM_PERMISSION_DENIED", ""), nil, []string{"PERMISSION_DENIED (IAM_PERMISSION_DENIED, HTTP status 403)", "grant it roles/cloudkms.signerVerifier"}},
		"the API is off":                         {both, gcpRefusal(403, "PERMISSION_DENIED", "SERVICE_DISABLED", ""), nil, []string{"enable the Cloud KMS API"}},
		"the token has expired":                  {both, gcpRefusal(401, "UNAUTHENTICATED", "ACCESS_TOKEN_EXPIRED", ""), nil, []string{"UNAUTHENTICATED", "clock"}},
		"the key is missing":                     {both, gcpRefusal(404, "NOT_FOUND", "", "not found"), nil, []string{"NOT_FOUND (HTTP status 404)", "correct its name"}},
		"the key is disabled":                    {both, gcpRefusal(400, "FAILED_PRECONDITION", "", disabled), nil, []string{"in state DISABLED: expected ENABLED", "enable it"}},
		"the key's state is not told":            {both, gcpRefusal(400, "FAILED_PRECONDITION", "", ""), nil, []string{"cannot be used in its state: expected ENABLED"}},
		"the key signs by another algorithm":     {sign, gcpRefusal(400, "INVALID_ARGUMENT", "", ""), nil, []string{"expected the algorithm EC_SIGN_ED25519"}},
		"there are too many calls":               {both, gcpRefusal(429, "RESOURCE_EXHAUSTED", "RATE_LIMIT_EXCEEDED", ""), nil, []string{"quota"}},
		"the service has a fault":                {both, gcpRefusal(503, "UNAVAILABLE", "", ""), nil, []string{"UNAVAILABLE (HTTP status 503)", "the service has a fault"}},
		"the error's status is a secret":         {both, gcpRefusal(400, gcpCanaryToken, gcpCanaryToken, ""), nil, []string{"an unknown error (HTTP status 400)"}},
		"a proxy answers with a page of its own": {both, plainAnswer(502, "<html>Bad gateway</html>"), nil, []string{"an unknown error (HTTP status 502)", "whether the endpoint is Google Cloud KMS"}},
		"the answer is not JSON":                 {both, plainAnswer(200, "<html>Welcome</html>"), nil, []string{"not complete JSON of Google Cloud KMS"}},
		"the answer is empty":                    {both, func(http.ResponseWriter, *http.Request) {}, nil, []string{"not complete JSON"}},
		"the answer is a redirect":               {both, redirect, nil, []string{"HTTP status 302"}},
		"the connection ends before the answer":  {both, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, nil, []string{"the key service was not reached"}},
		"the answer is for another key":          {both, nil, set("name", strings.TrimSuffix(gcpKeyName, "1")+"2"), []string{"expected an answer for key version " + gcpKeyName, "received one for", "cryptoKeyVersions/2"}},
		"the answer has no name":                 {both, nil, set("name", ""), []string{"received one for none"}},
		"the key is of another algorithm":        {read, nil, set("algorithm", "EC_SIGN_P256_SHA256"), []string{"expected the algorithm EC_SIGN_ED25519", `received "EC_SIGN_P256_SHA256"`}},
		"the public key's checksum is damaged":   {read, nil, set("pemCrc32c", "1"), []string{"the public key and its checksum differ"}},
		"the public key is not PEM":              {read, nil, func(a map[string]any) { a["pem"] = "damaged"; delete(a, "pemCrc32c") }, []string{"expected one public key in PEM", "7 bytes"}},
		"the public key is of another curve":     {read, nil, func(a map[string]any) { setPublicKey(a, "PUBLIC KEY", p256(t)) }, []string{"expected an ed25519 key", "*ecdsa.PublicKey"}},
		"the PEM is a certificate":               {read, nil, func(a map[string]any) { setPublicKey(a, "CERTIFICATE", p256(t)) }, []string{"expected one public key in PEM"}},
		"the message's checksum was lost":        {sign, nil, set("verifiedDataCrc32c", false), []string{"did not check the message's checksum"}},
		"the signature's checksum is damaged":    {sign, nil, set("signatureCrc32c", "1"), []string{"the signature and its checksum differ"}},
		"the signature's checksum is missing":    {sign, nil, func(a map[string]any) { delete(a, "signatureCrc32c") }, []string{"the signature and its checksum differ"}},
		"the signature is of another length":     {sign, nil, set("signature", make([]byte, 70)), []string{"expected a signature of 64 bytes"}},
		"the signature is not base64":            {sign, nil, set("signature", "%"), []string{"expected a signature of 64 bytes in base64"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := newGCPServer(t, bytes.Repeat([]byte{7}, ed25519.SeedSize))
			server.refuse, server.change = test.refuse, test.change
			k := server.client(t)
			for _, call := range test.calls {
				checkError(t, callOnce(t.Context(), k, call), append([]string{gcpKeyName}, test.want...), []string{gcpCanaryToken})
				if requests := server.take(); len(requests) != 1 {
					t.Errorf("%s made %d requests, want 1: the Signer retries", call, len(requests))
				}
			}
		})
	}
}

func TestGCPKMSBoundsCallsInTimeAndSize(t *testing.T) {
	server := newGCPServer(t, bytes.Repeat([]byte{7}, ed25519.SeedSize))
	k := server.client(t)
	checkBounds(t, k, server.private, 64<<10)
	checkEndsWithContext(t, k, func(slow func(http.ResponseWriter, *http.Request)) { server.refuse = slow })
}

// A checksum of 0 is left out by the client, unless it is forced to send it.
func TestGCPKMSSendsAChecksumOfZero(t *testing.T) {
	server, message := newGCPServer(t, bytes.Repeat([]byte{7}, ed25519.SeedSize)), []byte{0xab, 0x9b, 0xe0, 0x9b}
	if checksum(message) != 0 {
		t.Fatalf("the checksum is %d, want 0", checksum(message))
	}
	_, err := server.client(t).Sign(t.Context(), message)
	if requests := server.take(); err != nil || requests[0].Body["dataCrc32c"] != "0" {
		t.Errorf("got error %v and requests %v, want the checksum 0", err, requests)
	}
}

func TestGCPKMSChecksItsOptions(t *testing.T) {
	server := newGCPServer(t, bytes.Repeat([]byte{7}, ed25519.SeedSize))
	account, _ := server.serviceAccountFile(t)
	file := func(content string) string { return writeFile(t, "credentials.json", content) }
	tests := map[string]struct {
		options GCPKMSOptions
		want    []string // of the error; nil for none
	}{
		"a key version":                      {GCPKMSOptions{KeyVersion: gcpKeyName}, nil},
		"a service account's file":           {GCPKMSOptions{KeyVersion: gcpKeyName, CredentialsFile: account}, nil},
		"a key without a version":            {GCPKMSOptions{KeyVersion: strings.TrimSuffix(gcpKeyName, "/cryptoKeyVersions/1")}, []string{"is not a resource name", "cryptoKeyVersions/NUMBER"}},
		"a name that leads to another path":  {GCPKMSOptions{KeyVersion: strings.Replace(gcpKeyName, "payer", "..", 1)}, []string{"is not a resource name"}},
		"an endpoint that reveals the token": {GCPKMSOptions{KeyVersion: gcpKeyName, Endpoint: "http://kms.example"}, []string{`scheme is "http": expected https`}},
		"a credentials file is missing":      {GCPKMSOptions{KeyVersion: gcpKeyName, CredentialsFile: "/nowhere/file.json"}, []string{"read the credentials file", "/nowhere/file.json"}},
		"a credentials file is not JSON":     {GCPKMSOptions{KeyVersion: gcpKeyName, CredentialsFile: file(gcpCanaryToken)}, []string{"is not usable", `"service_account"`}},
		"a credentials file has no key":      {GCPKMSOptions{KeyVersion: gcpKeyName, CredentialsFile: file(`{"type":"service_account","private_key":"` + gcpCanaryToken + `"}`)}, []string{"is not usable", "complete credentials"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := NewGCPKMS(t.Context(), test.options)
			if test.want != nil {
				checkError(t, err, test.want, []string{gcpCanaryToken})
			} else if err != nil {
				t.Errorf("got %v, want no error", err)
			}
		})
	}
}

func TestGCPKMSObtainsTokens(t *testing.T) {
	refuses := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprintf(w, `{"error":"invalid_grant","error_description":%q}`, gcpCanaryToken)
	}
	tests := map[string]struct {
		file   bool
		refuse func(http.ResponseWriter, *http.Request)
		want   []string
	}{
		"from the metadata server":        {false, nil, nil},
		"for a service account":           {true, nil, nil},
		"the metadata server refuses":     {false, refuses, []string{"no Google access token", "Workload Identity"}},
		"the service account is refused":  {true, refuses, []string{"no Google access token", "answered HTTP status 401"}},
		"the token server does not reply": {true, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, []string{"no Google access token"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := newGCPServer(t, bytes.Repeat([]byte{7}, ed25519.SeedSize))
			server.refuseToken = test.refuse
			k, private := server.client(t), gcpCanaryToken
			if test.file {
				o, err := GCPKMSOptions{KeyVersion: gcpKeyName, Endpoint: server.URL, HTTPClient: server.Client()}, error(nil)
				o.CredentialsFile, private = server.serviceAccountFile(t)
				if k, err = NewGCPKMS(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			_, err := k.Sign(t.Context(), []byte("message"))
			if test.want != nil {
				checkError(t, err, test.want, []string{gcpCanaryToken, private})
			} else if requests := server.take(); err != nil || requests[0].Authorization != "Bearer "+gcpCanaryToken {
				t.Errorf("got error %v and requests %v, want the token %s", err, requests, gcpCanaryToken)
			}
		})
	}
}

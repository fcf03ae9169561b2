package signer

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	awsRegionName   = "eu-central-1"
	awsKeyID        = "1234abcd-12ab-34cd-56ef-1234567890ab"
	awsKeyARN       = "arn:aws:kms:eu-central-1:111122223333:key/" + awsKeyID
	awsCanaryID     = "AKIACANARYACCESSKEY0"
	awsCanarySecret = "canarySecret/Key+canarySecretKey00000000"
	awsCanaryToken  = "canarySessionToken//canary=="
)

var awsCanaries = []string{awsCanaryID, awsCanarySecret, awsCanaryToken}

// awsFile is a credentials file with the canaries.
func awsFile(t *testing.T) string {
	t.Helper()
	return writeFile(t, "credentials", fmt.Sprintf("[default]\naws_access_key_id = %s\naws_secret_access_key = %s\naws_session_token = %s\n", awsCanaryID, awsCanarySecret, awsCanaryToken))
}

// clearAWSEnvironment makes the SDK find nothing of this machine.
func clearAWSEnvironment(t *testing.T) {
	t.Helper()
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_ENDPOINT_URL", "AWS_CA_BUNDLE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
}

// awsServer is AWS KMS with one key.
type awsServer struct {
	*httptest.Server
	private ed25519.PrivateKey
	// change changes an answer before it is sent, if it is not nil.
	change func(answer map[string]any)
	// refuse answers in place of the service, if it is not nil.
	refuse func(w http.ResponseWriter, r *http.Request)

	mu       sync.Mutex
	requests []awsRequest
}

type awsRequest struct {
	Method, Path, ContentType, Target, Authorization, Token string
	Body                                                    map[string]any
}

func newAWSServer(t *testing.T, seed []byte) *awsServer {
	t.Helper()
	s := &awsServer{private: ed25519.NewKeyFromSeed(seed)}
	public := spki(t, s.private.Public())
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request := awsRequest{r.Method, r.URL.Path, r.Header.Get("Content-Type"), r.Header.Get("X-Amz-Target"), r.Header.Get("Authorization"), r.Header.Get("X-Amz-Security-Token"), nil}
		raw, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(raw, &request.Body) != nil {
			t.Errorf("request body %q is not JSON (%v)", raw, err)
		}
		s.mu.Lock()
		s.requests = append(s.requests, request)
		s.mu.Unlock()
		if s.refuse != nil {
			s.refuse(w, r)
			return
		}
		answer := map[string]any{"KeyId": awsKeyARN}
		switch request.Target {
		case "TrentService.GetPublicKey":
			answer["KeySpec"], answer["CustomerMasterKeySpec"], answer["KeyUsage"] = "ECC_NIST_EDWARDS25519", "ECC_NIST_EDWARDS25519", "SIGN_VERIFY"
			answer["SigningAlgorithms"], answer["PublicKey"] = []string{"ED25519_SHA_512", "ED25519_PH_SHA_512"}, public
		case "TrentService.Sign":
			var sign struct{ Message []byte } // in base64
			if err := json.Unmarshal(raw, &sign); err != nil {
				t.Error(err)
			}
			answer["SigningAlgorithm"], answer["Signature"] = request.Body["SigningAlgorithm"], ed25519.Sign(s.private, sign.Message)
		default:
			t.Errorf("unknown target %q", request.Target)
		}
		if s.change != nil {
			s.change(answer)
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(s.Close)
	return s
}

// take returns the requests since it was last called.
func (s *awsServer) take() []awsRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.requests = nil }()
	return s.requests
}

func (s *awsServer) client(t *testing.T, credentialsFile string) *AWSKMS {
	t.Helper()
	k, err := NewAWSKMS(t.Context(), AWSKMSOptions{KeyID: awsKeyID, Region: awsRegionName, Endpoint: s.URL, CredentialsFile: credentialsFile})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

var _ Service = (*AWSKMS)(nil)

func TestAWSKMSCallsAreAsDocumentedAndSignaturesExact(t *testing.T) {
	clearAWSEnvironment(t)
	for name, vector := range kmsVectors {
		t.Run(name, func(t *testing.T) {
			server := newAWSServer(t, unhex(t, vector.seed))
			k := server.client(t, awsFile(t))
			public, err := k.PublicKey(t.Context())
			if got := hex.EncodeToString(public); err != nil || got != vector.public {
				t.Errorf("got public key %s and error %v, want %s", got, err, vector.public)
			}
			signature, err := k.Sign(t.Context(), unhex(t, vector.message))
			if got := hex.EncodeToString(signature); err != nil || got != vector.signature {
				t.Errorf("got signature %s and error %v, want %s", got, err, vector.signature)
			}
			authorization := regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=` + awsCanaryID + `/\d{8}/` + awsRegionName + `/kms/aws4_request, SignedHeaders=[a-z0-9;-]*x-amz-security-token[a-z0-9;-]*, Signature=[0-9a-f]{64}$`)
			requests := server.take()
			for i := range requests {
				if !authorization.MatchString(requests[i].Authorization) {
					t.Errorf("got authorization %q, want a signature of version 4", requests[i].Authorization)
				}
				requests[i].Authorization = ""
			}
			json11 := "application/x-amz-json-1.1"
			want := []awsRequest{
				{"POST", "/", json11, "TrentService.GetPublicKey", "", awsCanaryToken, map[string]any{"KeyId": awsKeyID}},
				{"POST", "/", json11, "TrentService.Sign", "", awsCanaryToken, map[string]any{"KeyId": awsKeyID, "Message": base64.StdEncoding.EncodeToString(unhex(t, vector.message)), "MessageType": "RAW", "SigningAlgorithm": "ED25519_SHA_512"}},
			}
			if diff := cmp.Diff(want, requests); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// awsRefusal is an error of KMS whose message repeats all of the request's headers and the secret.
func awsRefusal(status int, code, message string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]string{"__type": code, "message": fmt.Sprint(message, r.Header, awsCanarySecret)})
	}
}

func redirect(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, "/elsewhere", http.StatusFound)
}

func plainAnswer(status int, body string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, body, r.Header, awsCanarySecret)
	}
}

func TestAWSKMSErrorsSayWhatToDoAndHoldNoCredentials(t *testing.T) {
	clearAWSEnvironment(t)
	const denied = "User: arn:aws:sts::111122223333:assumed-role/relay/pod is not authorized to perform: kms:Sign"
	set := func(field string, value any) func(map[string]any) {
		return func(answer map[string]any) { answer[field] = value }
	}
	both, read, sign := []string{"PublicKey", "Sign"}, []string{"PublicKey"}, []string{"Sign"}
	tests := map[string]struct {
		calls  []string
		refuse func(http.ResponseWriter, *http.Request)
		change func(map[string]any)
		want   []string
	}{
		"access is denied":                         {both, awsRefusal(400, "AccessDeniedException", denied), nil, []string{"AccessDeniedException", "to arn:aws:sts::111122223333:assumed-role/relay/pod:", "allow it kms:Sign and kms:GetPublicKey"}},
		"the key is missing":                       {both, awsRefusal(400, "NotFoundException", "Key does not exist"), nil, []string{"NotFoundException", "have no such key", "needs its ARN"}},
		"the key is disabled":                      {both, awsRefusal(400, "DisabledException", awsKeyARN+" is disabled."), nil, []string{"DisabledException", "the key is disabled: enable it"}},
		"the key is to be deleted":                 {both, awsRefusal(400, "KMSInvalidStateException", awsKeyARN+" is pending deletion."), nil, []string{"KMSInvalidStateException", "cancel its deletion"}},
		"the key is one for encryption":            {both, awsRefusal(400, "InvalidKeyUsageException", ""), nil, []string{"InvalidKeyUsageException", "expected a key with the spec ECC_NIST_EDWARDS25519"}},
		"the session has expired":                  {both, awsRefusal(400, "ExpiredTokenException", "The security token included in the request is expired"), nil, []string{"ExpiredTokenException", "renew them"}},
		"the access key is unknown":                {both, awsRefusal(400, "UnrecognizedClientException", ""), nil, []string{"UnrecognizedClientException", "the credentials are not valid"}},
		"the request's signature is wrong":         {both, awsRefusal(400, "InvalidSignatureException", "The Canonical String for this request should have been"), nil, []string{"InvalidSignatureException", "clock"}},
		"there are too many calls":                 {both, awsRefusal(400, "ThrottlingException", "Rate exceeded"), nil, []string{"ThrottlingException", "quota"}},
		"the service has a fault":                  {both, awsRefusal(500, "KMSInternalException", ""), nil, []string{"KMSInternalException (HTTP status 500)", "the service has a fault"}},
		"the error is an unknown one":              {both, awsRefusal(418, "TeapotException", ""), nil, []string{"TeapotException (HTTP status 418)", "CloudTrail"}},
		"the error's code is a secret":             {both, awsRefusal(400, awsCanarySecret, ""), nil, []string{"HTTP status 400"}},
		"a proxy answers with a page of its own":   {both, plainAnswer(502, "<html>Bad gateway</html>"), nil, []string{"is the endpoint AWS KMS"}},
		"the answer is not JSON":                   {both, plainAnswer(200, "<html>Welcome</html>"), nil, []string{"not complete JSON of AWS KMS", "is the endpoint AWS KMS"}},
		"the answer is empty":                      {both, func(http.ResponseWriter, *http.Request) {}, nil, []string{"expected"}},
		"the answer is a redirect":                 {both, redirect, nil, []string{"HTTP status 302", "whether the endpoint is AWS KMS"}},
		"the connection ends before the answer":    {both, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, nil, []string{"the key service was not reached"}},
		"the key has another spec":                 {read, nil, set("KeySpec", "ECC_NIST_P256"), []string{"expected the key spec ECC_NIST_EDWARDS25519", `received "ECC_NIST_P256"`, "create a key"}},
		"the key is for key agreement":             {read, nil, set("KeyUsage", "KEY_AGREEMENT"), []string{"expected the key usage SIGN_VERIFY", `received "KEY_AGREEMENT"`}},
		"the public key is of another curve":       {read, nil, set("PublicKey", p256(t)), []string{"expected an ed25519 key", "*ecdsa.PublicKey"}},
		"the public key is damaged":                {read, nil, set("PublicKey", []byte("damaged")), []string{"expected a public key in DER", "7 bytes"}},
		"the signature is by another algorithm":    {sign, nil, set("SigningAlgorithm", "ED25519_PH_SHA_512"), []string{"expected a signature by ED25519_SHA_512", `"ED25519_PH_SHA_512"`}},
		"the signature is of another length":       {sign, nil, set("Signature", make([]byte, 70)), []string{"expected a signature of 64 bytes, received 70"}},
		"the signature is missing from the answer": {sign, nil, func(answer map[string]any) { delete(answer, "Signature") }, []string{"received 0"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := newAWSServer(t, bytes.Repeat([]byte{7}, ed25519.SeedSize))
			server.refuse, server.change = test.refuse, test.change
			k := server.client(t, awsFile(t))
			for _, call := range test.calls {
				err := callOnce(t.Context(), k, call)
				checkError(t, err, append([]string{awsKeyID}, test.want...), awsCanaries)
				if requests := server.take(); len(requests) != 1 {
					t.Errorf("%s made %d requests, want 1: the Signer retries", call, len(requests))
				}
			}
		})
	}
}

func TestAWSKMSBoundsCallsInTimeAndSize(t *testing.T) {
	clearAWSEnvironment(t)
	server := newAWSServer(t, bytes.Repeat([]byte{7}, ed25519.SeedSize))
	k := server.client(t, awsFile(t))
	checkBounds(t, k, server.private, 4096)
	checkEndsWithContext(t, k, func(slow func(http.ResponseWriter, *http.Request)) { server.refuse = slow })
	server.Close()
	checkError(t, callOnce(t.Context(), k, "Sign"), []string{"the key service was not reached", "connection refused"}, awsCanaries)
}

// checkError checks that an error has the texts and none of the canaries.
func checkError(t *testing.T, err error, texts, canaries []string) {
	t.Helper()
	if err == nil {
		t.Fatalf("got no error, want one with %q", texts)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("got error %q, want one with %q", err, text)
		}
	}
	for _, canary := range canaries {
		if strings.Contains(err.Error(), canary) {
			t.Errorf("error %q holds the credential %q", err, canary)
		}
	}
	if first := err.Error()[0]; first < 'a' || first > 'z' || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %q is not one line that begins in lower case", err)
	}
}

// callOnce makes one of a service's two calls.
func callOnce(ctx context.Context, s Service, call string) error {
	var err error
	if call == "PublicKey" {
		_, err = s.PublicKey(ctx)
	} else {
		_, err = s.Sign(ctx, []byte("message"))
	}
	return err
}

// checkEndsWithContext checks that calls to a slow server end when their context is cancelled.
func checkEndsWithContext(t *testing.T, s Service, answer func(func(http.ResponseWriter, *http.Request))) {
	t.Helper()
	for _, call := range []string{"PublicKey", "Sign"} {
		ctx, cancel := context.WithCancel(t.Context())
		answer(func(_ http.ResponseWriter, r *http.Request) {
			cancel()
			<-r.Context().Done()
		})
		err := callOnce(ctx, s, call)
		if checkError(t, err, []string{"no answer before the call's end"}, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want a cancelled context", call, err)
		}
	}
}

func TestAWSKMSChecksItsOptions(t *testing.T) {
	clearAWSEnvironment(t)
	tests := map[string]struct {
		options AWSKMSOptions
		want    []string // of the error; nil for none
	}{
		"an ID and a region":             {AWSKMSOptions{KeyID: awsKeyID, Region: awsRegionName}, nil},
		"an alias":                       {AWSKMSOptions{KeyID: "alias/relay", Region: awsRegionName}, nil},
		"an ARN has the region":          {AWSKMSOptions{KeyID: awsKeyARN}, nil},
		"no key":                         {AWSKMSOptions{Region: awsRegionName}, []string{"the key ID is empty"}},
		"no region":                      {AWSKMSOptions{KeyID: awsKeyID}, []string{"the region of key " + awsKeyID + " is not known", "AWS_REGION"}},
		"an ARN of another region":       {AWSKMSOptions{KeyID: awsKeyARN, Region: "us-east-1"}, []string{"the region is us-east-1 and the key is of eu-central-1"}},
		"an ARN of another service":      {AWSKMSOptions{KeyID: "arn:aws:s3:::bucket"}, []string{"is not the ARN of a key of KMS"}},
		"an endpoint without a scheme":   {AWSKMSOptions{KeyID: awsKeyARN, Endpoint: "kms.example"}, []string{"the endpoint of 11 bytes is not usable"}},
		"an endpoint with a password":    {AWSKMSOptions{KeyID: awsKeyARN, Endpoint: "https://u:" + awsCanaryToken + "@kms.example"}, []string{"is not usable", "without user"}},
		"an endpoint of another scheme":  {AWSKMSOptions{KeyID: awsKeyARN, Endpoint: "ftp://kms.example"}, []string{`scheme is "ftp"`}},
		"a credentials file is missing":  {AWSKMSOptions{KeyID: awsKeyARN, CredentialsFile: "/nowhere/credentials"}, []string{"no AWS credentials in file /nowhere/credentials", "aws_access_key_id"}},
		"a credentials file has half":    {AWSKMSOptions{KeyID: awsKeyARN, CredentialsFile: writeFile(t, "half", "[default]\naws_secret_access_key = "+awsCanarySecret+"\n")}, []string{"no AWS credentials in file"}},
		"a credentials file is damaged":  {AWSKMSOptions{KeyID: awsKeyARN, CredentialsFile: writeFile(t, "damaged", awsCanarySecret+"\n[[default\n"+awsCanaryID)}, []string{"no AWS credentials in file"}},
		"a credentials file is a script": {AWSKMSOptions{KeyID: awsKeyARN, CredentialsFile: writeFile(t, "script", "[default]\ncredential_process = /bin/echo "+awsCanaryID)}, []string{"no AWS credentials in file"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := NewAWSKMS(t.Context(), test.options)
			if test.want != nil {
				checkError(t, err, test.want, awsCanaries)
			} else if err != nil {
				t.Errorf("got %v, want no error", err)
			}
		})
	}
}

func TestAWSKMSReadsRenewedCredentials(t *testing.T) {
	path := awsFile(t)
	provider := awsCredentialsFile(path)
	before, err := provider.Retrieve(t.Context())
	if err != nil || !before.CanExpire || time.Until(before.Expires) > awsFileLife {
		t.Fatalf("got expiry %v in %s and error %v, want %s", before.CanExpire, time.Until(before.Expires), err, awsFileLife)
	}
	if err := os.WriteFile(path, []byte("[default]\naws_access_key_id = AKIARENEWED\naws_secret_access_key = renewed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	after, err := provider.Retrieve(t.Context())
	if err != nil || before.AccessKeyID != awsCanaryID || after.AccessKeyID != "AKIARENEWED" {
		t.Errorf("got access keys %q and %q, and error %v", before.AccessKeyID, after.AccessKeyID, err)
	}
}

// The SDK's own chain finds what a pod on EKS has.
func TestAWSKMSFindsCredentialsOfTheEnvironment(t *testing.T) {
	answers := map[string]string{
		"web": "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>" + awsCanaryID + "</AccessKeyId><SecretAccessKey>" + awsCanarySecret + "</SecretAccessKey><SessionToken>" + awsCanaryToken + "</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>",
		"pod": fmt.Sprintf(`{"AccessKeyId":%q,"SecretAccessKey":%q,"Token":%q,"Expiration":"2099-01-01T00:00:00Z"}`, awsCanaryID, awsCanarySecret, awsCanaryToken),
	}
	webIdentity := func(t *testing.T, url string) {
		t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", writeFile(t, "token", awsCanaryToken))
		t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::111122223333:role/relay")
		t.Setenv("AWS_ENDPOINT_URL_STS", url+"/web")
	}
	podIdentity := func(t *testing.T, url string) {
		t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", url+"/pod")
		t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", writeFile(t, "token", awsCanaryToken))
	}
	tests := map[string]struct {
		environment func(t *testing.T, url string)
		refuses     bool
		want        []string
	}{
		"web identity":             {webIdentity, false, nil},
		"pod identity":             {podIdentity, false, nil},
		"web identity is refused":  {webIdentity, true, []string{"no AWS credentials", "answered AccessDenied", "check the service account's role"}},
		"pod identity is refused":  {podIdentity, true, []string{"no AWS credentials", "check the service account's role"}},
		"there are no credentials": {func(*testing.T, string) {}, false, []string{"no AWS credentials were found"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			clearAWSEnvironment(t)
			issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				kind, body := strings.Trim(r.URL.Path, "/"), `{"code":"AccessDenied","message":"`+awsCanaryToken+`"}`
				if kind == "web" {
					body = "<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>" + awsCanaryToken + "</Message></Error></ErrorResponse>"
				}
				if test.refuses {
					w.WriteHeader(http.StatusForbidden)
				} else {
					body = answers[kind]
				}
				_, _ = io.WriteString(w, body)
			}))
			defer issuer.Close()
			test.environment(t, issuer.URL)
			server := newAWSServer(t, bytes.Repeat([]byte{7}, ed25519.SeedSize))
			_, err := server.client(t, "").Sign(t.Context(), []byte("message"))
			if test.want != nil {
				checkError(t, err, test.want, awsCanaries)
			} else if requests := server.take(); err != nil || requests[0].Token != awsCanaryToken {
				t.Errorf("got error %v and requests %v, want the token %s", err, requests, awsCanaryToken)
			}
		})
	}
}

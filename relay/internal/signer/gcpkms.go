package signer

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials"
	"cloud.google.com/go/auth/httptransport"
	"google.golang.org/api/cloudkms/v1"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
)

const (
	gcpAlgorithm = "EC_SIGN_ED25519"
	// gcpMaxMessage is the longest message, in bytes, that Cloud KMS signs without hashing it.
	gcpMaxMessage = 64 << 10
	gcpEndpoint   = "https://cloudkms.googleapis.com"
)

// gcpKeyVersion is the resource name of a key's version.
var gcpKeyVersion = regexp.MustCompile(`^projects/[a-z0-9][a-z0-9.:-]*/locations/[a-z0-9-]+/keyRings/[A-Za-z0-9_-]+/cryptoKeys/[A-Za-z0-9_-]+/cryptoKeyVersions/[0-9]+$`)

// GCPKMSOptions say which key version of Google Cloud KMS signs. KeyVersion is required.
type GCPKMSOptions struct {
	// KeyVersion is the resource name, projects/*/locations/*/keyRings/*/cryptoKeys/*/cryptoKeyVersions/*.
	KeyVersion string
	// Endpoint is the URL of Cloud KMS, if it is not the public one.
	Endpoint string
	// CredentialsFile is the path of a JSON file with credentials: a service account's key, workload
	// identity federation, an impersonated service account, or a person's. When it is empty, the
	// application default credentials are used: GOOGLE_APPLICATION_CREDENTIALS, or the metadata server
	// (Workload Identity Federation for GKE). The file is read once.
	CredentialsFile string
	// HTTPClient makes the connections, if it is not nil, as in tests. Requests to Cloud KMS have an
	// access token all the same.
	HTTPClient *http.Client
}

// GCPKMS is a Service: a key version of Google Cloud KMS with the algorithm EC_SIGN_ED25519.
type GCPKMS struct {
	versions   *cloudkms.ProjectsLocationsKeyRingsCryptoKeysCryptoKeyVersionsService
	keyVersion string
}

// NewGCPKMS makes a GCPKMS. It reads files and environment variables, and calls no service.
func NewGCPKMS(ctx context.Context, o GCPKMSOptions) (*GCPKMS, error) {
	if o.Endpoint == "" {
		o.Endpoint = gcpEndpoint
	}
	if !gcpKeyVersion.MatchString(o.KeyVersion) {
		return nil, fmt.Errorf("use Google Cloud KMS: key version %q is not a resource name: expected projects/*/locations/*/keyRings/*/cryptoKeys/*/cryptoKeyVersions/NUMBER", o.KeyVersion)
	}
	if err := checkKMSEndpoint(o.Endpoint, false); err != nil {
		return nil, fmt.Errorf("use Google Cloud KMS: %w", err)
	}
	tokens, err := gcpTokens(o)
	if err != nil {
		return nil, fmt.Errorf("use Google Cloud KMS: %w", err)
	}
	client := &http.Client{}
	if o.HTTPClient != nil {
		client = o.HTTPClient
	}
	client = noRedirects(client)
	err = httptransport.AddAuthorizationMiddleware(client, auth.NewCredentials(&auth.CredentialsOptions{TokenProvider: tokens}))
	if err != nil {
		return nil, fmt.Errorf("use Google Cloud KMS: %w", err)
	}
	service, err := cloudkms.NewService(ctx, option.WithHTTPClient(client), option.WithEndpoint(strings.TrimRight(o.Endpoint, "/")+"/"), option.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, fmt.Errorf("use Google Cloud KMS: %w", err)
	}
	return &GCPKMS{versions: service.Projects.Locations.KeyRings.CryptoKeys.CryptoKeyVersions, keyVersion: o.KeyVersion}, nil
}

// PublicKey reads the public half of the key version.
func (k *GCPKMS) PublicKey(ctx context.Context) (ed25519.PublicKey, error) {
	public, err := k.publicKey(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the public half of Google Cloud KMS key %s: %w", k.keyVersion, err)
	}
	return public, nil
}

func (k *GCPKMS) publicKey(ctx context.Context) (ed25519.PublicKey, error) {
	out, err := k.versions.GetPublicKey(k.keyVersion).Context(ctx).Do()
	switch {
	case err != nil:
		return nil, gcpCause(ctx, err)
	case out.Name != k.keyVersion:
		return nil, k.wrongName(out.Name)
	case out.Algorithm != gcpAlgorithm:
		return nil, fmt.Errorf("expected the algorithm %s, received %q: create a key for asymmetric signing with this algorithm, and configure its version", gcpAlgorithm, out.Algorithm)
	case out.PemCrc32c != 0 && out.PemCrc32c != checksum([]byte(out.Pem)):
		return nil, errors.New("the public key and its checksum differ: it was damaged on its way")
	}
	block, rest := pem.Decode([]byte(out.Pem))
	if block == nil || block.Type != "PUBLIC KEY" || len(strings.TrimSpace(string(rest))) > 0 {
		return nil, fmt.Errorf("expected one public key in PEM, received %d bytes that are none: is the endpoint Google Cloud KMS?", len(out.Pem))
	}
	return parseEd25519(block.Bytes)
}

// Sign signs the message itself, and returns the 64 bytes of RFC 8032.
func (k *GCPKMS) Sign(ctx context.Context, message []byte) ([]byte, error) {
	signature, err := k.sign(ctx, message)
	if err != nil {
		return nil, fmt.Errorf("sign with Google Cloud KMS key %s: %w", k.keyVersion, err)
	}
	return signature, nil
}

func (k *GCPKMS) sign(ctx context.Context, message []byte) ([]byte, error) {
	if len(message) == 0 || len(message) > gcpMaxMessage {
		return nil, fmt.Errorf("the message has %d bytes: expected 1 to %d, which is what Google Cloud KMS signs", len(message), gcpMaxMessage)
	}
	out, err := k.versions.AsymmetricSign(k.keyVersion, &cloudkms.AsymmetricSignRequest{
		Data: base64.StdEncoding.EncodeToString(message), DataCrc32c: checksum(message),
		ForceSendFields: []string{"DataCrc32c"}, // a checksum of 0 would be left out
	}).Context(ctx).Do()
	switch {
	case err != nil:
		return nil, gcpCause(ctx, err)
	case out.Name != k.keyVersion:
		return nil, k.wrongName(out.Name)
	case !out.VerifiedDataCrc32c:
		return nil, errors.New("the service did not check the message's checksum, which was lost on its way: is there a proxy between?")
	}
	signature, err := base64.StdEncoding.DecodeString(out.Signature)
	switch {
	case err != nil || len(signature) != ed25519.SignatureSize:
		return nil, fmt.Errorf("expected a signature of %d bytes in base64, received %d characters: is the algorithm of the key %s?", ed25519.SignatureSize, len(out.Signature), gcpAlgorithm)
	case out.SignatureCrc32c != checksum(signature):
		return nil, errors.New("the signature and its checksum differ: it was damaged on its way")
	}
	return signature, nil
}

func (k *GCPKMS) wrongName(name string) error {
	if !gcpKeyVersion.MatchString(name) {
		name = "none"
	}
	return fmt.Errorf("expected an answer for key version %s, received one for %s: configure the name as Google Cloud writes it, or see whether there is a proxy between", k.keyVersion, name)
}

// checksum is the CRC32C of Google's fields.
func checksum(b []byte) int64 {
	return int64(crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

var (
	// gcpStatus is what a status or a reason of Google's errors looks like.
	gcpStatus = regexp.MustCompile(`^[A-Z][A-Z0-9_]{1,63}$`)
	// gcpState finds a key version's state in Google's message about a failed precondition.
	gcpState = regexp.MustCompile(`current state is: ([A-Z_]{1,40})\b`)
)

// gcpCause says why a call failed. Google's own message is not in it, because a service can repeat
// the request's headers, which hold the access token.
func gcpCause(ctx context.Context, err error) error {
	var credentials *credentialsError
	var api *googleapi.Error
	var network *url.Error
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("no answer before the call's end: %w", ctx.Err())
	case errors.As(err, &credentials):
		return credentials
	case errors.As(err, &api):
		return fmt.Errorf("the service answered %s", gcpAnswer(api))
	case errors.As(err, &network):
		return networkCause(err)
	}
	return errors.New("the answer is not complete JSON of Google Cloud KMS: is the endpoint Google Cloud KMS, and is there a proxy between?")
}

// gcpAnswer is an error's status and reason, what they mean, and what to do.
func gcpAnswer(api *googleapi.Error) string {
	var body struct {
		Error struct {
			Status  string
			Details []struct{ Reason string }
		}
	}
	_ = json.Unmarshal([]byte(api.Body), &body) // what is not JSON has no status
	status := body.Error.Status
	if !gcpStatus.MatchString(status) {
		status = "an unknown error"
	}
	answer, reason := fmt.Sprintf("%s (HTTP status %d)", status, api.Code), ""
	for _, detail := range body.Error.Details {
		if reason == "" && gcpStatus.MatchString(detail.Reason) {
			reason = detail.Reason
			answer = fmt.Sprintf("%s (%s, HTTP status %d)", status, reason, api.Code)
		}
	}
	if reason == "SERVICE_DISABLED" {
		return answer + ": enable the Cloud KMS API in the key's project"
	}
	if found := gcpState.FindStringSubmatch(api.Message); found != nil && status == "FAILED_PRECONDITION" {
		return fmt.Sprintf("%s: the key version is in state %s: expected ENABLED; enable it, or configure another version", answer, found[1])
	}
	return answer + ": " + gcpAdvice(status)
}

// gcpAdvice says what a status means and what to do.
func gcpAdvice(status string) string {
	switch status {
	case "PERMISSION_DENIED":
		return "the relay's identity may not use the key: grant it roles/cloudkms.signerVerifier on the key"
	case "UNAUTHENTICATED":
		return "the access token is not valid: check the credentials file or the service account, and this machine's clock"
	case "NOT_FOUND":
		return "there is no such key version: correct its name"
	case "FAILED_PRECONDITION":
		return "the key version cannot be used in its state: expected ENABLED; enable it, or configure another version"
	case "INVALID_ARGUMENT":
		return "the request is not valid for the key: expected the algorithm " + gcpAlgorithm + "; create a key for asymmetric signing with it, and configure its version"
	case "RESOURCE_EXHAUSTED":
		return "the project's quota of calls is used up: request a higher one if this lasts"
	case "INTERNAL", "UNAVAILABLE", "DEADLINE_EXCEEDED", "UNKNOWN":
		return "the service has a fault: see the state of Cloud KMS in the location if this lasts"
	}
	return "if this lasts, see whether the endpoint is Google Cloud KMS"
}

// gcpTokens provides access tokens from the options' file, or else the application default
// credentials.
func gcpTokens(o GCPKMSOptions) (auth.TokenProvider, error) {
	// The scopes are those of Google's own client; what a token may do is for IAM.
	scopes := []string{cloudkms.CloudPlatformScope, cloudkms.CloudkmsScope}
	detect := &credentials.DetectOptions{Scopes: scopes, Client: o.HTTPClient, Logger: slog.New(slog.DiscardHandler)}
	if o.CredentialsFile == "" {
		return &gcpTokenProvider{find: func() (*auth.Credentials, error) { return credentials.DetectDefault(detect) }}, nil
	}
	content, err := os.ReadFile(o.CredentialsFile)
	if err != nil {
		return nil, fmt.Errorf("read the credentials file: %w", err)
	}
	types := []credentials.CredType{credentials.ServiceAccount, credentials.ExternalAccount, credentials.ImpersonatedServiceAccount, credentials.AuthorizedUser}
	var file struct{ Type credentials.CredType }
	if json.Unmarshal(content, &file) != nil || !slices.Contains(types, file.Type) {
		return nil, fmt.Errorf("credentials file %s is not usable: expected a JSON object with one of the types %q", o.CredentialsFile, types)
	}
	found, err := credentials.NewCredentialsFromJSON(file.Type, content, detect)
	if err != nil {
		// The library's error is left out, because it can repeat a value.
		return nil, fmt.Errorf("credentials file %s is not usable: expected complete credentials of type %s, as Google Cloud writes them", o.CredentialsFile, file.Type)
	}
	return &gcpTokenProvider{found: found}, nil
}

// gcpTokenProvider marks what fails while a token is obtained, so that gcpCause can tell it from what
// Cloud KMS answers. It looks for credentials at the first call, because that may ask the network
// whether there is a metadata server.
type gcpTokenProvider struct {
	find  func() (*auth.Credentials, error)
	mu    sync.Mutex
	found *auth.Credentials
}

// Token returns an access token.
func (p *gcpTokenProvider) Token(ctx context.Context) (*auth.Token, error) {
	found, err := p.credentials()
	if err != nil {
		return nil, gcpTokenError(err)
	}
	token, err := found.Token(ctx)
	if err != nil {
		return nil, gcpTokenError(err)
	}
	return token, nil
}

func (p *gcpTokenProvider) credentials() (*auth.Credentials, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var err error
	if p.found == nil {
		p.found, err = p.find()
	}
	return p.found, err
}

func gcpTokenError(err error) error {
	const todo = "check the credentials file, GOOGLE_APPLICATION_CREDENTIALS, or the service account that Workload Identity gives the pod"
	var answer *auth.Error
	var file *fs.PathError
	var network *url.Error
	switch {
	case errors.As(err, &answer) && answer.Response != nil:
		return &credentialsError{text: fmt.Sprintf("no Google access token: the service that issues them answered HTTP status %d: %s", answer.Response.StatusCode, todo)}
	case errors.As(err, &file):
		return &credentialsError{text: "no Google access token", cause: file}
	case errors.As(err, &network):
		return &credentialsError{text: "no Google access token: the service that issues them was not reached", cause: network.Err}
	}
	return &credentialsError{text: "no Google access token: " + todo}
}

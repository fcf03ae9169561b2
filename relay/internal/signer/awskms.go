package signer

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

const (
	// awsAlgorithm is the ed25519 of RFC 8032 over the message itself. KMS's other algorithm for the
	// same keys, ED25519_PH_SHA_512, signs a hash, which Solana does not accept.
	awsAlgorithm = types.SigningAlgorithmSpecEd25519Sha512
	// awsMaxMessage is the longest message, in bytes, that AWS KMS signs without hashing it.
	awsMaxMessage = 4096
	// awsFileLife is how long credentials from a file are used before the file is read again, so that
	// renewed credentials need no restart.
	awsFileLife = time.Minute
)

// AWSKMSOptions say which key of AWS KMS signs. KeyID is required.
type AWSKMSOptions struct {
	// KeyID is the key's ID or ARN, or an alias's name ("alias/…") or ARN. A key of another account
	// needs an ARN.
	KeyID string
	// Region is that of the key. When it is empty, it is the ARN's, or the environment's (AWS_REGION).
	Region string
	// Endpoint is the URL of KMS, if it is not the region's public one.
	Endpoint string
	// CredentialsFile is the path of a shared credentials file, whose profile "default" holds an access
	// key. When it is empty, the SDK's default chain finds the credentials: environment variables, web
	// identity (IRSA), shared files, EKS pod identity, instance role.
	CredentialsFile string
}

// AWSKMS is a Service: a key of AWS KMS with the key spec ECC_NIST_EDWARDS25519.
type AWSKMS struct {
	client *kms.Client
	keyID  string
}

// NewAWSKMS makes an AWSKMS. It reads files and environment variables, and calls no service.
func NewAWSKMS(ctx context.Context, o AWSKMSOptions) (*AWSKMS, error) {
	region, err := awsRegion(o)
	if err == nil && o.Endpoint != "" {
		// A signed request does not hold the secret key, so that plain HTTP is accepted.
		err = checkKMSEndpoint(o.Endpoint, true)
	}
	if err != nil {
		return nil, fmt.Errorf("use AWS KMS: %w", err)
	}
	// The SDK's logger writes to standard error, where it would mix with the relay's log.
	load := []func(*config.LoadOptions) error{config.WithLogger(logging.Nop{})}
	if region != "" {
		load = append(load, config.WithRegion(region))
	}
	if o.CredentialsFile != "" {
		file := awsCredentialsFile(o.CredentialsFile)
		if _, err := file.Retrieve(ctx); err != nil {
			return nil, fmt.Errorf("use AWS KMS: %w", err)
		}
		load = append(load, config.WithCredentialsProvider(file))
	}
	cfg, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, fmt.Errorf("use AWS KMS: load the SDK's configuration: %w", err)
	}
	if cfg.Region == "" {
		return nil, fmt.Errorf("use AWS KMS: the region of key %s is not known: set the region, or the key's ARN as its ID, or AWS_REGION", o.KeyID)
	}
	return &AWSKMS{keyID: o.KeyID, client: kms.NewFromConfig(cfg, func(k *kms.Options) {
		k.Retryer = aws.NopRetryer{} // the Signer retries
		k.Credentials = awsCredentials{k.Credentials}
		if sdk, ok := k.HTTPClient.(*awshttp.BuildableClient); ok { // the SDK's own client follows some redirects
			k.HTTPClient = noRedirects(&http.Client{Transport: sdk.GetTransport()})
		}
		if o.Endpoint != "" {
			k.BaseEndpoint = &o.Endpoint
		}
	})}, nil
}

// awsRegion is the configured region, or else that of the key's ARN, or else empty.
func awsRegion(o AWSKMSOptions) (string, error) {
	if o.KeyID == "" || strings.TrimSpace(o.KeyID) != o.KeyID {
		return "", errors.New("the key ID is empty or begins or ends with a space: expected a key's ID or ARN, or an alias (alias/…)")
	}
	if !arn.IsARN(o.KeyID) {
		return o.Region, nil
	}
	a, err := arn.Parse(o.KeyID)
	switch {
	case err != nil || a.Service != "kms" || a.Region == "":
		return "", fmt.Errorf("key ID %s is not the ARN of a key of KMS: expected arn:aws:kms:REGION:ACCOUNT:key/ID", o.KeyID)
	case o.Region != "" && o.Region != a.Region:
		return "", fmt.Errorf("the region is %s and the key is of %s (%s): make them equal, or leave the region empty", o.Region, a.Region, o.KeyID)
	}
	return a.Region, nil
}

// PublicKey reads the public half of the key.
func (k *AWSKMS) PublicKey(ctx context.Context) (ed25519.PublicKey, error) {
	public, err := k.publicKey(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the public half of AWS KMS key %s: %w", k.keyID, err)
	}
	return public, nil
}

func (k *AWSKMS) publicKey(ctx context.Context) (ed25519.PublicKey, error) {
	const make25519 = "create a key with this spec and usage, and configure it"
	out, err := k.client.GetPublicKey(ctx, &kms.GetPublicKeyInput{KeyId: &k.keyID})
	switch {
	case err != nil:
		return nil, awsCause(ctx, err)
	case out.KeySpec != types.KeySpecEccNistEdwards25519:
		return nil, fmt.Errorf("expected the key spec %s, received %q: %s", types.KeySpecEccNistEdwards25519, out.KeySpec, make25519)
	case out.KeyUsage != types.KeyUsageTypeSignVerify:
		return nil, fmt.Errorf("expected the key usage %s, received %q: %s", types.KeyUsageTypeSignVerify, out.KeyUsage, make25519)
	}
	return parseEd25519(out.PublicKey)
}

// Sign signs the message itself, and returns the 64 bytes of RFC 8032.
func (k *AWSKMS) Sign(ctx context.Context, message []byte) ([]byte, error) {
	signature, err := k.sign(ctx, message)
	if err != nil {
		return nil, fmt.Errorf("sign with AWS KMS key %s: %w", k.keyID, err)
	}
	return signature, nil
}

func (k *AWSKMS) sign(ctx context.Context, message []byte) ([]byte, error) {
	if len(message) == 0 || len(message) > awsMaxMessage {
		return nil, fmt.Errorf("the message has %d bytes: expected 1 to %d, which is what AWS KMS signs", len(message), awsMaxMessage)
	}
	out, err := k.client.Sign(ctx, &kms.SignInput{KeyId: &k.keyID, Message: message, MessageType: types.MessageTypeRaw, SigningAlgorithm: awsAlgorithm})
	switch {
	case err != nil:
		return nil, awsCause(ctx, err)
	case out.SigningAlgorithm != awsAlgorithm:
		return nil, fmt.Errorf("expected a signature by %s, received one by %q: is the endpoint AWS KMS?", awsAlgorithm, out.SigningAlgorithm)
	case len(out.Signature) != ed25519.SignatureSize:
		return nil, fmt.Errorf("expected a signature of %d bytes, received %d: is the endpoint AWS KMS?", ed25519.SignatureSize, len(out.Signature))
	}
	return out.Signature, nil
}

// awsCode is what an error code of AWS looks like.
var awsCode = regexp.MustCompile(`^[A-Za-z.]{1,64}$`)

// awsCaller finds, in AWS's message about a denied access, who was denied.
var awsCaller = regexp.MustCompile(`arn:aws[a-z-]*:(?:iam|sts)::\d{12}:[A-Za-z0-9+=,.@_/-]{1,200}`)

// awsCause says why a call failed. AWS's own message is not in it: that of a wrong signature, for
// one, repeats the headers of the request with the session token.
func awsCause(ctx context.Context, err error) error {
	var credentials *credentialsError
	var api smithy.APIError
	var response *smithyhttp.ResponseError
	var unsent *smithyhttp.RequestSendError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("no answer before the call's end: %w", ctx.Err())
	case errors.As(err, &credentials):
		return credentials
	case errors.As(err, &api) && errors.As(err, &response) && response.Response != nil:
		code, caller := api.ErrorCode(), ""
		if !awsCode.MatchString(code) {
			code = "an unknown error"
		}
		if found := awsCaller.FindString(api.ErrorMessage()); found != "" && code == "AccessDeniedException" {
			caller = " to " + found
		}
		return fmt.Errorf("AWS KMS answered %s (HTTP status %d)%s: %s", code, response.HTTPStatusCode(), caller, awsAdvice(code))
	case errors.As(err, &response) && !errors.As(err, &unsent):
		return errors.New("the answer is not complete JSON of AWS KMS: is the endpoint AWS KMS, and is there a proxy between?")
	}
	return networkCause(err)
}

// awsAdvice says what an error code means and what to do.
func awsAdvice(code string) string {
	switch code {
	case "AccessDeniedException":
		return "the relay's identity may not use the key: allow it kms:Sign and kms:GetPublicKey, in the key's policy or its own"
	case "UnrecognizedClientException", "InvalidClientTokenId", "InvalidSignatureException", "SignatureDoesNotMatch", "IncompleteSignature", "ExpiredTokenException", "ExpiredToken", "MissingAuthenticationTokenException":
		return "the credentials are not valid: renew them, and compare this machine's clock with the time"
	case "NotFoundException":
		return "the region and account have no such key: correct the key ID or the region; a key of another account needs its ARN"
	case "DisabledException":
		return "the key is disabled: enable it"
	case "KMSInvalidStateException":
		return "the key's state allows no signature: see its state in KMS; cancel its deletion, or configure another key"
	case "InvalidKeyUsageException":
		return "the key is not for this: expected a key with the spec ECC_NIST_EDWARDS25519 and the usage SIGN_VERIFY; create one and configure it"
	case "ValidationException", "InvalidArnException":
		return "the request is not valid for the key: check the key ID, and that the key has the spec ECC_NIST_EDWARDS25519"
	case "ThrottlingException", "LimitExceededException":
		return "the account's quota of calls is used up: request a higher one if this lasts"
	case "KMSInternalException", "KeyUnavailableException", "DependencyTimeoutException", "InternalFailure", "ServiceUnavailable", "ServiceUnavailableException":
		return "the service has a fault: see the state of KMS in the region if this lasts"
	}
	return "if this lasts, see the call in the account's CloudTrail, and whether the endpoint is AWS KMS"
}

// awsCredentials marks what fails while credentials are obtained, so that awsCause can tell it from
// what KMS answers.
type awsCredentials struct{ aws.CredentialsProvider }

func (c awsCredentials) Retrieve(ctx context.Context) (aws.Credentials, error) {
	found, err := c.CredentialsProvider.Retrieve(ctx)
	var known *credentialsError
	if err == nil || errors.As(err, &known) {
		return found, err
	}
	const todo = "check the service account's role or pod identity association, the environment variables or the credentials file"
	var api smithy.APIError
	var file *fs.PathError
	var network *url.Error
	switch {
	case errors.As(err, &api) && awsCode.MatchString(api.ErrorCode()):
		err = &credentialsError{text: fmt.Sprintf("no AWS credentials: the service that issues them answered %s: %s", api.ErrorCode(), todo)}
	case errors.As(err, &file):
		err = &credentialsError{text: "no AWS credentials", cause: file}
	case errors.As(err, &network):
		err = &credentialsError{text: "no AWS credentials: the service that issues them was not reached", cause: network.Err}
	default:
		err = &credentialsError{text: "no AWS credentials were found: " + todo}
	}
	return aws.Credentials{}, err
}

// awsCredentialsFile provides the access key of a file's profile "default", and no other kind of
// credentials, so that whoever writes the file cannot have the relay start a program or call a URL.
func awsCredentialsFile(path string) aws.CredentialsProviderFunc {
	return func(ctx context.Context) (aws.Credentials, error) {
		profile, err := config.LoadSharedConfigProfile(ctx, "default", func(o *config.LoadSharedConfigOptions) {
			o.CredentialsFiles, o.ConfigFiles = []string{path}, []string{}
		})
		if err != nil || !profile.Credentials.HasKeys() {
			// The parser's error is left out, because it can repeat a value.
			return aws.Credentials{}, &credentialsError{text: fmt.Sprintf("no AWS credentials in file %s: expected a readable file with a profile [default] that has aws_access_key_id and aws_secret_access_key", path)}
		}
		found := profile.Credentials
		found.CanExpire, found.Expires = true, time.Now().Add(awsFileLife)
		return found, nil
	}
}

// credentialsError is a failure to obtain credentials. A service's answer is never part of it,
// because it can repeat a secret.
type credentialsError struct {
	text  string
	cause error // of the machine or the network, or nil
}

func (e *credentialsError) Error() string {
	if e.cause == nil {
		return e.text
	}
	return e.text + ": " + e.cause.Error()
}

func (e *credentialsError) Unwrap() error { return e.cause }

// networkCause is the error without the URL, which only the operator of the relay needs to know.
func networkCause(err error) error {
	var network *url.Error
	if errors.As(err, &network) {
		err = network.Err
	}
	return fmt.Errorf("the key service was not reached: %w", err)
}

// parseEd25519 decodes a SubjectPublicKeyInfo.
func parseEd25519(der []byte) (ed25519.PublicKey, error) {
	key, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, fmt.Errorf("expected a public key in DER, received %d bytes that are none: %w", len(der), err)
	}
	public, ok := key.(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("expected an ed25519 key, received %T: create an ed25519 key, and configure it", key)
	}
	return public, nil
}

// checkKMSEndpoint checks a key service's URL. Plain HTTP is for this machine, unless it may be used
// elsewhere, too.
func checkKMSEndpoint(endpoint string, plain bool) error {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		// The parser's error is left out, because it repeats the URL, which can hold a password.
		return fmt.Errorf("the endpoint of %d bytes is not usable: expected https:// and a host, without user or query", len(endpoint))
	case u.Scheme == "https", u.Scheme == "http" && (plain || u.Hostname() == "127.0.0.1" || u.Hostname() == "::1" || u.Hostname() == "localhost"):
		return nil
	}
	return fmt.Errorf("the endpoint's scheme is %q: expected https, because the requests hold credentials", u.Scheme)
}

// noRedirects is a copy of the client that follows no redirect, which would carry credentials to
// another host.
func noRedirects(client *http.Client) *http.Client {
	c := *client
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.Jar = nil
	return &c
}

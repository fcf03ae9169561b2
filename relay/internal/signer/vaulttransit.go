package signer

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/openbao/openbao/api/v2"
)

// VaultTransitOptions name an ed25519 key of the secrets engine Transit of Vault or OpenBao. URL, Key,
// KeyVersion, Now and one of TokenFile and KubernetesRole are required. The files are read again,
// because other programs replace them.
type VaultTransitOptions struct {
	// URL is the server's address. It is https, or http to this machine, for an agent beside the relay.
	URL string
	// Namespace is empty where there are none.
	Namespace string
	// Mount is the path of the secrets engine; empty for transit.
	Mount string
	Key   string
	// KeyVersion is the version that the fee payer's address belongs to, from 1. Rotating the key
	// must not change the address that signs.
	KeyVersion int
	// CAFile has the only authorities that may have issued the server's certificate; empty for the
	// system's.
	CAFile string
	// TokenFile has a token that something else renews, such as Vault Agent.
	TokenFile string
	// KubernetesRole is the role to log in with as the pod's service account, whose token is in JWTFile.
	KubernetesRole string
	// KubernetesMount is the path of the auth method; empty for kubernetes.
	KubernetesMount string
	// JWTFile is empty for the path at which Kubernetes mounts it.
	JWTFile string
	Now     func() time.Time
	// CAFileChanged is as cafile.Options.Changed.
	CAFileChanged func(error)
}

// VaultTransit is a key of Vault's secrets engine Transit. It is a Service.
type VaultTransit struct {
	o      VaultTransitOptions
	client *vaultClient
	// token returns a token that is not the refused one, if there is another.
	token func(ctx context.Context, refused string) (string, error)
}

// vaultKeyName is what Transit allows; anything else could lead to another path.
var vaultKeyName = regexp.MustCompile(`^\w([\w.-]*\w)?$`)

// NewVaultTransit makes a VaultTransit. It reads the CA file, and does not call the server.
func NewVaultTransit(o VaultTransitOptions) (*VaultTransit, error) {
	o.Mount = strings.Trim(cmp.Or(o.Mount, "transit"), "/")
	o.KubernetesMount = strings.Trim(cmp.Or(o.KubernetesMount, "kubernetes"), "/")
	o.JWTFile = cmp.Or(o.JWTFile, "/var/run/secrets/kubernetes.io/serviceaccount/token")
	switch {
	case o.Now == nil:
		return nil, errors.New("a key of vault needs a clock")
	case !isVaultURL(o.URL):
		return nil, errors.New("vault's url: expected https:// (or http:// to a loopback address, because it does not hide the token) and a host, without user and query")
	case !isVaultMount(o.Mount) || !isVaultMount(o.KubernetesMount):
		return nil, fmt.Errorf("vault's mounts are %q and %q: expected paths such as transit and kubernetes", o.Mount, o.KubernetesMount)
	case !vaultKeyName.MatchString(o.Key):
		return nil, fmt.Errorf("vault's key is %q: expected a name of letters, digits, dots, underscores and hyphens", o.Key)
	case o.KeyVersion < 1:
		return nil, fmt.Errorf("the version of vault's key is %d: expected the version that the fee payer's address belongs to, 1 or more", o.KeyVersion)
	case (o.TokenFile == "") == (o.KubernetesRole == ""):
		return nil, errors.New("the login to vault: expected either a token file or a Kubernetes role")
	}
	client, err := newVaultClient(o)
	if err != nil {
		return nil, err
	}
	v := &VaultTransit{o: o, client: client}
	if o.TokenFile != "" {
		v.token = func(context.Context, string) (string, error) { return readTokenFile(o.TokenFile) }
	} else {
		v.token = newVaultLogin(v.client, o).current
	}
	return v, nil
}

func isVaultURL(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	local := u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback()
	return u.Scheme == "https" || u.Scheme == "http" && local
}

func isVaultMount(mount string) bool {
	return mount != "" && path.Clean("/"+mount) == "/"+mount && !strings.ContainsAny(mount, "?#%")
}

func (v *VaultTransit) keyPath() string  { return v.o.Mount + "/keys/" + v.o.Key }
func (v *VaultTransit) signPath() string { return v.o.Mount + "/sign/" + v.o.Key }

// transitKey is what Transit reports about a key.
type transitKey struct {
	Type                 string                     `json:"type"`
	Derived              bool                       `json:"derived"`
	LatestVersion        int                        `json:"latest_version"`
	MinDecryptionVersion int                        `json:"min_decryption_version"`
	MinEncryptionVersion int                        `json:"min_encryption_version"`
	Keys                 map[string]json.RawMessage `json:"keys"`
}

// PublicKey reads the public half of the key's version. It fails if Transit would not sign with that
// version.
func (v *VaultTransit) PublicKey(ctx context.Context) (ed25519.PublicKey, error) {
	var answer struct {
		Data transitKey `json:"data"`
	}
	if err := v.call(ctx, http.MethodGet, v.keyPath(), nil, &answer); err != nil {
		return nil, err
	}
	key := answer.Data
	if err := v.checkKey(key); err != nil {
		return nil, err
	}
	var version struct {
		PublicKey string `json:"public_key"`
	}
	if err := json.Unmarshal(key.Keys[strconv.Itoa(v.o.KeyVersion)], &version); err != nil {
		return nil, fmt.Errorf("decode version %d of vault's key %q: %w", v.o.KeyVersion, v.o.Key, err)
	}
	public, err := base64.StdEncoding.DecodeString(version.PublicKey)
	if err != nil || len(public) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("version %d of vault's key %q: the public key has %d characters: expected %d bytes in base64", v.o.KeyVersion, v.o.Key, len(version.PublicKey), ed25519.PublicKeySize)
	}
	return public, nil
}

func (v *VaultTransit) checkKey(key transitKey) error {
	name, version := v.o.Key, v.o.KeyVersion
	switch _, found := key.Keys[strconv.Itoa(version)]; {
	case key.Type != "ed25519":
		return fmt.Errorf("vault's key %q has the type %.40q: expected ed25519: name a key of that type", name, key.Type)
	case key.Derived:
		return fmt.Errorf("vault's key %q is derived: expected a key that signs without a context: name one that was made with derived=false", name)
	case !found && version < key.MinDecryptionVersion:
		return fmt.Errorf("vault's key %q does not use version %d: its min_decryption_version is %d: set that to %d or less, or correct the version", name, version, key.MinDecryptionVersion, version)
	case !found:
		return fmt.Errorf("vault's key %q has no version %d: its latest version is %d: correct the version", name, version, key.LatestVersion)
	case version < key.MinEncryptionVersion:
		return fmt.Errorf("vault's key %q does not sign with version %d: its min_encryption_version is %d: set that to %d or less", name, version, key.MinEncryptionVersion, version)
	}
	return nil
}

// Sign has Transit sign the message with the key's version.
func (v *VaultTransit) Sign(ctx context.Context, message []byte) ([]byte, error) {
	// Transit does not hash what an ed25519 key signs.
	request := struct {
		Input      string `json:"input"`
		KeyVersion int    `json:"key_version"`
	}{base64.StdEncoding.EncodeToString(message), v.o.KeyVersion}
	var answer struct {
		Data struct {
			Signature string `json:"signature"`
		} `json:"data"`
	}
	if err := v.call(ctx, http.MethodPost, v.signPath(), request, &answer, request.Input); err != nil {
		return nil, err
	}
	prefix := fmt.Sprintf("vault:v%d:", v.o.KeyVersion)
	text, ok := strings.CutPrefix(answer.Data.Signature, prefix)
	if !ok {
		return nil, fmt.Errorf("vault's signature begins with %.12q: expected %q", answer.Data.Signature, prefix)
	}
	signature, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(signature) != ed25519.SignatureSize {
		return nil, fmt.Errorf("vault's signature has %d characters after its version: expected %d bytes in base64", len(text), ed25519.SignatureSize)
	}
	return signature, nil
}

// call makes one call. If Vault refuses the token and there is another by now, it repeats the call
// with that one, once. Its error does not contain the secrets, whatever Vault said.
func (v *VaultTransit) call(ctx context.Context, method, path string, body, answer any, secrets ...string) error {
	token, err := v.token(ctx, "")
	if err != nil {
		return err
	}
	err = v.client.call(ctx, token, method, path, body, answer)
	if hasStatus(err, http.StatusForbidden) {
		other, tokenErr := v.token(ctx, token)
		if tokenErr != nil {
			return tokenErr
		}
		if other != token {
			token = other
			err = v.client.call(ctx, token, method, path, body, answer)
		}
	}
	var refusal *api.ResponseError
	if !errors.As(err, &refusal) {
		return err
	}
	return v.explain(refusal.StatusCode, vaultReasons(refusal, append(secrets, token)...))
}

// explain says what an answer means and what to do about it.
func (v *VaultTransit) explain(status int, reasons string) error {
	o := v.o
	switch {
	case status == http.StatusForbidden:
		return fmt.Errorf("vault refused the token (%d: %s): expected a valid one with a policy that allows read on %q and update on %q: correct the policy, or give another token", status, reasons, v.keyPath(), v.signPath())
	case status == http.StatusNotFound, strings.Contains(reasons, "signing key not found"):
		return fmt.Errorf("vault has no key %q at %q (%d: %s): correct the key, the mount or the namespace", o.Key, o.Mount, status, reasons)
	case strings.Contains(reasons, "version for signing"), strings.Contains(reasons, "no such key version"):
		return fmt.Errorf("vault's key %q does not sign with version %d (%d: %s): correct the version, or set min_encryption_version and min_decryption_version to %d or less", o.Key, o.KeyVersion, status, reasons, o.KeyVersion)
	}
	return vaultStatusError(status, reasons)
}

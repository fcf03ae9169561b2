package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/gagliardetto/solana-go"
)

const (
	vaultPort = 8200
	vaultURL  = "https://vault." + namespace + ".svc:8200"
)

// vault is a client of the Vault in exposedManifest, with its root token.
type vault struct {
	*suite
	token string
	http  *http.Client
}

// logInPods lets Vault ask the API server about service accounts' tokens.
func (v *vault) logInPods(t *testing.T) {
	t.Helper()
	v.call(t, http.MethodPost, "auth/kubernetes/config", map[string]any{"kubernetes_host": "https://kubernetes.default.svc"}, nil)
}

// makeKey makes a key of a fleet's name, with which the fleet's pods may sign, and returns its address.
func (v *vault) makeKey(t *testing.T, fleet string) solana.PublicKey {
	t.Helper()
	v.call(t, http.MethodPost, "transit/keys/"+fleet, map[string]any{"type": "ed25519"}, nil)
	v.call(t, http.MethodPut, "sys/policies/acl/"+fleet, map[string]any{
		"policy": `path "transit/keys/` + fleet + `" { capabilities = ["read"] }
path "transit/sign/` + fleet + `" { capabilities = ["update"] }`,
	}, nil)
	v.call(t, http.MethodPost, "auth/kubernetes/role/"+fleet, map[string]any{
		"bound_service_account_names": fleet, "bound_service_account_namespaces": namespace, "audience": "vault",
		"token_policies": fleet, "token_ttl": "10m",
	}, nil)
	var key struct {
		Data struct {
			Keys map[string]struct {
				PublicKey string `json:"public_key"`
			} `json:"keys"`
		} `json:"data"`
	}
	v.call(t, http.MethodGet, "transit/keys/"+fleet, nil, &key)
	public, err := base64.StdEncoding.DecodeString(key.Data.Keys["1"].PublicKey)
	ok(t, err)
	if len(public) != solana.PublicKeyLength {
		t.Fatalf("Vault's key has %d bytes, want %d", len(public), solana.PublicKeyLength)
	}
	return solana.PublicKeyFromBytes(public)
}

// call sends a request to Vault, and decodes the answer unless into is nil.
func (v *vault) call(t *testing.T, method, path string, body, into any) {
	t.Helper()
	content, err := json.Marshal(body)
	ok(t, err)
	request, err := http.NewRequestWithContext(v.ctx, method, vaultURL+"/v1/"+path, bytes.NewReader(content))
	ok(t, err)
	request.Header.Set("X-Vault-Token", v.token)
	answer, err := v.http.Do(request)
	ok(t, err)
	defer func() { _ = answer.Body.Close() }() // the body was read to its end
	text, err := io.ReadAll(answer.Body)
	ok(t, err)
	if answer.StatusCode >= http.StatusMultipleChoices {
		ok(t, fmt.Errorf("vault answers %s to %s %s: %s", answer.Status, method, path, text))
	}
	if into != nil {
		ok(t, json.Unmarshal(text, into))
	}
}

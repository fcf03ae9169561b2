package signer

import (
	"strings"
	"testing"
	"time"
)

// The client's own variables would lead the token elsewhere, or turn the check of the certificate off.
func TestVaultTransitIgnoresTheEnvironment(t *testing.T) {
	server := newVaultServer(t, vaultSeed(1))
	for _, prefix := range []string{"VAULT_", "BAO_"} {
		for name, value := range map[string]string{
			"ADDR": "https://127.0.0.1:1", "AGENT_ADDR": "https://127.0.0.1:1", "TOKEN": "another", "NAMESPACE": "another", "SKIP_VERIFY": "true",
			"CACERT": "/nowhere", "CAPATH": "/nowhere", "CLIENT_CERT": "/nowhere", "CLIENT_KEY": "/nowhere", "TLS_SERVER_NAME": "another",
			"MAX_RETRIES": "7", "CLIENT_TIMEOUT": "1ns", "RATE_LIMIT": "0.0001:1", "PROXY_ADDR": "http://127.0.0.1:1", "HTTP_PROXY": "http://127.0.0.1:1",
			"WRAP_TTL": "60s", "SRV_LOOKUP": "true", "DISABLE_REDIRECTS": "damaged",
		} {
			t.Setenv(prefix+name, value)
		}
	}
	now := time.Now()
	transit := server.newTransit(t, func(o *VaultTransitOptions) { o.Now = func() time.Time { return now } })
	if _, err := transit.Sign(t.Context(), vaultMessage); err != nil || server.namespace != "" {
		t.Errorf("got error %v and namespace %q, want none", err, server.namespace)
	}
	replaceFile(t, transit.o.CAFile, encodeVaultCertificate(newVaultCertificate(t)))
	now = now.Add(time.Minute)
	_, err := transit.Sign(t.Context(), vaultMessage)
	checkVaultError(t, "with another authority", err, "unknown authority")
	server = newVaultServer(t, vaultSeed(1))
	server.set(vaultFails(500, "internal error"))
	_, err = server.newTransit(t, nil).Sign(t.Context(), vaultMessage)
	checkVaultError(t, "with a failing server", err, "internal error")
	if server.calls != 1 {
		t.Errorf("the failing server was asked %d times, want once", server.calls)
	}
}

func TestNewVaultTransitChecksItsOptions(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*VaultTransitOptions)
		want   string // in the error; empty for none
	}{
		"the least":                                 {func(*VaultTransitOptions) {}, ""},
		"a path in the url":                         {func(o *VaultTransitOptions) { o.URL += "/behind/a/gateway" }, ""},
		"an agent beside the relay":                 {func(o *VaultTransitOptions) { o.URL = "http://127.0.0.1:8200" }, ""},
		"an agent at localhost":                     {func(o *VaultTransitOptions) { o.URL = "http://localhost:8200" }, ""},
		"an agent at ::1":                           {func(o *VaultTransitOptions) { o.URL = "http://[::1]:8200" }, ""},
		"a url that shows the token":                {func(o *VaultTransitOptions) { o.URL = "http://vault.example:8200" }, "expected https://"},
		"a url with a password":                     {func(o *VaultTransitOptions) { o.URL = "https://a:canary@vault.example" }, "without user and query"},
		"a url with a query":                        {func(o *VaultTransitOptions) { o.URL += "?a=b" }, "without user and query"},
		"a socket":                                  {func(o *VaultTransitOptions) { o.URL = "unix:///run/vault" }, "expected https://"},
		"no url":                                    {func(o *VaultTransitOptions) { o.URL = "" }, "expected https://"},
		"a mount that leads elsewhere":              {func(o *VaultTransitOptions) { o.Mount = "../sys" }, `vault's mounts are "../sys"`},
		"a mount with a query":                      {func(o *VaultTransitOptions) { o.Mount = "transit?x=" }, "expected paths"},
		"a mount of the login that leads elsewhere": {func(o *VaultTransitOptions) { o.KubernetesMount = "a//b" }, "expected paths"},
		"a key that leads elsewhere":                {func(o *VaultTransitOptions) { o.Key = "../../sys" }, `vault's key is "../../sys"`},
		"a key with a dot before its end":           {func(o *VaultTransitOptions) { o.Key = "relay.payer-1" }, ""},
		"no key":                                    {func(o *VaultTransitOptions) { o.Key = "" }, `vault's key is ""`},
		"no version":                                {func(o *VaultTransitOptions) { o.KeyVersion = 0 }, "1 or more"},
		"two logins":                                {func(o *VaultTransitOptions) { o.KubernetesRole = "relay" }, "either a token file or a Kubernetes role"},
		"no clock":                                  {func(o *VaultTransitOptions) { o.Now = nil }, "needs a clock"},
		"a ca file that is missing":                 {func(o *VaultTransitOptions) { o.CAFile = "/nowhere/ca.crt" }, "vault's authorities: read ca file"},
		"a ca file without a certificate":           {func(o *VaultTransitOptions) { o.CAFile = "vaultoptions_test.go" }, "vault's authorities: read ca file"},
		"no login":                                  {func(o *VaultTransitOptions) { o.TokenFile = "" }, "either a token file or a Kubernetes role"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := VaultTransitOptions{URL: "https://vault.example:8200", Key: "payer", KeyVersion: 1, TokenFile: "/token", Now: time.Now}
			test.change(&o)
			_, err := NewVaultTransit(o)
			checkVaultError(t, "NewVaultTransit", err, test.want)
			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Errorf("the error contains the password: %v", err)
			}
		})
	}
}

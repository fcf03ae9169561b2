package config_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/internal/config"
)

// Two addresses with private keys.
const (
	signerA = "9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM"
	signerB = "FVen3X669xLzsi6N2V91DoiyzHzg1uAgqiT8jZ9nS96Z"
)

func TestSignersAreReadFromAList(t *testing.T) {
	t.Parallel()
	a, b := solana.MustPublicKeyFromBase58(signerA), solana.MustPublicKeyFromBase58(signerB)
	path := file(t, `
- name: vault-1
  address: `+signerA+`
  vaultTransit: {url: "https://vault.example:8200", key: relay-1, keyVersion: 3, namespace: team, mount: solana, caFile: ca.crt, tokenFile: /run/token}
- name: aws
  address: `+signerB+`
  awsKMS: {keyID: "arn:aws:kms:eu-central-1:1:key/x", region: eu-central-1}
`)
	folder := filepath.Dir(path)
	want := []config.Signer{
		{Name: "vault-1", Address: a, Vault: &config.VaultTransit{
			URL: "https://vault.example:8200", Key: "relay-1", KeyVersion: 3, Namespace: "team", Mount: "solana", CAFile: filepath.Join(folder, "ca.crt"),
			TokenFile: "/run/token",
		}},
		{Name: "aws", Address: b, AWS: &config.AWSKMS{KeyID: "arn:aws:kms:eu-central-1:1:key/x", Region: "eu-central-1"}},
	}
	got, problems := config.SignersFile{FeePayerSignersFile: path}.LoadSigners()
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("signers (-want +got):\n%s", diff)
	}
}

func TestFaultsInAListOfSignersAreReportedWithoutValues(t *testing.T) {
	t.Parallel()
	offCurve, _, err := solana.FindProgramAddress([][]byte{{1}}, solana.SystemProgramID)
	if err != nil {
		t.Fatal(err)
	}
	vault := "vaultTransit: {url: 'https://v', key: k, keyVersion: 1, tokenFile: /t}"
	tests := map[string]struct{ content, want string }{
		"no name":                              {"- {address: " + signerA + ", " + vault + "}", "signer 1 of 1: name is missing"},
		"no address":                           {"- {name: a, " + vault + "}", "address is missing"},
		"an address of a program":              {"- {name: a, address: " + offCurve.String() + ", " + vault + "}", "expected the address of the service's ed25519 key"},
		"a secret key in place of the address": {"- {name: a, address: " + canary + ", " + vault + "}", "address of"},
		"no service":                           {"- {name: a, address: " + signerA + "}", "0 key services are given: expected one of vaultTransit, awsKMS and gcpKMS"},
		"two services":                         {"- {name: a, address: " + signerA + ", " + vault + ", awsKMS: {keyID: k}}", "2 key services are given"},
		"the same address twice":               {"- {name: a, address: " + signerA + ", " + vault + "}\n- {name: b, address: " + signerA + ", " + vault + "}", "signer 2 of 2: address is that of another signer"},
		"the same name twice":                  {"- {name: a, address: " + signerA + ", " + vault + "}\n- {name: a, address: " + signerB + ", " + vault + "}", "signer 2 of 2: name is that of another signer"},
		"a service that is not a mapping":      {"- {name: a, address: " + signerA + ", gcpKMS: " + canary + "}", "gcpKMS: expected keys and values: keyVersion, endpoint, credentialsFile"},
		"a service with an unknown key":        {"- {name: a, address: " + signerA + ", gcpKMS: {keyVersion: v, " + canary + ": x}}", "gcpKMS: a key of"},
		"no version of Vault's key":            {"- {name: a, address: " + signerA + ", vaultTransit: {url: 'https://v', key: k, tokenFile: /t}}", "vaultTransit: keyVersion is missing"},
		"version 0 of Vault's key":             {"- {name: a, address: " + signerA + ", vaultTransit: {url: 'https://v', key: k, keyVersion: 0, tokenFile: /t}}", "vaultTransit: keyVersion: expected the number"},
		"no way to log in to Vault":            {"- {name: a, address: " + signerA + ", vaultTransit: {url: 'https://v', key: k, keyVersion: 1}}", "vaultTransit: expected either tokenFile or kubernetesRole"},
		"two ways to log in to Vault":          {"- {name: a, address: " + signerA + ", vaultTransit: {url: 'https://v', key: k, keyVersion: 1, tokenFile: /t, kubernetesRole: r}}", "vaultTransit: expected either tokenFile or kubernetesRole"},
		"a Vault without TLS":                  {"- {name: a, address: " + signerA + ", vaultTransit: {url: 'http://vault:8200', key: k, keyVersion: 1, tokenFile: /t}}", "expected https://"},
		"the file of a key":                    {"[1,2,3]", "signer 1 of 3: expected keys and values"},
		"no list":                              {"a: " + canary, "expected a list of signers"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, problems := config.SignersFile{FeePayerSignersFile: file(t, test.content)}.LoadSigners()
			text := ""
			for _, p := range problems {
				text += p.Error() + "\n"
			}
			if !strings.Contains(text, test.want) || !strings.Contains(text, "--fee-payer-signers-file") || strings.Contains(text, canary) {
				t.Errorf("the problems are\n%swant %q, with the flag and without the canary", text, test.want)
			}
		})
	}
}

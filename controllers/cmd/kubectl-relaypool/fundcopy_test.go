package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// A generated key whose copy nobody has acknowledged must not be funded where that is required.
func TestFundLeavesOutKeysWithoutACopy(t *testing.T) {
	t.Parallel()
	payer := func(address, secret string, backedUp bool) v1alpha1.FeePayerStatus {
		return v1alpha1.FeePayerStatus{Address: address, SecretName: secret, State: v1alpha1.PayerActive, BackedUp: backedUp}
	}
	signer := v1alpha1.FeePayerStatus{Address: payerB, SignerName: "vault", State: v1alpha1.PayerActive}
	required := func(is bool) *v1alpha1.GeneratedKeys {
		return &v1alpha1.GeneratedKeys{Count: 1, Backup: &v1alpha1.KeyBackup{Required: is}}
	}
	tests := map[string]struct {
		generate *v1alpha1.GeneratedKeys
		status   []v1alpha1.FeePayerStatus
		without  []string
	}{
		"a copy is acknowledged":       {required(true), []v1alpha1.FeePayerStatus{payer(payerA, "demo-payer-0-0", true)}, nil},
		"no copy is acknowledged":      {required(true), []v1alpha1.FeePayerStatus{payer(payerA, "demo-payer-0-0", false)}, []string{payerA}},
		"copies are not required":      {required(false), []v1alpha1.FeePayerStatus{payer(payerA, "demo-payer-0-0", false)}, nil},
		"nothing is said of copies":    {&v1alpha1.GeneratedKeys{Count: 1}, []v1alpha1.FeePayerStatus{payer(payerA, "demo-payer-0-0", false)}, nil},
		"a key of one's own":           {required(true), []v1alpha1.FeePayerStatus{payer(payerA, "own", false)}, nil},
		"a key in a key service":       {required(true), []v1alpha1.FeePayerStatus{signer}, nil},
		"one of two keys is backed up": {required(true), []v1alpha1.FeePayerStatus{payer(payerA, "demo-payer-0-0", true), payer(payerB, "demo-payer-0-1", false)}, []string{payerB}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := &v1alpha1.RelayPool{}
			pool.Spec.FeePayers.SecretRefs = []v1alpha1.SecretKeyReference{{Name: "own", Key: "key"}}
			pool.Spec.FeePayers.Generate, pool.Status.FeePayers = test.generate, test.status
			payers, without := payersInUse(pool)
			if diff := cmp.Diff(test.without, without); diff != "" || len(payers)+len(without) != len(test.status) {
				t.Errorf("%d payers may be funded; without a copy (-want +got):\n%s", len(payers), diff)
			}
		})
	}
}

// A Secret's value may stand beside other text on its line, and a URL in the RelayPool itself.
func TestPartsOfLinesAndURLsAreRedacted(t *testing.T) {
	t.Parallel()
	const key, access, path = "key-0123456789-canary", "AKIA-canary-0123456789", "url-key-canary-0123456789"
	var values secretValues
	values.learn("clients", map[string][]byte{"keys": []byte(key + " wallet 600\n"), "credentials": []byte("aws_secret_access_key = " + access + "\n")})
	pool := &v1alpha1.RelayPool{}
	pool.Spec.Solana.Endpoints = []v1alpha1.Endpoint{{Name: "rpc", URL: "https://rpc.example/v2/" + path}}
	values.learnURLs(pool)
	got := string(values.redact([]byte("a log with " + key + ", " + access + " and https://rpc.example/v2/" + path)))
	if strings.Contains(got, "canary") {
		t.Errorf("received %q, want no canary", got)
	}
	var tree any = map[string]any{"volumes": []any{map[string]any{"name": "v", "secret": map[string]any{"secretName": "theirs"}}}, "tls": map[string]any{"secretName": "certificate"}}
	if diff := cmp.Diff(2, len(referredSecrets(tree, false))); diff != "" {
		t.Errorf("Secrets that are named by secretName (-want +got):\n%s", diff)
	}
}

package load_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

func TestNewRequestIsComplete(t *testing.T) {
	t.Parallel()
	o := options(t, "http://unused")
	o.Withdrawals = 0.5
	root := [32]byte{31: 7}
	key := developmentKey(t)
	kinds := make(map[shieldpool.Kind]int)
	for number := range 20 {
		q := o.NewRequest(number, root)
		if diff := cmp.Diff(q, o.NewRequest(number, root)); diff != "" {
			t.Errorf("request %d differs on the second call:\n%s", number, diff)
		}
		if q.Inputs.Root != root {
			t.Errorf("request %d has root %x, want %x", number, q.Inputs.Root, root)
		}
		verify(t, key, &q)
		call := shieldpool.Call{Inputs: &q.Inputs}
		kinds[call.Kind()]++
		checkBody(t, &q)
	}
	if len(kinds) != 2 {
		t.Errorf("20 requests have the kinds %v, want transfers and withdrawals", kinds)
	}
}

func developmentKey(t *testing.T) *groth16.Key {
	t.Helper()
	text, err := os.ReadFile("../circuit/verification_key.json")
	if err != nil {
		t.Fatal(err)
	}
	key, err := groth16.ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// verify checks a request's first proof.
func verify(t *testing.T, key *groth16.Key, q *load.Request) {
	t.Helper()
	proof, err := groth16.ParseProof(q.Proofs[0][:])
	if err != nil {
		t.Fatal(err)
	}
	signals := q.Inputs.Signals()
	if _, err := key.Verify(proof, signals[:]); err != nil {
		t.Error(err)
	}
}

// checkBody checks a request's JSON against the interface.
func checkBody(t *testing.T, q *load.Request) {
	t.Helper()
	raw, err := q.Body(0)
	if err != nil {
		t.Fatal(err)
	}
	var body openapi.TransactRequest
	if err := json.Unmarshal(raw, &body); err != nil {
		t.Fatalf("the body does not parse: %v", err)
	}
	recipient := ""
	if body.Recipient != nil {
		recipient = *body.Recipient
	}
	want := ""
	if q.Inputs.PublicAmount < 0 {
		want = q.Recipient.String()
	}
	if recipient != want {
		t.Errorf("recipient %q, want %q", recipient, want)
	}
	if diff := cmp.Diff(body.PublicInputs, q.Inputs.Bytes()); diff != "" {
		t.Errorf("public inputs (-body +request):\n%s", diff)
	}
}

package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/relaypool/relaypool/hack/circuit/transaction"
	"github.com/relaypool/relaypool/hack/circuit/transaction/transactiontest"
)

func TestCommand(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Run("vk prints the committed key and warns", func(t *testing.T) {
		var out, errs bytes.Buffer
		if err := run([]string{"vk"}, nil, &out, &errs); err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile("verification_key.json")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(out.Bytes(), want) {
			t.Error("vk prints another key than verification_key.json has")
		}
		if !strings.Contains(errs.String(), "FOR DEVELOPMENT ONLY") {
			t.Errorf("vk prints to stderr %q, want the warning", errs.String())
		}
	})
	t.Run("serve answers every line in order", testServe)
	t.Run("a missing argument is an error that names vk and serve", func(t *testing.T) {
		err := run(nil, nil, new(bytes.Buffer), new(bytes.Buffer))
		if err == nil || !strings.Contains(err.Error(), "vk") || !strings.Contains(err.Error(), "serve") {
			t.Errorf("error %v, want one with vk and serve", err)
		}
	})
}

func testServe(t *testing.T) {
	l := transactiontest.New(t)
	good := l.Spend([2]transaction.WitnessInput{l.Note(100), l.Dummy()}, [2]uint64{40, 0}, -60)
	bad := *good
	bad.ChainNoteHash = "31415926"
	var in bytes.Buffer
	write := json.NewEncoder(&in)
	for _, line := range []any{
		request{ID: 1, Witness: good},
		request{ID: 2, Witness: &bad},
		request{ID: 3},
		"not an object",
		request{ID: 5, Witness: &transaction.Witness{}},
	} {
		if err := write.Encode(line); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := run([]string{"serve"}, &in, &out, new(bytes.Buffer)); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "31415926") {
		t.Error("an answer contains a secret value of the request")
	}

	read := json.NewDecoder(&out)
	var first ready
	if err := read.Decode(&first); err != nil {
		t.Fatal(err)
	}
	if !first.Ready || first.Constraints == 0 || len(first.KeySHA256) != 64 {
		t.Errorf("first line %+v, want ready with the number of constraints and the key's hash", first)
	}
	var proved answer
	if err := read.Decode(&proved); err != nil {
		t.Fatal(err)
	}
	if proved.ID != 1 || proved.Error != "" || len(proved.Proof) != 512 || len(proved.PublicInputs) != 528 {
		t.Fatalf("answer %d: proof of %d digits, public inputs of %d digits, error %q; want answer 1 with 512 and 528 digits", proved.ID, len(proved.Proof), len(proved.PublicInputs), proved.Error)
	}
	public, err := hex.DecodeString(proved.PublicInputs)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := hex.EncodeToString(public[32:40]), "c4ffffffffffffff"; got != want {
		t.Errorf("public amount −60 is %s on the wire, want %s", got, want)
	}
	if got, want := public[103], byte(7); got != want {
		t.Errorf("the mint's last byte is %d, want %d", got, want)
	}
	for _, want := range []struct {
		id    int64
		error string
	}{
		{2, "breaks a rule of the circuit"},
		{3, "no witness"},
		{0, "not the JSON object"},
		{5, "witness: root"},
	} {
		var got answer
		if err := read.Decode(&got); err != nil {
			t.Fatal(err)
		}
		if got.ID != want.id || !strings.Contains(got.Error, want.error) || got.Proof != "" {
			t.Errorf("answer %d with error %q, want %d with %q", got.ID, got.Error, want.id, want.error)
		}
	}
	if read.More() {
		t.Error("got more answers than requests")
	}
}

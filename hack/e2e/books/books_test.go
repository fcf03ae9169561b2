package books

import (
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/drill/account"
	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

func TestWhatRequestsHoldIsFoundInLogsAndMetrics(t *testing.T) {
	t.Parallel()
	var nullifier, other [32]byte
	for i := range nullifier {
		nullifier[i], other[i] = byte(37*i+11), byte(41*i+7)
	}
	folder := t.TempDir()
	if err := errors.Join(
		os.WriteFile(filepath.Join(folder, "demo-1.log"), []byte("Serving\nspent "+hex.EncodeToString(nullifier[:])+"\n"), 0o600),
		os.WriteFile(filepath.Join(folder, "demo-2.log"), []byte("Serving\n"), 0o600),
		os.WriteFile(filepath.Join(folder, "dry-1.log"), []byte("held "+hex.EncodeToString(other[:])+"\n"), 0o600),
		os.WriteFile(filepath.Join(folder, "notes.txt"), []byte(hex.EncodeToString(nullifier[:])), 0o600), // no log of a pod
	); err != nil {
		t.Fatal(err)
	}
	e := &account.Evidence{Records: recordOf(nullifier)}
	f := &Fleet{Logs: folder, Others: recordOf(other), Pages: map[string][]byte{
		"metrics of demo-1": []byte("relaypool_up 1\n"),
		"metrics of demo-2": []byte(`relaypool_requests{nullifier="` + hex.EncodeToString(nullifier[:]) + "\"} 1\n"),
	}}
	if err := f.search(e); err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, leak := range e.Leaks {
		found = append(found, leak.Source)
	}
	slices.Sort(found)
	if diff := cmp.Diff([]string{"demo-1.log", "dry-1.log", "metrics of demo-2"}, slices.Compact(found)); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
	if e.Scanned == 0 {
		t.Error("nothing was scanned")
	}
}

func recordOf(nullifier [32]byte) []load.Record {
	return []load.Record{{Requests: []load.Request{{Inputs: shieldpool.PublicInputs{Nullifiers: [2][32]byte{nullifier, {}}}}}}}
}

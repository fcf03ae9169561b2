package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCryptoFiguresAreMediansOfBatchesWithoutForgedProofs(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "crypto.txt")
	text := `goos: linux
BenchmarkBatch/size=1/forged=none     	      10	  900 ns/op	         0.88 bare-checks/proof	    500 ns/proof	 1.0 single-checks/proof
BenchmarkBatch/size=1/forged=all      	      10	  900 ns/op	         1.88 bare-checks/proof	    500 ns/proof	 1.0 single-checks/proof
BenchmarkBatch/size=16/forged=none-2  	      10	  900 ns/op	         0.40 bare-checks/proof	    500 ns/proof	 0.5 single-checks/proof
BenchmarkBatch/size=16/forged=none-2  	      10	  900 ns/op	         0.42 bare-checks/proof	    500 ns/proof	 0.5 single-checks/proof
BenchmarkBatch/size=16/forged=none-2  	      10	  900 ns/op	         0.50 bare-checks/proof	    500 ns/proof	 0.5 single-checks/proof
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b := &bench{}
	if err := b.addCrypto(path); err != nil {
		t.Fatal(err)
	}
	got := make(map[string]float64)
	for _, g := range b.report.Groups {
		got[g.Title] = g.Rows[0].Median()
	}
	want := map[string]float64{"Bare checks of a proof, in batches of 1": 0.88, "Bare checks of a proof, in batches of 16": 0.42}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("medians (-got +want):\n%s", diff)
	}
	if err := b.addCrypto(path + "x"); err == nil {
		t.Error("no error without the file, want one")
	}
}

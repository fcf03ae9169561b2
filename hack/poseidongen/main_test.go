package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCommittedConstantsAreTheDerivedOnes(t *testing.T) {
	t.Parallel()
	instances, err := derive()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		path   string
		source func([]*instance) ([]byte, error)
	}{
		"the relay's optimised constants": {"../../relay/merkle/constants_gen.go", merkleSource},
		"the circuit's plain constants":   {"../circuit/poseidon/constants_gen.go", circuitSource},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, err := tc.source(instances)
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(tc.path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("run go generate ./relay/merkle: (-derived +committed)\n%.600s", diff)
			}
		})
	}
}

// Package try_test holds the kustomization of a fleet to try, which
// docs/start/kubernetes.md leads through, against what it repeats.
package try_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/market"
)

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// A kustomization takes no file from outside its folder.
func TestTheVerifyingKeyIsTheCircuits(t *testing.T) {
	t.Parallel()
	want := read(t, filepath.Join("..", "..", "hack", "circuit", "verification_key.json"))
	if diff := cmp.Diff(string(want), string(read(t, "verification_key.json"))); diff != "" {
		t.Errorf("copy hack/circuit/verification_key.json here (-circuit +here):\n%s", diff)
	}
}

func TestTheRelayPoolIsForTheLocalChain(t *testing.T) {
	t.Parallel()
	var pool v1alpha1.RelayPool
	if err := yaml.UnmarshalStrict(read(t, "relaypool.yaml"), &pool); err != nil {
		t.Fatal(err)
	}
	if pool.Spec.Solana.Cluster != localnet.GenesisHash.String() {
		t.Errorf("solana.cluster is %s, want the local chain's genesis hash %s", pool.Spec.Solana.Cluster, localnet.GenesisHash)
	}
	if pool.Spec.Swap == nil || pool.Spec.Swap.Router.Program != market.ProgramID.String() {
		t.Errorf("swap is %+v, want the program of the local chain's market, %s", pool.Spec.Swap, market.ProgramID)
	}
}

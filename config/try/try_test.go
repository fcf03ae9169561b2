// Package try_test compares config/try, the trial fleet of docs/start/kubernetes.md, with
// the files and constants that it repeats.
package try_test

import (
	"os"
	"path/filepath"
	"regexp"
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

// The key is a copy, because a kustomization cannot include files from outside its folder.
func TestTheVerifyingKeyIsACopyOfTheCircuits(t *testing.T) {
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
	if pool.Spec.Swap == nil || pool.Spec.Swap.Router.ProgramID != market.ProgramID.String() {
		t.Errorf("swap is %+v, want the program of the local chain's market, %s", pool.Spec.Swap, market.ProgramID)
	}
}

// Only the image differs: pod, environment and mounts are those of config/try.
func TestTheOfflineFleetReplacesOnlyThePostgresImage(t *testing.T) {
	t.Parallel()
	var got struct {
		Resources []string
		Images    []struct{ Name, NewName, NewTag string }
	}
	if err := yaml.Unmarshal(read(t, filepath.Join("..", "try-offline", "kustomization.yaml")), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"../try"}, got.Resources); diff != "" || len(got.Images) != 1 {
		t.Fatalf("%d images are replaced, want 1 (-want +got):\n%s", len(got.Images), diff)
	}
	image := got.Images[0]
	pinned := regexp.MustCompile(`(?m)^ +image: ` + regexp.QuoteMeta(image.Name) + `:15\.\d+ `)
	if !pinned.Match(read(t, "postgres.yaml")) {
		t.Errorf("postgres.yaml has no pinned version of %s", image.Name)
	}
	if image.NewName != "relaypool/postgres" || image.NewTag != "dev" {
		t.Errorf("the image is %s:%s, want the one of make e2e-images", image.NewName, image.NewTag)
	}
}

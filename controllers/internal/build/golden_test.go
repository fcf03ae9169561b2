package build_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/relaypool/relaypool/controllers/internal/build"
)

var update = flag.Bool("update", false, "write the golden files below testdata anew")

func TestObjectsMatchTheGoldenFiles(t *testing.T) {
	t.Parallel()
	for name, in := range fixtures(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, name, build.Objects(in))
		})
	}
	t.Run("rotation", func(t *testing.T) {
		t.Parallel()
		golden(t, "rotation", rotation(t))
	})
}

func golden(t *testing.T, name string, objects []build.Object) {
	t.Helper()
	var got bytes.Buffer
	for _, o := range objects {
		content, err := yaml.Marshal(o.Config)
		if err != nil {
			t.Fatal(err)
		}
		got.WriteString("---\n")
		got.Write(content)
	}
	file := filepath.Join("testdata", name+".golden.yaml")
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; write it with go test ./controllers/internal/build -update", err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("objects of %s (-%s +built); if that is intended, run go test ./controllers/internal/build -update:\n%s", name, file, diff)
	}
}

package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write testdata anew")

// A change of a template shows its effect in the goldens.
func TestRendersAreTheGoldens(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for name, s := range sets() {
		file := filepath.Join("testdata", strings.NewReplacer(" ", "-", "'", "").Replace(name)+".golden.yaml")
		known[file] = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := golden(t, s)
			if *update {
				must(t, os.WriteFile(file, []byte(got), 0o600))
			}
			want, err := os.ReadFile(file)
			must(t, err)
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("go test ./hack/chart -run Goldens -update writes %s anew (-golden +rendered):\n%s", file, diff)
			}
		})
	}
	files, err := filepath.Glob("testdata/*.golden.yaml")
	must(t, err)
	for _, file := range files {
		if !known[file] {
			t.Errorf("%s belongs to no set of values: delete it", file)
		}
	}
}

// golden is the rendered text of a set, and then the notes. It leaves out the specs of the CRD
// and the alerts, which come from config and have other tests.
func golden(t *testing.T, s set) string {
	t.Helper()
	objects, notes := rendered(t, s)
	var b strings.Builder
	for _, o := range objects {
		if kind := o.GetKind(); kind == "CustomResourceDefinition" || kind == "PrometheusRule" {
			delete(o.Object, "spec")
		}
		text, err := yaml.Marshal(o)
		must(t, err)
		b.WriteString("---\n" + string(text))
	}
	b.WriteString("---\n")
	for line := range strings.Lines(strings.TrimRight(notes, "\n") + "\n") {
		b.WriteString(strings.TrimRight("# "+line, " \n") + "\n")
	}
	return b.String()
}

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

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// The golden files show the effect of a changed template.
func TestRenderedChartsMatchTheGoldens(t *testing.T) {
	t.Parallel()
	expected := map[string]bool{}
	for name, s := range renderCases() {
		file := filepath.Join("testdata", strings.NewReplacer(" ", "-", "'", "").Replace(name)+".golden.yaml")
		expected[file] = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := golden(t, s)
			if *update {
				must(t, os.WriteFile(file, []byte(got), 0o600))
			}
			want, err := os.ReadFile(file)
			must(t, err)
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("go test ./hack/chart -run Goldens -update rewrites %s (-golden +rendered):\n%s", file, diff)
			}
		})
	}
	files, err := filepath.Glob("testdata/*.golden.yaml")
	must(t, err)
	for _, file := range files {
		if !expected[file] {
			t.Errorf("%s belongs to no case of renderCases: delete it", file)
		}
	}
}

// golden returns the rendered objects of a case, and then the notes. It leaves out the specs
// of the CRD and the alerts, which come from config and have other tests.
func golden(t *testing.T, s renderCase) string {
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

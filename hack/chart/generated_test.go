package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
)

func TestGeneratedFilesAreCurrent(t *testing.T) {
	t.Parallel()
	for folder, generated := range map[string]func(string) (map[string][]byte, error){chartFolder: generate, bundleFolder: bundle} {
		files, err := generated(root)
		must(t, err)
		for name, want := range files {
			got, err := os.ReadFile(filepath.Join(root, folder, name))
			must(t, err)
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("run make chart: %s%s (-generated +committed):\n%.2000s", folder, name, diff)
			}
		}
	}
}

func TestHelmLintFindsNothing(t *testing.T) {
	t.Parallel()
	for name, s := range renderCases() {
		lint := action.NewLint()
		lint.Strict = true
		lint.Namespace = "relaypool-system"
		result := lint.Run([]string{chartPath}, parsed(t, s.values))
		for _, err := range result.Errors {
			t.Errorf("%s: %v", name, err)
		}
		if result.TotalChartsLinted != 1 {
			t.Errorf("%s: %d charts were linted, want 1", name, result.TotalChartsLinted)
		}
	}
}

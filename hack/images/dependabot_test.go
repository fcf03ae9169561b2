package main

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// A module that Dependabot does not update keeps its vulnerabilities.
func TestDependabotCoversEveryModule(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	content, err := os.ReadFile(filepath.Join(root, ".github", "dependabot.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Updates []struct {
			Ecosystem   string `yaml:"package-ecosystem"`
			Directories []string
		}
	}
	if err := yaml.Unmarshal(content, &config); err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, update := range config.Updates {
		if update.Ecosystem == "gomod" {
			got = append(got, update.Directories...)
		}
	}
	err = fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || name == "bin" || entry.Name() == "testdata"):
			return fs.SkipDir
		case entry.Name() == "go.mod":
			want = append(want, path.Join("/", path.Dir(name)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("folders with a go.mod (-in the tree +in dependabot.yml):\n%s", diff)
	}
}

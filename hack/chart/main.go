// Command chart writes what is generated of charts/relaypool: the RelayPool's
// definition, the operator's role and its alerts as they stand in config, the
// schema of the values, and the README.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/relaypool/relaypool/hack/chart/readme"
	"github.com/relaypool/relaypool/hack/chart/schema"
	"github.com/relaypool/relaypool/hack/chart/source"
	"github.com/relaypool/relaypool/hack/chart/values"
)

//go:generate go run . ../..

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: chart ROOT, the folder of the checkout")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "chart: %v\n", err)
		os.Exit(1)
	}
}

// write writes every generated file of the chart below root, the checkout.
func write(root string) error {
	files, err := generate(root)
	if err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(root, "charts", "relaypool", name), content, 0o644); err != nil { //nolint:gosec // files of the tree
			return fmt.Errorf("write the chart: %w", err)
		}
	}
	return nil
}

// generate gives the generated files by their paths in the chart.
func generate(root string) (map[string][]byte, error) {
	files := map[string][]byte{}
	read := func(path string) ([]byte, error) {
		content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path))) //nolint:gosec // files of the tree
		if err != nil {
			return nil, fmt.Errorf("read what the chart is made from: %w", err)
		}
		return content, nil
	}
	crd, err := read("config/crd/relaypool.dev_relaypools.yaml")
	if err != nil {
		return nil, err
	}
	if files["crds/relaypool.dev_relaypools.yaml"], err = source.Definition(crd); err != nil {
		return nil, err
	}
	for name, from := range map[string]struct{ path, key string }{
		"files/role-rules.yaml":  {"config/rbac/role.yaml", "rules"},
		"files/alerts-spec.yaml": {"config/prometheus/rules.yaml", "spec"},
	} {
		content, err := read(from.path)
		if err != nil {
			return nil, err
		}
		if files[name], err = source.From(from.path, content, from.key); err != nil {
			return nil, err
		}
	}
	annotated, err := read("charts/relaypool/values.yaml")
	if err != nil {
		return nil, err
	}
	introduction, err := read("hack/chart/introduction.md")
	if err != nil {
		return nil, err
	}
	tree, err := values.Read(annotated)
	if err != nil {
		return nil, err
	}
	if files["values.schema.json"], err = schema.Write(tree, crd); err != nil {
		return nil, err
	}
	if files["README.md"], err = readme.Write(introduction, tree); err != nil {
		return nil, err
	}
	return files, nil
}

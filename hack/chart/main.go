// Command chart writes the generated files of charts/relaypool: the RelayPool's
// definition, the operator's role and its alerts, copied from config, and the schema of
// the values. Then it writes the manifests in config/olm, of what the chart renders.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// write writes the generated files below root, the checkout.
func write(root string) error {
	for _, made := range []struct {
		folder string
		files  func(root string) (map[string][]byte, error)
	}{{chartFolder, generate}, {bundleFolder, bundle}} {
		files, err := made.files(root)
		if err != nil {
			return err
		}
		for name, content := range files {
			if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(made.folder), name), content, 0o644); err != nil { //nolint:gosec // files of the tree
				return fmt.Errorf("write what is generated: %w", err)
			}
		}
	}
	return nil
}

// generate returns the generated files of the chart, by name.
func generate(root string) (map[string][]byte, error) {
	sources := map[string][]byte{}
	for _, path := range []string{definitionFile, roleFile, alertsFile, valuesFile, schemaDefinitionsFile} {
		content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path))) //nolint:gosec // files of the tree
		if err != nil {
			return nil, fmt.Errorf("read the chart's sources: %w", err)
		}
		sources[path] = content
	}
	definition, err := annotated(sources[definitionFile])
	if err != nil {
		return nil, err
	}
	role, err := part(roleFile, sources[roleFile], "rules")
	if err != nil {
		return nil, err
	}
	alerts, err := part(alertsFile, sources[alertsFile], "spec")
	if err != nil {
		return nil, err
	}
	schema, err := valuesSchema(sources[valuesFile], sources[schemaDefinitionsFile], sources[definitionFile])
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		"crds/relaypool.dev_relaypools.yaml": definition,
		"files/role-rules.yaml":              role,
		"files/alerts-spec.yaml":             alerts,
		"values.schema.json":                 schema,
	}, nil
}

// The chart and its sources, below the root.
const (
	chartFolder           = "charts/relaypool/"
	definitionFile        = "config/crd/relaypool.dev_relaypools.yaml"
	roleFile              = "config/rbac/role.yaml"
	alertsFile            = "config/prometheus/rules.yaml"
	valuesFile            = "charts/relaypool/values.yaml"
	schemaDefinitionsFile = "hack/chart/definitions.yaml"
)

// annotated adds two annotations to the custom resource definition. The first keeps the
// definition when the release is uninstalled. The second identifies its version: an upgrade
// applies the chart's definition if the cluster has another version.
func annotated(crd []byte) ([]byte, error) {
	const mark = "  annotations:\n"
	before, after, found := bytes.Cut(crd, []byte(mark))
	if !found || bytes.Count(before, []byte("\n")) > 4 {
		return nil, errors.New("the definition of config/crd has no metadata.annotations within its first lines: expected what controller-gen writes")
	}
	sum := sha256.Sum256(crd)
	return fmt.Appendf(nil, "%s%s    helm.sh/resource-policy: keep\n    relaypool.dev/definition: %s\n%s", before, mark, hex.EncodeToString(sum[:8]), after), nil
}

// part returns the end of a file, from the line of key on, after a comment that names the
// file. A template of the chart includes the part in an object.
func part(path string, file []byte, key string) ([]byte, error) {
	at := bytes.Index(file, []byte("\n"+key+":\n"))
	if at < 0 {
		return nil, fmt.Errorf("%s has no %s at its first level", path, key)
	}
	return fmt.Appendf(nil, "# Generated from %s by go generate ./... in hack/chart. Do not edit.\n%s", path, file[at+1:]), nil
}

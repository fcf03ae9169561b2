package manifests

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

const config = "../../../config"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// kustomization has the fields of a kustomization.yaml that the bases use. A base consists
// of the files that it names, and a component also of patches.
type kustomization struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Resources  []string `json:"resources"`
	// Patches belong to a component: files that change objects of other bases.
	Patches []struct {
		Path string `json:"path"`
	} `json:"patches"`
	// Only the trial fleet uses these fields, in config/try and config/try-offline.
	Namespace          string `json:"namespace"`
	ConfigMapGenerator []any  `json:"configMapGenerator"`
	SecretGenerator    []any  `json:"secretGenerator"`
	GeneratorOptions   any    `json:"generatorOptions"`
	Images             []any  `json:"images"`
}

// resources returns the objects of a base, and the files that contain them.
func resources(t *testing.T, base string) (objects []*unstructured.Unstructured, files []string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(base, "kustomization.yaml"))
	must(t, err)
	var k kustomization
	must(t, yaml.UnmarshalStrict(content, &k))
	for _, name := range k.Resources {
		path := filepath.Join(base, name)
		info, err := os.Stat(path)
		must(t, err)
		if info.IsDir() {
			more, inside := resources(t, path)
			objects, files = append(objects, more...), append(files, inside...)
			continue
		}
		objects, files = append(objects, read(t, path)...), append(files, path)
	}
	for _, p := range k.Patches {
		files = append(files, filepath.Join(base, p.Path))
	}
	return objects, files
}

func read(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(path)
	must(t, err)
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	var out []*unstructured.Unstructured
	for {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return out
		}
		must(t, err)
		if len(u.Object) > 0 {
			out = append(out, u)
		}
	}
}

// pick returns the one object of a kind with that name, as the requested Go
// type.
func pick[T any](t *testing.T, objects []*unstructured.Unstructured, kind, name string) *T {
	t.Helper()
	for _, u := range objects {
		if u.GetKind() == kind && u.GetName() == name {
			out := new(T)
			must(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, out, true))
			return out
		}
	}
	t.Fatalf("there is no %s %s", kind, name)
	return nil
}

func TestEveryManifestIsInstalledByItsBase(t *testing.T) {
	t.Parallel()
	var reached []string
	for _, base := range []string{"default", "cluster-wide", "external-metrics", "prometheus", "samples", "try", "try-offline"} {
		_, files := resources(t, filepath.Join(config, base))
		reached = append(reached, files...)
	}
	otherTools := []string{filepath.Join(config, "krew"), filepath.Join(config, "gitops"), filepath.Join(config, "olm")}
	must(t, filepath.WalkDir(config, func(path string, d fs.DirEntry, err error) error {
		if slices.Contains(otherTools, path) {
			return filepath.SkipDir
		}
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" || d.Name() == "kustomization.yaml" {
			return err
		}
		if !slices.Contains(reached, path) {
			t.Errorf("no kustomization.yaml leads to %s", strings.TrimPrefix(path, config))
		}
		return nil
	}))
}

package apply_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/controllers/internal/build"
)

// golden reads a golden file: the built objects of a RelayPool.
func golden(t *testing.T, file string) []build.Object {
	t.Helper()
	content, err := os.ReadFile(file)
	must(t, err)
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	var objects []build.Object
	for {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		must(t, err)
		if len(u.Object) > 0 {
			objects = append(objects, build.Object{Kind: u.GroupVersionKind(), Name: u.GetName(), Config: client.ApplyConfigurationFromUnstructured(u)})
		}
	}
}

// The builders have to set the defaults of atomic fields. Otherwise an operator applies
// every object of every fleet once after its start.
func TestBuiltObjectsAreNotWrittenAgainAfterARestart(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../build/testdata/*.golden.yaml")
	must(t, err)
	if len(files) < 4 {
		t.Fatalf("the golden files are %v, want at least 4", files)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var objects []build.Object
			for _, o := range golden(t, file) {
				w.owner.Name = o.Config.(interface{ GetLabels() map[string]string }).GetLabels()[build.LabelPool]
				if !isOptional(o) {
					objects = append(objects, o)
				}
			}
			if len(objects) == 0 {
				t.Fatal("no object")
			}
			result := w.apply(objects)
			if len(result.Applied) != len(objects) {
				t.Fatalf("%+v, want all %d applied", result, len(objects))
			}
			w.applyUntilUnchanged(objects)
			w.restart()
			result = w.apply(objects)
			if writes, _ := w.calls.reset(); len(writes) > 0 || result.Changed() {
				t.Errorf("wrote %q, %+v, want no call", writes, result)
			}
		})
	}
}

package apply_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/hack/apiserver"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
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

// The same holds for an HTTPRoute, of which the API server's schema is that of the Gateway API.
func TestAnHTTPRouteIsNotWrittenAgainAfterARestart(t *testing.T) {
	t.Parallel()
	server := apiservertest.Start(t, apiserver.Options{})
	must(t, server.Install(apiservertest.HTTPRouteCRD(t)))
	config, err := server.Config()
	must(t, err)
	for _, file := range []string{"full", "exposed"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			w := newWorldOn(t, config, apiservertest.NamespaceOn(t, config))
			route := slices.DeleteFunc(golden(t, "../build/testdata/"+file+".golden.yaml"), func(o build.Object) bool { return o.Kind != build.KindHTTPRoute })
			w.owner.Name = route[0].Name
			if result := w.apply(route); len(result.Applied) != 1 {
				t.Fatalf("%+v, want the HTTPRoute applied", result)
			}
			w.calls.reset()
			w.restart()
			result := w.apply(route)
			if writes, _ := w.calls.reset(); len(writes) > 0 || result.Changed() {
				t.Errorf("wrote %q, %+v, want no call", writes, result)
			}
		})
	}
}

// Some fields of a Service belong to its type, and the API server sets others of these itself.
func TestAServiceChangesItsType(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service := func(file string) []build.Object {
		for _, o := range golden(t, "../build/testdata/"+file+".golden.yaml") {
			if o.Kind == build.KindService {
				o.Name = poolName
				u := o.Config.(interface{ SetName(name string) })
				u.SetName(poolName)
				return []build.Object{o}
			}
		}
		t.Fatalf("%s has no Service", file)
		return nil
	}
	for _, file := range []string{"minimal", "full", "exposed", "full", "minimal"} {
		objects := service(file)
		if result := w.apply(objects); len(result.Applied) != 1 {
			t.Fatalf("the Service of %s: %+v, want it applied", file, result)
		}
		w.applyUntilUnchanged(objects)
	}
}

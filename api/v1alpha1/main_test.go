package v1alpha1_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
)

const samplesDir = "../../config/samples"

func TestMain(m *testing.M) { apiservertest.Main(m) }

// newClient makes an administrator's client with strict validation: an unknown
// field is an error rather than dropped.
func newClient(t *testing.T) client.Client {
	t.Helper()
	cl, err := client.New(apiservertest.Config(t), client.Options{FieldValidation: "Strict"})
	if err != nil {
		t.Fatal(err)
	}
	return cl
}

// samples returns the RelayPools of config/samples by file name.
func samples(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	read := map[string]*unstructured.Unstructured{}
	err := filepath.WalkDir(samplesDir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasPrefix(filepath.Base(path), "relaypool_") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		object := &unstructured.Unstructured{}
		read[filepath.Base(path)] = object
		return yaml.UnmarshalStrict(text, &object.Object)
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(read) == 0 {
		t.Fatal(errors.New("config/samples has no file relaypool_*.yaml"))
	}
	return read
}

// minimal returns the smallest sample in the namespace, with the changes merged
// into it in order.
func minimal(t *testing.T, namespace string, changes ...string) *unstructured.Unstructured {
	t.Helper()
	object := samples(t)["relaypool_v1alpha1_relaypool.yaml"]
	object.SetNamespace(namespace)
	for _, change := range changes {
		merge(t, object, change)
	}
	return object
}

// merge changes the object as a JSON merge patch does: null removes, lists are
// replaced.
func merge(t *testing.T, object *unstructured.Unstructured, change string) {
	t.Helper()
	patch := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(change), &patch); err != nil {
		t.Fatal(err)
	}
	mergeInto(object.Object, patch)
}

func mergeInto(target, patch map[string]any) {
	for key, value := range patch {
		inner, isMap := value.(map[string]any)
		switch {
		case value == nil:
			delete(target, key)
		case isMap:
			if _, ok := target[key].(map[string]any); !ok {
				target[key] = map[string]any{}
			}
			mergeInto(target[key].(map[string]any), inner)
		default:
			target[key] = value
		}
	}
}

// typed decodes the object, strictly.
func typed(t *testing.T, object *unstructured.Unstructured) *v1alpha1.RelayPool {
	t.Helper()
	text, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	pool := &v1alpha1.RelayPool{}
	if err := yaml.UnmarshalStrict(text, pool); err != nil {
		t.Fatal(err)
	}
	return pool
}

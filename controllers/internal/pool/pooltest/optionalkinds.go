package pooltest

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/relaypool/relaypool/hack/apiserver"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
)

// InstallOptional adds an optional kind to an API server, by a definition that accepts any
// content. The server must be the test's own, because the kind changes every status there.
func InstallOptional(t testing.TB, server *apiserver.Server, kind schema.GroupVersionKind, plural string) {
	t.Helper()
	if err := server.Install(apiservertest.ForeignCRD(kind, plural)); err != nil {
		t.Fatalf("install %s: %v", kind.Kind, err)
	}
}

// Object is an empty object of a kind.
func Object(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}
